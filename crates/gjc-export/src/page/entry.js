// How each kind of entry is shown.

// Whether text is shown as it was written, without its Markdown read.
let asWritten = false;

const SPEAKERS = { user: say("You", "사용자"), assistant: say("Assistant", "어시스턴트"), tool: say("Tool", "도구"), summary: say("Summary", "요약"), note: say("Note", "메모"), lost: say("Damaged", "손상됨") };

// Shows one entry, with the results of its calls.
function show(entry, results) {
  const article = el("article", "entry is-" + entry.kind);
  article.dataset.at = entry.at;
  article.dataset.id = entry.id;
  article.tabIndex = -1;
  try {
    if (entry.lost !== undefined) article.append(heading(entry, SPEAKERS.lost), put(el("p", "broken"), str(entry.lost)));
    else if (entry.kind === "setting") article.append(setting(entry, whole(entry)));
    else if (entry.kind === "summary") article.append(summary(entry, whole(entry)));
    else if (entry.type === "custom_message") article.append(heading(entry, str(whole(entry).customType) || SPEAKERS.note), ...content(whole(entry).content));
    else message(article, entry, obj(whole(entry).message), results);
  } catch (error) {
    // What no part of this page expected is shown as data.
    article.replaceChildren(heading(entry, entry.kind), dataBox(whole(entry)));
    console.warn(error);
  }
  if (entry.twin) article.append(el("p", "aside", say("Its id belongs to an earlier entry; it is the end of a branch.", "이 항목의 id는 앞선 항목의 것이어서, 가지의 끝으로만 남았습니다.")));
  return article;
}

function heading(entry, who, ...more) {
  const line = el("header", "who", put(el("span", "speaker"), shown(who)));
  const label = session.labels.get(entry.id);
  if (label) line.append(put(el("span", "chip"), label));
  line.append(...more);
  const at = el("a", "time", when(entry.time, HOUR));
  at.href = "#" + encodeURIComponent(entry.id);
  at.title = `${when(entry.time)} · ${shown(entry.id)}`;
  line.append(at);
  return line;
}

function message(article, entry, said, results) {
  const role = str(said.role);
  if (role === "assistant") {
    const model = entry.model ? [put(el("span", "aside"), entry.model)] : [];
    article.append(heading(entry, SPEAKERS.assistant, ...model));
    for (const block of blocks(said.content)) article.append(block.type === "toolCall" ? call(block, results?.get(str(block.id))) : piece(block));
    if (said.errorMessage) article.append(put(el("p", "broken"), str(said.errorMessage)));
    if (said.stopReason === "aborted") article.append(el("p", "aside", say("Interrupted.", "중단됨.")));
    if (entry.usage.out || entry.usage.cost) article.append(el("footer", "usage", used(entry.usage)));
  } else if (role === "toolResult") {
    article.append(heading(entry, str(said.toolName) || SPEAKERS.tool), ...resultOf(said, {}));
  } else if (role === "bashExecution") {
    article.append(heading(entry, say("Command", "명령")), shell(str(said.command)), box("printed", str(said.output), putPrinted));
    if (said.exitCode) article.append(el("p", "aside", say(`exit code ${str(said.exitCode)}`, `종료 코드 ${str(said.exitCode)}`)));
  } else if (role === "user") {
    article.append(heading(entry, SPEAKERS.user), ...content(said.content));
  } else if (said.content !== undefined) {
    article.append(heading(entry, str(said.customType) || role || SPEAKERS.note), ...content(said.content));
  } else {
    article.append(heading(entry, role || SPEAKERS.note), dataBox(said));
  }
}

const used = ({ in: input, out, cost }) => [say(`${tokens(input)} in`, `입력 ${tokens(input)}`), say(`${tokens(out)} out`, `출력 ${tokens(out)}`), ...(cost ? [dollars(cost)] : [])].join(" · ");

const content = (value) => blocks(value).map(piece);

