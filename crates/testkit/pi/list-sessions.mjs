// Lists sessions through pi's own SessionManager, and prints what that took as one JSON line.
// usage: PI_CODING_AGENT_DIR=<agent folder> node list-sessions.mjs <folder of @mariozechner/pi-coding-agent> here <folder>
//        PI_CODING_AGENT_DIR=<agent folder> node list-sessions.mjs <folder of @mariozechner/pi-coding-agent> all
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pkg, which, cwd] = process.argv.slice(2);
const alone = join(pkg, "dist/core/session-manager.js");
const module = existsSync(alone) ? alone : join(pkg, "dist/index.js");
const { SessionManager } = await import(pathToFileURL(module).href);

const start = process.hrtime.bigint();
const sessions = which === "all" ? await SessionManager.listAll() : await SessionManager.list(cwd);
const ns = Number(process.hrtime.bigint() - start);
if (sessions.length === 0) throw new Error("pi finds no session");
const peak = /VmHWM:\s*(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
process.stdout.write(JSON.stringify({ ns, vm_hwm_kib: Number(peak), found: { sessions: sessions.length } }) + "\n");
