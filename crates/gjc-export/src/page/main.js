// The page itself: what stands where, which branch is shown, search, keys.

// So many entries are made together when they come near the window.
const CHUNK = 20;

let leaf = typeof session.head.leaf === "number" && session.entries[session.head.leaf] ? session.head.leaf : session.entries.length - 1;
const active = leaf;
const conversation = el("main", "conversation");
const banner = el("div", "banner");
const outline = new Outline((at) => {
  document.body.classList.remove("with-outline");
  goTo(at);
});

// What is searched for, marked where it is shown.
const marks = {
  query: "",
  waiting: false,
  again() {
    if (!globalThis.Highlight || !CSS.highlights || this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      CSS.highlights.delete("found");
      if (!this.query) return;
      const ranges = [];
      const walker = document.createTreeWalker(conversation, NodeFilter.SHOW_TEXT);
      while (walker.nextNode() && ranges.length < 5000) {
        const node = walker.currentNode;
        const text = node.data.toLowerCase();
        for (let at = text.indexOf(this.query); at >= 0 && text.length === node.data.length && ranges.length < 5000; at = text.indexOf(this.query, at + this.query.length)) {
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + this.query.length);
          ranges.push(range);
        }
      }
      CSS.highlights.set("found", new Highlight(...ranges));
    });
  },
};

// The entries of a path as they are shown: results stand in their calls.
function items(path) {
  const made = [];
  let open = new Map();
  for (const at of path) {
    const entry = session.entries[at];
    const item = { entry, results: new Map() };
    const asked = entry.call !== undefined && open.get(entry.call);
    if (asked) {
      const had = asked.results.get(entry.call) ?? [];
      asked.results.set(entry.call, [...had, entry]);
      places.set(at, asked.place);
      continue;
    }
    if (entry.calls) open = new Map(entry.calls.map((id) => [id, item]));
    item.place = made.length;
    places.set(at, item.place);
    made.push(item);
  }
  return made;
}

// Where each entry of the shown path stands among the items.
const places = new Map();
let chunks = [];
const watcher = new IntersectionObserver(
  (seen) => seen.filter((one) => one.isIntersecting).forEach((one) => chunks[Number(one.target.dataset.chunk)]?.fill()),
  { rootMargin: "1200px 0px" },
);

function draw() {
  places.clear();
  watcher.disconnect();
  const path = pathTo(leaf);
  const shownItems = items(path);
  outline.onPath = new Set(path);
  chunks = [];
  for (let from = 0; from < shownItems.length; from += CHUNK) chunks.push(chunkOf(shownItems.slice(from, from + CHUNK), chunks.length));
  conversation.replaceChildren(...chunks.map((chunk) => chunk.section));
  // The first is there at once, the others when they come near.
  chunks[0]?.fill();
  chunks.forEach((chunk) => watcher.observe(chunk.section));
  banner.hidden = leaf === active;
  outline.draw();
  marks.again();
}

function chunkOf(of, number) {
  const section = el("section", "chunk waiting");
  section.dataset.chunk = number;
  section.style.minHeight = of.reduce((sum, { entry }) => sum + (entry.kind === "setting" ? 28 : 110), 0) + "px";
  const fill = () => {
    if (!section.classList.contains("waiting")) return;
    section.classList.remove("waiting");
    section.style.minHeight = "";
    section.append(...of.flatMap(({ entry, results }) => [...forks(entry), show(entry, results)]));
    watcher.unobserve(section);
    marks.again();
  };
  return { section, fill };
}