// One block of content.
function piece(block) {
  switch (block.type) {
    case "text":
      return said(str(block.text));
    case "thinking": {
      const text = str(block.thinking);
      return card("thinking", [el("span", "name", say("Thinking", "생각")), put(el("span", "gist"), gist(text))], () => [said(text)]);
    }
    case "redactedThinking":
      return el("p", "aside", say("Thinking that the provider keeps closed.", "제공자가 공개하지 않는 생각."));
    case "image":
      return picture(block);
    default:
      return dataBox(block);
  }
}

// Text, its Markdown read or as it was written.
function said(text) {
  return asWritten ? putLong(el("div", "text written"), text) : putLong(el("div", "text"), text, putMarkdown);
}

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

// A picture of pixels. What could hold more than pixels is named and not shown.
function picture(block) {
  const type = str(block.mimeType).toLowerCase();
  const data = str(block.data);
  const bytes = data.startsWith("blob:") ? blob(data) : { base64: data };
  const absent = (why) => put(el("p", "aside"), say(`[picture ${type}: ${why}]`, `[그림 ${type}: ${why}]`));
  if (bytes.base64 === undefined) return absent(str(bytes.missing));
  if (!PICTURES.has(type)) return absent(say("pictures of this kind are not shown", "이 종류의 그림은 표시하지 않습니다"));
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(bytes.base64)) return absent(say("its data cannot be read", "데이터를 읽을 수 없습니다"));
  const image = el("img", "picture");
  image.alt = say("picture", "그림");
  image.loading = "lazy";
  image.src = `data:${type};base64,${bytes.base64}`;
  return image;
}

// What opens when it is wanted; its inside is made then.
function card(className, top, inside, open = false) {
  const made = el("details", "card " + className);
  made.append(el("summary", "", ...top));
  let filled = false;
  const fill = () => {
    if (filled || !made.open) return;
    filled = true;
    made.append(el("div", "inside", ...inside()));
    marks.again();
  };
  made.addEventListener("toggle", fill);
  made.open = open;
  fill();
  return made;
}

// A call of a tool with its result.
function call(block, results) {
  const name = str(block.name);
  const input = obj(block.arguments);
  const answered = results?.length ? results : null;
  const failed = answered?.some((result) => result.failed);
  const state = !answered ? ["open", "…", say("no result", "결과 없음")] : failed ? ["bad", "✗", say("failed", "실패")] : ["good", "✓", say("done", "완료")];
  const mark = el("span", "state " + state[0], state[1]);
  mark.title = state[2];
  const top = [mark, put(el("span", "name"), name), put(el("span", "gist"), about(input))];
  const made = card("call", top, () => {
    const said = answered?.map((result) => obj(whole(result).message)) ?? [];
    return [argumentsOf(name, input, block, said), ...said.flatMap((result) => resultOf(result, { name, input }))];
  });
  if (answered) made.dataset.results = answered.map((result) => result.id).join(" ");
  return made;
}

const shell = (command) => box("command", command, (into, part) => putCode(into, part, "shell"));

function argumentsOf(name, input, block, results) {
  const parts = el("div", "arguments");
  const rest = new Map(Object.entries(input));
  const take = (key) => {
    const value = rest.get(key);
    rest.delete(key);
    return value;
  };
  if (typeof input.command === "string") parts.append(shell(take("command")));
  if (typeof input.content === "string" && typeof input.path === "string") {
    const language = languageOfPath(input.path);
    parts.append(box("code", take("content"), (into, part) => putCode(into, part, language)));
  }
  const edits = typeof input.oldText === "string" ? [input] : typeof input.old_string === "string" ? [{ oldText: input.old_string, newText: input.new_string }] : list(input.edits).map(obj);
  if (edits.length && edits.every((edit) => typeof edit.oldText === "string" && typeof edit.newText === "string")) {
    ["edits", "oldText", "newText", "old_string", "new_string"].forEach((key) => rest.delete(key));
    // The result's own diff says where; without one, what was asked for.
    if (!results.some((result) => typeof obj(result.details).diff === "string" && obj(result.details).diff)) {
      for (const edit of edits) parts.append(box("diff", changed(edit.oldText, edit.newText), putDiff));
    }
  }
  if (rest.size) parts.append(fields(rest));
  else if (!Object.keys(input).length && block.arguments !== undefined && Object.keys(obj(block.arguments)).length !== 0) parts.append(dataBox(block.arguments));
  return parts;
}

