// The tree beside the conversation: all entries of all branches, of which only the rows in view are made.

const ROW = 30;

const FILTERS = {
  talk: [say("Conversation", "대화"), (entry) => ["user", "assistant", "summary", "note", "lost"].includes(entry.kind) || session.labels.has(entry.id)],
  user: [say("Your words", "사용자 말"), (entry) => entry.kind === "user"],
  tools: [say("With tools", "도구 포함"), (entry) => entry.kind !== "setting" || session.labels.has(entry.id)],
  labelled: [say("Labelled", "이름표"), (entry) => session.labels.has(entry.id)],
  all: [say("Everything", "전체"), () => true],
};

class Outline {
  constructor(onPick) {
    this.onPick = onPick;
    this.rows = [];
    this.onPath = new Set();
    this.current = -1;
    this.filter = "talk";
    this.found = null;
    this.list = el("div", "rows");
    this.list.setAttribute("role", "tree");
    this.list.setAttribute("aria-label", say("Entries", "항목"));
    this.scroller = el("div", "outline", this.list);
    this.scroller.tabIndex = 0;
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  // Rows in the order of the tree. One child stays at its parent's depth; several are branches, each one step deeper.
  arrange() {
    const [, wanted] = FILTERS[this.filter];
    const keep = (entry) => (this.found ? this.found.has(entry.at) : wanted(entry));
    this.rows = [];
    const waiting = roots.toReversed().map((at) => [at, roots.length > 1 ? 1 : 0]);
    while (waiting.length) {
      const [at, depth] = waiting.pop();
      const entry = session.entries[at];
      if (keep(entry)) this.rows.push({ at, depth });
      const step = entry.children.length > 1 ? 1 : 0;
      for (const child of entry.children.toReversed()) waiting.push([child, depth + step]);
    }
    this.list.style.height = this.rows.length * ROW + "px";
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - 10);
    const last = Math.min(this.rows.length, Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / ROW) + 10);
    this.list.replaceChildren(...this.rows.slice(first, last).map((row, place) => this.row(row, first + place)));
  }

  row({ at, depth }, place) {
    const entry = session.entries[at];
    const row = el("div", `row is-${entry.kind}${this.onPath.has(at) ? " on" : " off"}${entry.failed ? " bad" : ""}`);
    row.style.top = place * ROW + "px";
    row.style.paddingInlineStart = 12 + Math.min(depth, 10) * 14 + "px";
    row.setAttribute("role", "treeitem");
    row.setAttribute("aria-level", String(depth + 1));
    row.setAttribute("aria-selected", String(at === this.current));
    row.append(el("span", "dot"));
    const label = session.labels.get(entry.id);
    if (label) row.append(put(el("span", "chip"), label));
    row.append(put(el("span", "line"), entry.text || entry.type || ""));
    row.title = shown(entry.text);
    row.addEventListener("click", () => this.onPick(at));
    return row;
  }

  // Marks the entry that is looked at, and brings its row into view.
  mark(at) {
    this.current = at;
    const place = this.rows.findIndex((row) => row.at === at);
    if (place >= 0) {
      const top = place * ROW;
      const { scrollTop, clientHeight } = this.scroller;
      if (top < scrollTop + ROW || top > scrollTop + clientHeight - 2 * ROW) this.scroller.scrollTop = Math.max(0, top - clientHeight / 3);
    }
    this.draw();
  }

  key(event) {
    const place = this.rows.findIndex((row) => row.at === this.current);
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (Object.hasOwn(steps, event.key)) {
      const to = Math.min(this.rows.length - 1, Math.max(0, place + steps[event.key]));
      if (this.rows[to]) this.mark(this.rows[to].at);
    } else if (event.key === "Enter" && this.current >= 0) this.onPick(this.current);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