// At a place where the session was gone on with more than once: which of the branches this is, and the way to the others.
function forks(entry) {
  const all = siblings(entry);
  if (all.length < 2) return [];
  const here = all.indexOf(entry.at);
  const to = (step) => all[(here + step + all.length) % all.length];
  const isActive = pathTo(active).includes(entry.at);
  const bar = el("nav", "fork" + (isActive ? " active" : ""));
  bar.setAttribute("aria-label", say("Branches", "가지"));
  bar.append(
    button("step", "‹", say("The branch before", "이전 가지"), () => branch(to(-1))),
    el("span", "which", say(`Branch ${here + 1} of ${all.length}`, `가지 ${here + 1}/${all.length}`)),
    button("step", "›", say("The next branch", "다음 가지"), () => branch(to(1))),
    el("span", "aside", isActive ? say("the active one", "현재 가지") : say("left", "떠난 가지")),
  );
  return [bar];
}

// Shows the branch that goes on with an entry.
function branch(at) {
  leaf = tipOf(at);
  draw();
  goTo(at);
}

// Shows an entry, on whichever branch it is.
function goTo(at) {
  if (!places.has(at)) {
    leaf = tipOf(at);
    draw();
  }
  const place = places.get(at);
  const chunk = chunks[Math.floor(place / CHUNK)];
  chunk.fill();
  const wanted = session.entries[at].id;
  const articles = [...chunk.section.querySelectorAll("article")];
  const article = articles.find((one) => Number(one.dataset.at) === at) ?? articles.find((one) => places.get(Number(one.dataset.at)) === place);
  const within = [...(article?.querySelectorAll("details[data-results]") ?? [])].find((one) => one.dataset.results.split(" ").includes(wanted));
  if (within) within.open = true;
  (within ?? article)?.scrollIntoView({ block: "start" });
  article?.focus({ preventScroll: true });
  flash(within ?? article);
  outline.mark(at);
  try {
    history.replaceState(null, "", "#" + encodeURIComponent(wanted));
  } catch {
    // A page that was opened in some other way has no address of its own.
  }
}

function flash(element) {
  element?.classList.remove("flash");
  requestAnimationFrame(() => element?.classList.add("flash"));
}

// Search: through everything that is said, of all branches, in small steps.
const folded = (text) => text.normalize("NFC").toLowerCase();

function saidBy(value, out, depth = 0) {
  if (typeof value === "string") {
    if (value.length < 2000 || /\s/.test(value.slice(0, 2000))) out.push(value);
  } else if (value && typeof value === "object" && depth < 12) {
    for (const [key, inner] of Object.entries(value)) {
      if (!["id", "parentId", "timestamp", "type", "role", "api", "toolCallId", "thinkingSignature", "textSignature", "gjcOrigin", "gjcLabel", "responseId"].includes(key)) saidBy(inner, out, depth + 1);
    }
  }
  return out;
}

let searching = 0;
function search(text) {
  const query = folded(text.trim());
  const mine = (searching += 1);
  marks.query = query;
  marks.again();
  if (!query) {
    outline.found = null;
    count.textContent = "";
    outline.arrange();
    return;
  }
  const found = new Set();
  let at = 0;
  const step = () => {
    if (mine !== searching) return;
    const until = performance.now() + 12;
    while (at < session.entries.length && performance.now() < until) {
      const entry = session.entries[at];
      const words = entry.lost !== undefined ? [str(entry.lost)] : saidBy(whole(entry), []);
      if (folded(words.join("\n")).includes(query)) found.add(at);
      at += 1;
    }
    const done = at >= session.entries.length;
    count.textContent = say(`${COUNT.format(found.size)} found`, `${COUNT.format(found.size)}개`) + (done ? "" : " …");
    outline.found = found;
    if (done || at % 50 === 0) outline.arrange();
    if (!done) setTimeout(step);
  };
  step();
}

// To the next entry with what is searched for.
function nextFound(step) {
  if (!outline.found?.size) return;
  const rows = outline.rows.map((row) => row.at);
  const here = rows.indexOf(outline.current);
  goTo(rows[(here + step + rows.length) % rows.length] ?? rows[0]);
}