// Names and values; texts of several lines as boxes.
function fields(map) {
  const table = el("dl", "fields");
  for (const [key, value] of map) {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
    table.append(put(el("dt", ""), key));
    table.append(text.includes("\n") && text.length > 120 ? el("dd", "", box("value", text, put)) : putLong(el("dd", ""), text));
  }
  return table;
}

function resultOf(result, { input = {} }) {
  const details = obj(result.details);
  const parts = [];
  const failed = result.isError === true;
  if (typeof details.diff === "string" && details.diff) parts.push(box("diff", details.diff, putDiff));
  const language = str(result.toolName) === "read" ? languageOfPath(input.path) : "";
  for (const block of blocks(result.content)) {
    if (block.type !== "text") parts.push(piece(block));
    else if (str(block.text)) parts.push(box("printed" + (failed ? " bad" : ""), str(block.text), language ? (into, part) => putCode(into, part, language) : putPrinted));
  }
  if (!parts.length) parts.push(el("p", "aside", say("No output.", "출력 없음.")));
  return parts;
}

function summary(entry, e) {
  const text = str(e.summary);
  const compacted = e.type === "compaction";
  const name = compacted ? say("Earlier history was summarised", "이전 기록을 요약했습니다") : say("Summary of a branch that was left", "떠난 가지의 요약");
  const before = compacted && num(e.tokensBefore) ? [el("span", "aside", say(`${tokens(e.tokensBefore)} tokens before`, `이전 토큰 ${tokens(e.tokensBefore)}`))] : [];
  return card("summary", [el("span", "name", name), ...before, ...chips(entry)], () => [said(text)]);
}

const chips = (entry) => (session.labels.has(entry.id) ? [put(el("span", "chip"), session.labels.get(entry.id))] : []);

const SETTINGS = {
  model_change: say("Model", "모델"),
  thinking_level_change: say("Thinking", "생각 수준"),
  service_tier_change: say("Service tier", "서비스 티어"),
  mode_change: say("Mode", "모드"),
  session_info: say("Name", "이름"),
  label: say("Label", "이름표"),
  "gjc.env": say("Settings", "설정"),
  "gjc.leaf": say("Moved", "이동"),
  "gjc.approval": say("Approval", "승인"),
  "gjc.job": say("Job", "작업"),
};

// A line that is no message. Everything in it is there to be opened.
function setting(entry, e) {
  const type = str(entry.type);
  const name = Object.hasOwn(SETTINGS, type) ? SETTINGS[type] : type || str(e.type);
  return card("setting", [put(el("span", "name"), name), put(el("span", "gist"), entry.text), ...chips(entry)], () => (type === "gjc.env" ? environment(obj(e.data), e) : [dataBox(e)]));
}

// System prompt and tools, as the model had them.
function environment(data, e) {
  const parts = [];
  const system = blob(data.system);
  parts.push(card("part", [el("span", "name", say("System prompt", "시스템 프롬프트"))], () => [said(str(system.text ?? system.missing))]));
  const tools = blob(data.tools);
  let specs = null;
  try {
    specs = list(JSON.parse(str(tools.text)));
  } catch {
    // Shown as text below.
  }
  const inside = () => (specs ? specs.map((spec) => tool(obj(spec))) : [said(str(tools.text ?? tools.missing))]);
  parts.push(card("part", [el("span", "name", say("Tools", "도구")), el("span", "gist", specs ? specs.map((spec) => shown(str(obj(spec).name))).join(", ") : "")], inside));
  if (e) parts.push(card("part", [el("span", "name", say("As data", "데이터"))], () => [dataBox(e)]));
  return parts;
}

function tool(spec) {
  const { name, description, ...rest } = spec;
  return card("part", [put(el("span", "name"), str(name)), put(el("span", "gist"), gist(str(description)))], () => [said(str(description)), dataBox(rest)]);
}

// Data as it is, readable.
const dataBox = (value) => box("code", JSON.stringify(value, null, 2) ?? "", (into, part) => putCode(into, part, "js"));
