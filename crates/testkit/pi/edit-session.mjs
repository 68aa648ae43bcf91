// Opens a session file in place through pi's own SessionManager and changes it, as pi would while somebody else has it open.
// usage: node edit-session.mjs <folder of @mariozechner/pi-coding-agent> <session.jsonl> append|name|rewrite...
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const [pkg, file, ...steps] = process.argv.slice(2);
const alone = join(pkg, "dist/core/session-manager.js");
const module = existsSync(alone) ? alone : join(pkg, "dist/index.js");
const { SessionManager } = await import(pathToFileURL(module).href);
const session = SessionManager.open(file, dirname(file));
for (const step of steps) {
  if (step === "append") session.appendMessage({ role: "user", content: "pi의 말", timestamp: Date.now() });
  else if (step === "name") session.appendSessionInfo("pi의 이름");
  else if (step === "rewrite") session._rewriteFile();
  else throw new Error(`no such step: ${step}`);
}