const field = el("input", "search");
field.type = "search";
field.name = "search";
field.placeholder = say("Search all branches", "모든 가지에서 찾기");
field.setAttribute("aria-label", field.placeholder);
const count = el("output", "count");
let typing = 0;
field.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => search(field.value), 120);
});
field.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (event.key === "Enter") {
    nextFound(event.shiftKey ? -1 : 1);
    // The next one is a press of Enter away.
    field.focus({ preventScroll: true });
  } else if (event.key === "Escape") {
    field.value = "";
    search("");
    field.blur();
  } else return;
  event.preventDefault();
});

const filter = el("select", "filter");
filter.name = "filter";
filter.setAttribute("aria-label", say("Which entries are listed", "보일 항목"));
for (const [value, [name]] of Object.entries(FILTERS)) filter.append(Object.assign(el("option", "", name), { value }));
filter.addEventListener("change", () => {
  outline.filter = filter.value;
  outline.arrange();
});

// Head: what session this is.
function pageHead() {
  const { header, head } = session;
  const spent = { in: 0, out: 0, cost: 0 };
  const models = new Set();
  let messages = 0;
  for (const { kind, usage, model } of session.entries) {
    if (["user", "assistant", "tool"].includes(kind)) messages += 1;
    if (usage) for (const key of Object.keys(spent)) spent[key] += usage[key];
    if (model) models.add(model);
  }
  const facts = el("dl", "facts");
  const fact = (name, value) => value && facts.append(el("div", "", el("dt", "", name), put(el("dd", ""), value)));
  fact(say("Folder", "폴더"), str(header.cwd));
  fact(say("Begun", "시작"), when(header.timestamp));
  fact(say("Models", "모델"), [...models].join(", "));
  fact(say("Messages", "메시지"), COUNT.format(messages));
  if (spent.out) fact(say("Usage", "사용량"), used(spent));
  fact(say("Session", "세션"), str(header.id));
  fact(say("Forked from", "갈라져 나온 세션"), str(header.parentSession));
  if (head.level !== "PUBLIC" || head.trusted === false) fact(say("Label", "레이블"), `${str(head.level)}, ${head.trusted ? say("trusted", "신뢰함") : say("holds words of others", "다른 출처의 글 포함")}`);
  const made = el("header", "head", put(el("h1", ""), title()), facts);
  const env = session.entries.findLast((entry) => entry.type === "gjc.env" && outline.onPath.has(entry.at)) ?? session.entries.findLast((entry) => entry.type === "gjc.env");
  if (env) made.append(...environment(obj(whole(env).data)));
  if (session.damage.length || head.unfinished) {
    const notes = [...session.damage, ...(head.unfinished ? [say("the last line is unfinished: a writer may be at work, or was cut off", "마지막 줄이 끝나지 않았습니다: 쓰는 중이거나 중단되었습니다")] : [])];
    made.append(card("part broken", [el("span", "name", say(notes.length === 1 ? "Damaged in one place" : `Damaged in ${notes.length} places`, `손상된 곳 ${notes.length}군데`))], () => [el("ul", "", ...notes.map((note) => put(el("li", ""), note)))]));
  }
  if (session.childSessions.length) made.append(card("part", [el("span", "name", say(`Subagents: ${session.childSessions.length + session.moreChildren}`, `하위 에이전트: ${session.childSessions.length + session.moreChildren}`))], childList));
  return made;
}

// Sessions of subagents are pages of their own, beside this one once they are made.
function childList() {
  const made = el("ul", "children");
  for (const { child, bytes: size } of session.childSessions) {
    const name = `gjc-session-${child.replace(/\.jsonl$/, "")}.html`;
    const to = put(el("a", ""), child);
    to.href = "./" + encodeURIComponent(name);
    to.rel = "noopener noreferrer";
    made.append(el("li", "", to, el("span", "aside", ` ${bytes(size)}`)));
  }
  const how = say("Each is a page of its own, once it was made with: gjc sessions export FILE", "각각은 gjc sessions export FILE 로 만들면 이 페이지 옆에서 열립니다");
  return [el("p", "aside", how), made];
}

