// Markdown, as far as models write it: blocks first, then what stands in their lines. Markup of HTML is text.

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`\s]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}>\s?/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const DEEPEST = 12;
// Longer lines, and paragraphs, are text: no pattern is tried on them.
const LONGEST_LINE = 4000;
const LONGEST_PARAGRAPH = 20000;

// Puts Markdown into an element.
function putMarkdown(parent, text, depth = 0) {
  if (depth > DEEPEST) return put(parent, text);
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const fence = line.length <= LONGEST_LINE && FENCE.exec(line);
    if (!line.trim()) {
      at += 1;
    } else if (line.length > LONGEST_LINE) {
      parent.append(putLong(el("p", "plain"), line));
      at += 1;
    } else if (fence) {
      at = putFence(parent, lines, at, fence);
    } else if (HEADING.test(line)) {
      const [, marks, words] = HEADING.exec(line);
      parent.append(putInline(el("h" + Math.min(6, marks.length + 2), ""), words));
      at += 1;
    } else if (RULE.test(line)) {
      parent.append(el("hr", ""));
      at += 1;
    } else if (QUOTE.test(line)) {
      let end = at;
      while (end < lines.length && QUOTE.test(lines[end])) end += 1;
      const inner = lines.slice(at, end).map((quoted) => quoted.replace(QUOTE, ""));
      parent.append(putMarkdown(el("blockquote", ""), inner.join("\n"), depth + 1));
      at = end;
    } else if (ITEM.test(line)) {
      at = putList(parent, lines, at, depth);
    } else if (line.includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && DIVIDER.test(lines[at + 1])) {
      at = putTable(parent, lines, at);
    } else {
      let end = at + 1;
      while (end < lines.length && lines[end].trim() && !startsBlock(lines[end])) end += 1;
      parent.append(putInline(el("p", ""), lines.slice(at, end).join("\n")));
      at = end;
    }
  }
  return parent;
}

const startsBlock = (line) => line.length > LONGEST_LINE || FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || ITEM.test(line) || RULE.test(line);

function putFence(parent, lines, at, [, indent, marks, language]) {
  const closes = (line) => line.trim().startsWith(marks) && line.trim().replaceAll(marks[0], "") === "";
  let end = at + 1;
  while (end < lines.length && !closes(lines[end])) end += 1;
  const strip = (line) => (line.startsWith(indent) ? line.slice(indent.length) : line.trimStart());
  const code = lines.slice(at + 1, end).map(strip).join("\n");
  parent.append(box("code", code, (into, part) => putCode(into, part, languageOf(language))));
  return end + 1;
}

function putList(parent, lines, at, depth) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const made = el(ordered ? "ol" : "ul", "");
  if (ordered) made.start = Number.parseInt(mark, 10);
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (!item || item[1].length > indent.length + 3 || item[1].length < indent.length || /\d/.test(item[2]) !== ordered) break;
    const inside = [item[3]];
    const width = item[1].length + item[2].length + 1;
    end += 1;
    // What is indented further belongs to the item; a blank line only when more of it follows.
    while (end < lines.length) {
      const blank = !lines[end].trim();
      const next = blank ? lines[end + 1] : lines[end];
      const deeper = next !== undefined && next.trim() && next.length - next.trimStart().length > item[1].length;
      if (!deeper && (blank || startsBlock(lines[end]))) break;
      inside.push(lines[end].slice(Math.min(width, lines[end].length - lines[end].trimStart().length)));
      end += 1;
    }
    made.append(putItem(inside, depth));
    while (end + 1 < lines.length && !lines[end].trim() && ITEM.test(lines[end + 1])) end += 1;
  }
  parent.append(made);
  return end;
}

function putItem(inside, depth) {
  const item = el("li", "");
  const task = /^\[([ xX])\]\s+/.exec(inside[0]);
  if (task) {
    item.className = "task";
    item.append(el("span", task[1] === " " ? "todo" : "done", task[1] === " " ? "☐ " : "☑ "));
    inside[0] = inside[0].slice(task[0].length);
  }
  let first = 1;
  while (first < inside.length && inside[first].trim() && !startsBlock(inside[first])) first += 1;
  putInline(item, inside.slice(0, first).join("\n"));
  if (first < inside.length) putMarkdown(item, inside.slice(first).join("\n"), depth + 1);
  return item;
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function putTable(parent, lines, at) {
  const sides = cells(lines[at + 1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : ""));
  const row = (line, tag) => {
    const made = el("tr", "");
    cells(line).slice(0, sides.length).forEach((cell, place) => made.append(putInline(el(tag, sides[place]), cell)));
    return made;
  };
  const body = el("tbody", "");
  let end = at + 2;
  for (; end < lines.length && lines[end].includes("|") && lines[end].trim(); end += 1) body.append(row(lines[end], "td"));
  parent.append(el("div", "table", el("table", "", el("thead", "", row(lines[at], "th")), body)));
  return end;
}

// Where a link may lead. Everything else stays text.
function safeAddress(text) {
  if (!/^(?:https?:\/\/|mailto:)/i.test(text) || /[\s\u0000-\u001f]/.test(text)) return null;
  try {
    const address = new URL(text);
    return ["http:", "https:", "mailto:"].includes(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}

function link(words, address) {
  const made = put(el("a", ""), words);
  made.href = address;
  made.rel = "noopener noreferrer";
  made.target = "_blank";
  made.title = shown(address);
  return made;
}

const INLINE =
  /(?<tick>`+)(?<code>[^]*?[^`])\k<tick>(?!`)|\\(?<plain>[!-/:-@[-`{-~])|(?<picture>!?)\[(?<words>[^\[\]]{0,1000})\]\(\s*<?(?<to>[^\s()<>]{0,2000}(?:\([^\s()<>]{0,500}\)[^\s()<>]{0,500})?)>?(?:\s+"[^"]{0,500}")?\s*\)|(?<bare>\bhttps?:\/\/[^\s<>"'`]{1,2000})|<(?<angle>(?:https?:\/\/|mailto:)[^\s<>]{1,2000})>|(?<mark>\*\*\*|\*\*|__|\*|_|~~)/g;

// Puts what stands in a line: code, links, emphasis.
function putInline(parent, text) {
  if (text.length > LONGEST_PARAGRAPH) return put(parent, text);
  const stack = [{ into: parent, mark: "" }];
  const top = () => stack[stack.length - 1].into;
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    const { tick, code, plain, picture, words, to, bare, angle, mark } = found.groups;
    const [start, end] = [found.index, found.index + found[0].length];
    if (start < from) continue;
    put(top(), text.slice(from, start));
    from = end;
    if (tick !== undefined) {
      top().append(put(el("code", ""), code.replace(/^ (.+) $/s, "$1")));
    } else if (plain !== undefined) {
      top().append(plain);
    } else if (to !== undefined) {
      const address = safeAddress(to);
      const name = words || to;
      if (address) top().append(link(picture ? say("picture: ", "그림: ") + name : name, address));
      else put(top(), found[0]);
    } else if (bare !== undefined) {
      const address = bare.replace(/[.,;:!?)\]}'"]+$/, "");
      from = start + address.length;
      const safe = safeAddress(address);
      if (safe) top().append(link(address, safe));
      else put(top(), address);
    } else if (angle !== undefined) {
      const safe = safeAddress(angle);
      if (safe) top().append(link(angle, safe));
      else put(top(), found[0]);
    } else {
      emphasise(stack, mark, text[start - 1] ?? " ", text[end] ?? " ");
    }
  }
  put(top(), text.slice(from));
  // What was opened and not closed was no mark.
  while (stack.length > 1) undo(stack);
  return parent;
}

const TAGS = { "***": "strong", "**": "strong", __: "strong", "*": "em", _: "em", "~~": "s" };

function emphasise(stack, mark, before, after) {
  const open = stack.findLastIndex((level) => level.mark === mark);
  const inWord = mark.startsWith("_") && /[\p{L}\p{N}]/u.test(before) && /[\p{L}\p{N}]/u.test(after);
  if (open > 0 && !/\s/.test(before) && !inWord) {
    while (stack.length > open + 1) undo(stack);
    const closed = stack.pop();
    stack[stack.length - 1].into.append(closed.into);
  } else if (!/\s/.test(after) && !inWord && stack.length < DEEPEST) {
    stack.push({ into: el(TAGS[mark], mark === "***" ? "em" : ""), mark });
  } else {
    stack[stack.length - 1].into.append(mark);
  }
}

function undo(stack) {
  const { into, mark } = stack.pop();
  stack[stack.length - 1].into.append(mark, ...into.childNodes);
}
