// Writes sessions with pi's own SessionManager: every kind of entry that it has, moves, edits, compactions; decided by a
// seed. Then opens each anew and prints what pi makes of it: one JSON document a line, {file, leafId, messages}.
// usage: node write-sessions.mjs <folder of pi's package> <folder for the files> <how many>
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pkg, out, count] = process.argv.slice(2);
const { SessionManager } = await import(pathToFileURL(join(pkg, "dist/core/session-manager.js")).href);

// xorshift32: the same sessions in every run, but for ids and times.
const random = (seed) => {
  let state = seed * 2654435761 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
};

const usage = { input: 3, output: 5, cacheRead: 0, cacheWrite: 0, totalTokens: 8,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };

for (let seed = 1; seed <= Number(count); seed++) {
  const pick = random(seed);
  const dir = join(out, String(seed));
  mkdirSync(dir, { recursive: true });
  const session = SessionManager.create("/srv/proj", dir);
  const ids = [];
  const text = (words, n) => [{ type: "text", text: `${words} ${n}` }];
  const say = (message) => ids.push(session.appendMessage({ ...message, timestamp: 1780643935000 + ids.length }));
  say({ role: "user", content: text("시작", 0) });
  for (let n = 1; n < 60; n++) {
    const some = () => ids[pick(ids.length)];
    switch (pick(20)) {
      case 0: say({ role: "user", content: `문자열 ${n}` }); break;
      case 1: case 2: say({ role: "user", content: text("질문", n) }); break;
      case 3: case 4: case 5:
        say({ role: "assistant", content: [{ type: "thinking", thinking: "음", thinkingSignature: "s" }, ...text("답", n),
          { type: "toolCall", id: `c${n}`, name: "read", arguments: { path: "가" } }],
          api: "anthropic-messages", provider: "anthropic", model: "m", usage, stopReason: "toolUse" });
        break;
      case 6: case 7:
        say({ role: "toolResult", toolCallId: `c${n - 1}`, toolName: "read", content: text("결과", n), isError: false });
        break;
      case 8: say({ role: "system", content: `당신은 ${n}` }); break;
      case 9: ids.push(session.appendThinkingLevelChange("high")); break;
      case 10: ids.push(session.appendModelChange("openai", "gpt")); break;
      case 11: ids.push(session.appendUsage("title", "openai", "gpt", usage, n % 2 ? "note" : undefined).id); break;
      case 12: ids.push(session.appendCompaction(`요약 ${n}`, n % 3 ? some() : undefined, 99, { a: 1 }, false, usage)); break;
      case 13: ids.push(session.appendCustomEntry("x", { n })); break;
      case 14: ids.push(session.appendCustomMessageEntry("note", n % 2 ? `메모 ${n}` : text("메모", n), true, { n })); break;
      case 15: ids.push(session.appendSessionInfo(`이름 ${n}`)); break;
      case 16: ids.push(session.appendLabelChange(some(), n % 4 ? `자리 ${n}` : undefined)); break;
      case 17: session.branch(some()); break;
      case 18: ids.push(session.branchWithSummary(n % 5 ? some() : null, `가지 ${n}`, undefined, false, usage)); break;
      case 19: {
        const editable = session.getBranch().filter((entry) => entry.type === "custom_message" ||
          (entry.type === "message" && ["user", "assistant", "toolResult"].includes(entry.message.role)));
        if (editable.length) {
          const target = editable[pick(editable.length)].id;
          ids.push(session.appendContextEdit(target, [null, { content: `고침 ${n}` }, { content: text("고침", n) }][pick(3)]));
        }
        break;
      }
    }
  }
  // Nothing is on disk before the first answer.
  say({ role: "assistant", content: text("끝", 0), api: "anthropic-messages", provider: "anthropic", model: "m", usage,
    stopReason: "stop" });
  const file = session.getSessionFile();
  const again = SessionManager.open(file, dir);
  console.log(JSON.stringify({ file, leafId: again.getLeafId(), messages: again.buildSessionContext().messages }));
}
