// Opens a session file through pi's own SessionManager and prints what pi makes of it, as one JSON document.
// usage: node read-session.mjs <folder of @mariozechner/pi-coding-agent> <session.jsonl>
//
// pi rewrites a file of an older version when it opens it, so it only ever sees a copy.
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const [pkg, file] = process.argv.slice(2);
// The one module loads in a fraction of the time of the whole package; both give the same class.
const alone = join(pkg, "dist/core/session-manager.js");
const module = existsSync(alone) ? alone : join(pkg, "dist/index.js");

const dir = mkdtempSync(join(tmpdir(), "pi-read-"));
try {
  const copy = join(dir, basename(file));
  copyFileSync(file, copy);
  const { SessionManager } = await import(pathToFileURL(module).href);
  const session = SessionManager.open(copy, dir);
  const { messages, model, thinkingLevel } = session.buildSessionContext();
  const answer = {
    leafId: session.getLeafId(),
    sessionId: session.getSessionId(),
    cwd: session.getCwd(),
    messages,
    entries: session.getEntries().length,
    model,
    thinkingLevel,
    // Whom it would go on with, of the one session that there is: it looks at the first bytes of the file alone.
    recent: SessionManager.continueRecent(session.getCwd(), dir).getSessionId(),
  };
  await new Promise((done) => process.stdout.write(JSON.stringify(answer), done));
} finally {
  rmSync(dir, { recursive: true, force: true });
}
