// Code, diffs and what terminals print, as coloured text.

const WORDS = {
  rust: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
  js: "async await break case catch class const continue debugger default delete do else export extends false finally for from function get if implements import in instanceof interface let new null of private public readonly return set static super switch this throw true try type typeof undefined var void while yield enum namespace declare",
  python: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield",
  go: "break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var",
  c: "alignas auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern false final float for friend goto if inline int long mutable namespace new noexcept nullptr operator override private protected public register return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while import package abstract extends implements interface instanceof null super throws var val fun when object",
  shell: "case do done elif else esac export fi for function if in local return select then until while set echo cd exit",
  sql: "select from where insert into values update set delete create table index drop alter join left right inner outer on group by order having limit offset union as and or not null is in exists between like distinct primary key foreign references default begin commit rollback",
  yaml: "true false null yes no on off",
  css: "",
};
const NAMES = {
  rs: "rust", rust: "rust", js: "js", jsx: "js", ts: "js", tsx: "js", mjs: "js", cjs: "js", javascript: "js", typescript: "js", json: "js", jsonl: "js", json5: "js",
  py: "python", python: "python", go: "go", c: "c", h: "c", cc: "c", cpp: "c", hpp: "c", cxx: "c", java: "c", kt: "c", kotlin: "c", cs: "c", csharp: "c", swift: "c", scala: "c", php: "c",
  sh: "shell", bash: "shell", zsh: "shell", shell: "shell", console: "shell", fish: "shell", make: "shell", makefile: "shell", dockerfile: "shell",
  sql: "sql", yml: "yaml", yaml: "yaml", toml: "yaml", ini: "yaml", conf: "yaml", rb: "python", ruby: "python", css: "css", scss: "css",
  diff: "diff", patch: "diff",
};
const HASH_COMMENTS = new Set(["python", "shell", "yaml"]);

// Each alternative takes what it takes in one go, and looks ahead no further than so far.
const PIECES = (comment, quoted = "'(?:[^'\\\\\\n]|\\\\.){0,400}'") =>
  new RegExp(`(?<comment>${comment})|(?<string>"(?:[^"\\\\\\n]|\\\\.){0,2000}"|${quoted}|\`(?:[^\`\\\\]|\\\\[^])*(?:\`|$))|(?<number>\\b\\d[\\w.]*)|(?<word>[A-Za-z_][\\w]*)`, "gu");
const SLASHES = PIECES("\\/\\/[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)");
// An apostrophe may begin a lifetime.
const RUST = PIECES("\\/\\/[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)", "'(?:\\\\[^'\\n]{1,10}|[^'\\\\\\n])'");
const HASHES = PIECES("(?<![^\\s])#[^\\n]*");
const DASHES = PIECES("--[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)");
const KNOWN = new Map(Object.entries(WORDS).map(([language, words]) => [language, new Set(words.split(" "))]));

function languageOf(name) {
  const key = str(name).toLowerCase();
  return Object.hasOwn(NAMES, key) ? NAMES[key] : "";
}

function languageOfPath(path) {
  return languageOf(/([^./\\]+)$/.exec(str(path))?.[1] ?? "");
}

// Puts code with its comments, strings, numbers and key words marked.
function putCode(parent, code, language) {
  if (language === "diff") return putDiff(parent, code);
  const words = KNOWN.get(language);
  if (!words || code.length > SHOWN) return put(parent, code);
  const pieces = HASH_COMMENTS.has(language) ? HASHES : language === "sql" ? DASHES : language === "rust" ? RUST : SLASHES;
  let from = 0;
  for (const found of code.matchAll(pieces)) {
    const { comment, string, number, word } = found.groups;
    const isKey = word !== undefined && (words.has(word) || (language === "sql" && words.has(word.toLowerCase())));
    const kind = comment !== undefined ? "comment" : string !== undefined ? "string" : number !== undefined ? "number" : isKey ? "key" : "";
    if (!kind) continue;
    put(parent, code.slice(from, found.index));
    parent.append(put(el("span", "c-" + kind), found[0]));
    from = found.index + found[0].length;
  }
  return put(parent, code.slice(from));
}

// Puts a diff, each line by what its first character says.
function putDiff(parent, text) {
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const kind = line.startsWith("+++") || line.startsWith("---") ? "d-file" : line.startsWith("@@") ? "d-place" : line.startsWith("+") ? "d-new" : line.startsWith("-") ? "d-old" : "d-same";
    parent.append(put(el("span", kind), line + "\n"));
  }
  return parent;
}

// What became of one text, as a diff: lines at both ends that are the same stay out of the way.
function changed(before, after) {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  const lines = (of, sign, from, to) => of.slice(from, to).map((line) => sign + line);
  return [
    ...lines(old, " ", Math.max(0, start - 3), start),
    ...lines(old, "-", start, old.length - end),
    ...lines(now, "+", start, now.length - end),
    ...lines(now, " ", now.length - end, Math.min(now.length, now.length - end + 3)),
  ].join("\n");
}

const ESCAPE = /\u001b(?:\[([0-9;:]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])|\r(?!\n)/g;

// Puts what a program printed: its colours are shown, everything else that a terminal would obey is left out.
function putPrinted(parent, text) {
  if (!text.includes("\u001b") && !text.includes("\r")) return put(parent, text);
  let style = { colour: "", bold: false, dim: false, italic: false, under: false };
  let from = 0;
  const flush = (part) => {
    if (!part) return;
    const classes = [style.colour && "a-" + style.colour, style.bold && "a-bold", style.dim && "a-dim", style.italic && "a-italic", style.under && "a-under"].filter(Boolean);
    if (classes.length) parent.append(put(el("span", classes.join(" ")), part));
    else put(parent, part);
  };
  for (const found of text.matchAll(ESCAPE)) {
    flush(text.slice(from, found.index));
    from = found.index + found[0].length;
    if (found[0] === "\r") parent.append("\n");
    if (found[2] === "m") style = styled(style, found[1].split(/[;:]/).map(Number));
  }
  flush(text.slice(from));
  return parent;
}

function styled(before, codes) {
  const style = { ...before };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 0) Object.assign(style, { colour: "", bold: false, dim: false, italic: false, under: false });
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.under = true;
    else if (code === 22) style.bold = style.dim = false;
    else if (code === 23) style.italic = false;
    else if (code === 24) style.under = false;
    else if (code >= 30 && code <= 37) style.colour = String(code - 30);
    else if (code >= 90 && code <= 97) style.colour = String(code - 90);
    else if (code === 39) style.colour = "";
    else if (code === 38 || code === 48) {
      // One of 256, or of all: the eight of the beginning are known, others stay as they are.
      if (codes[at + 1] === 5 && code === 38 && codes[at + 2] < 16) style.colour = String(codes[at + 2] % 8);
      at += codes[at + 1] === 5 ? 2 : 4;
    }
  }
  return style;
}

// A box of code, printed text or data; `fill` puts the text.
function box(className, text, fill) {
  const pre = el("pre", className);
  const code = el("code", "");
  pre.append(code);
  putLong(code, text, fill);
  pre.tabIndex = 0;
  const outer = el("div", "box", pre, copier(() => text));
  return outer;
}