const THEMES = [["", say("Like the system", "시스템 설정"), "◐"], ["light", say("Light", "밝게"), "○"], ["dark", say("Dark", "어둡게"), "●"]];
let theme = 0;
const themer = button("tool", "◐", say("Light or dark", "밝게 또는 어둡게"), () => {
  theme = (theme + 1) % THEMES.length;
  document.documentElement.dataset.theme = THEMES[theme][0];
  themer.textContent = THEMES[theme][2];
  themer.title = THEMES[theme][1];
});
const writer = button("tool", "¶", say("As written, or formatted", "원문 또는 서식"), () => {
  asWritten = !asWritten;
  writer.setAttribute("aria-pressed", String(asWritten));
  const at = outline.current;
  draw();
  if (at >= 0 && places.has(at)) goTo(at);
});
const opener = button("tool", "⊞", say("Open or close all tool calls", "도구 호출 모두 펼치기 또는 접기"), () => {
  const cards = [...conversation.querySelectorAll("details.call, details.thinking")];
  const open = cards.some((one) => !one.open);
  cards.forEach((one) => (one.open = open));
});
const lister = button("tool list", "☰", say("Entries", "항목"), () => document.body.classList.toggle("with-outline"));

banner.append(
  el("span", "", say("This is a branch that was left.", "떠난 가지를 보고 있습니다.")),
  button("", say("To the active branch", "현재 가지로"), "", () => {
    leaf = active;
    draw();
    goTo(active);
  }),
);

function step(by) {
  const all = [...new Set(places.values())];
  const here = places.get(outline.current) ?? -1;
  const to = Math.min(all.length - 1, Math.max(0, here + by));
  const at = [...places].find(([, place]) => place === to)?.[0];
  if (at !== undefined) goTo(at);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.target.closest?.("input, select")) return;
  // By the place of the key, so that a Korean layout does the same.
  const does = {
    Slash: () => field.focus(),
    KeyJ: () => step(1),
    KeyK: () => step(-1),
    KeyN: () => nextFound(event.shiftKey ? -1 : 1),
    KeyT: () => opener.click(),
    KeyM: () => writer.click(),
    Escape: () => document.body.classList.remove("with-outline"),
  }[event.code];
  if (!does) return;
  event.preventDefault();
  if (event.code === "Slash") document.body.classList.add("with-outline");
  does();
});

const toHash = () => {
  let id = location.hash.slice(1);
  try {
    id = decodeURIComponent(id);
  } catch {
    // Taken as it is.
  }
  const entry = id && session.entries.find((one) => one.id === id);
  if (entry) goTo(entry.at);
};
addEventListener("hashchange", toHash);
addEventListener("beforeprint", () => chunks.forEach((chunk) => chunk.fill()));

document.documentElement.lang = LANGUAGE;
const side = el("aside", "side", el("div", "find", field, el("div", "narrow", filter, count)), outline.scroller, el("p", "keys", say("/ search · j k entries · n next found · t tools · m as written", "/ 찾기 · j k 항목 · n 다음 결과 · t 도구 · m 원문")));
const bar = el("div", "bar", lister, put(el("span", "title"), title()), opener, writer, themer);
const foot = el("footer", "foot", say(`Exported ${when(session.head.exported)} with gjc ${str(session.head.gjc)}`, `${when(session.head.exported)}, gjc ${str(session.head.gjc)} 으로 내보냄`));
outline.onPath = new Set(pathTo(leaf));
document.body.append(bar, side, el("div", "page", pageHead(), banner, conversation, foot), el("div", "shade"));
document.querySelector(".shade").addEventListener("click", () => document.body.classList.remove("with-outline"));
outline.arrange();
draw();
toHash();
document.documentElement.dataset.ready = "true";
