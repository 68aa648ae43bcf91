// Forks a session file, or branches it at its leaf, through pi's own SessionManager, and prints what that took as one JSON
// line. What it made is removed afterwards.
// usage: node fork-session.mjs <folder of @mariozechner/pi-coding-agent> fork|branch <session.jsonl> <folder for the new file>
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pkg, how, file, folder] = process.argv.slice(2);
const alone = join(pkg, "dist/core/session-manager.js");
const module = existsSync(alone) ? alone : join(pkg, "dist/index.js");
const { SessionManager } = await import(pathToFileURL(module).href);

const dir = mkdtempSync(join(folder, "pi-fork-"));
try {
  const start = process.hrtime.bigint();
  let made;
  if (how === "fork") {
    made = SessionManager.forkFrom(file, "/srv/가재", dir).getSessionFile();
  } else {
    const session = SessionManager.open(file, dir);
    made = session.createBranchedSession(session.getLeafId());
  }
  const ns = Number(process.hrtime.bigint() - start);
  const peak = /VmHWM:\s*(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  process.stdout.write(JSON.stringify({ ns, vm_hwm_kib: Number(peak), found: { made: existsSync(made) } }) + "\n");
} finally {
  rmSync(dir, { recursive: true, force: true });
}
