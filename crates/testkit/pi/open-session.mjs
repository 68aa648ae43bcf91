// Opens a session file through pi's own SessionManager, builds its context, and prints what that took as one JSON line.
// usage: node open-session.mjs <folder of @mariozechner/pi-coding-agent> <session.jsonl>
//
// The file is of version 3, so pi only reads it.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const [pkg, file] = process.argv.slice(2);
const alone = join(pkg, "dist/core/session-manager.js");
const module = existsSync(alone) ? alone : join(pkg, "dist/index.js");
const { SessionManager } = await import(pathToFileURL(module).href);

const start = process.hrtime.bigint();
const session = SessionManager.open(file, dirname(file));
const { messages } = session.buildSessionContext();
const ns = Number(process.hrtime.bigint() - start);
const peak = /VmHWM:\s*(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
process.stdout.write(JSON.stringify({ ns, vm_hwm_kib: Number(peak), found: { messages: messages.length } }) + "\n");
