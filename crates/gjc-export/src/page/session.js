// The session: its data, line by line, and its tree.

const lines = document.getElementById("session").textContent.split("\n");
// What an element of the data says. (The array's commas stand at the ends of lines.)
const element = (line) => JSON.parse(line.endsWith(",") ? line.slice(0, -1) : line);

const session = { head: {}, header: {}, damage: [], childSessions: [], moreChildren: 0, entries: [], blobs: new Map(), name: "", labels: new Map() };
// What is kept of an entry; the rest is read again when it is shown.
function known(said, line, at) {
  const e = obj(said.e);
  const entry = { at, line, parent: said.p, children: [], id: str(said.id ?? e.id), time: str(e.timestamp), twin: said.twin === true, lost: said.lost, kind: "setting", text: "", latest: at };
  if (said.lost !== undefined) {
    entry.kind = "lost";
    entry.text = preview(said.lost);
    return entry;
  }
  const message = obj(e.message);
  const type = str(e.type);
  if (type === "message") knownMessage(entry, message);
  else if (type === "compaction" || type === "branch_summary") Object.assign(entry, { kind: "summary", text: gist(str(e.summary)) });
  else if (type === "custom_message") Object.assign(entry, { kind: "note", text: gist(textOf(e.content)) });
  else if (type === "label") {
    entry.text = str(e.label);
    if (entry.text) session.labels.set(str(e.targetId), entry.text);
    else session.labels.delete(str(e.targetId));
  } else if (type === "session_info") {
    entry.text = str(e.name);
    session.name = entry.text;
  } else entry.text = settingOf(e);
  entry.type = type === "custom" ? str(e.customType) : type;
  return entry;
}

function knownMessage(entry, message) {
  const role = str(message.role);
  const kinds = { user: "user", assistant: "assistant", toolResult: "tool", bashExecution: "tool", custom: "note", hookMessage: "note" };
  entry.kind = Object.hasOwn(kinds, role) ? kinds[role] : "note";
  entry.text = role === "bashExecution" ? preview("$ " + str(message.command)) : role === "toolResult" ? preview(textOf(message.content)) : gist(textOf(message.content));
  if (role === "toolResult") {
    entry.call = str(message.toolCallId);
    entry.tool = str(message.toolName);
    entry.failed = message.isError === true;
  }
  if (role === "assistant") {
    const calls = blocks(message.content).filter((block) => block.type === "toolCall");
    entry.calls = calls.map((call) => str(call.id));
    entry.text ||= preview(calls.map((call) => `${str(call.name)} ${about(obj(call.arguments))}`).join(", "));
    const usage = obj(message.usage);
    entry.usage = { in: num(usage.input) + num(usage.cacheRead) + num(usage.cacheWrite), out: num(usage.output), cost: num(obj(usage.cost).total) };
    entry.model = str(message.model);
    if (message.errorMessage) entry.failed = true;
  }
}

const blocks = (content) => (typeof content === "string" ? [{ type: "text", text: content }] : list(content).map(obj));
const textOf = (content) => blocks(content).filter((block) => block.type === "text").map((block) => str(block.text)).join("\n");

// The argument of a call that says what it is about.
function about(input) {
  for (const name of ["command", "path", "file_path", "pattern", "query", "url", "description", "prompt"]) {
    if (Object.hasOwn(input, name) && typeof input[name] === "string") return preview(input[name]);
  }
  const first = Object.values(input).find((value) => typeof value === "string");
  return first === undefined ? "" : preview(first);
}

function settingOf(e) {
  const data = obj(e.data);
  switch (str(e.type)) {
    case "model_change":
      return [str(e.provider), str(e.modelId ?? e.model)].filter(Boolean).join("/");
    case "thinking_level_change":
      return str(e.thinkingLevel) || "off";
    case "mode_change":
      return str(e.mode) || "none";
    case "service_tier_change":
      return str(e.serviceTier) || "auto";
    case "custom":
      if (e.customType === "gjc.env") return [str(obj(data.model).provider), str(obj(data.model).id)].filter(Boolean).join("/");
      if (e.customType === "gjc.leaf") return say(`to ${str(data.to) || "the beginning"}`, `${str(data.to) || "처음"}(으)로 이동`);
      return str(data.mode ?? data.what ?? "");
    default:
      return "";
  }
}

// Everything that an entry says.
function whole(entry) {
  return obj(element(lines[entry.line]).e);
}

// The bytes that an entry names: {text} or {base64} or {missing}.
function blob(reference) {
  const name = /^blob:sha256:([0-9a-f]{64})$/.exec(str(reference))?.[1];
  const line = name && session.blobs.get(name);
  return line === undefined || !name ? { missing: say("it is not in this page", "이 페이지에 없습니다") } : element(lines[line]);
}

for (let line = 1; line < lines.length - 1; line += 1) {
  const said = element(lines[line]);
  if ("p" in said) session.entries.push(known(said, line, session.entries.length));
  else if ("blob" in said) session.blobs.set(said.blob, line);
  else if ("head" in said) session.head = said.head;
  else if ("header" in said) session.header = said.header;
  else if ("damage" in said) session.damage.push(said.damage);
  else if ("child" in said) session.childSessions.push(said);
  else if ("moreChildren" in said) session.moreChildren = said.moreChildren;
}

// Parents stand before their children.
const roots = [];
for (const entry of session.entries) {
  const parent = entry.parent === null ? undefined : session.entries[entry.parent];
  (parent ? parent.children : roots).push(entry.at);
}
for (let at = session.entries.length - 1; at >= 0; at -= 1) {
  const { parent, latest } = session.entries[at];
  if (parent !== null && session.entries[parent]) session.entries[parent].latest = Math.max(session.entries[parent].latest, latest);
}

const siblings = (entry) => (entry.parent === null ? roots : session.entries[entry.parent].children);

// From the root to an entry.
function pathTo(at) {
  const path = [];
  for (let entry = session.entries[at]; entry; entry = entry.parent === null ? undefined : session.entries[entry.parent]) path.push(entry.at);
  return path.reverse();
}

// The end of the branch that an entry is on: from it always on to what was last worked on.
function tipOf(at) {
  let entry = session.entries[at];
  while (entry.children.length) {
    entry = session.entries[entry.children.reduce((best, child) => (session.entries[child].latest > session.entries[best].latest ? child : best))];
  }
  return entry.at;
}

const title = () => {
  const first = session.entries.find((entry) => entry.kind === "user");
  return session.name || str(session.header.title) || first?.text || str(session.header.id);
};
