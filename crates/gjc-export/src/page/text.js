// The page of a session. It builds elements and text nodes, never markup: nothing of a session is parsed as HTML.
// The parts are one module, in this order: text, code, markdown, session, entry, outline, main.

const korean = navigator.language.toLowerCase().startsWith("ko");

// What is said by the page itself, in the reader's language.
const say = (english, inKorean) => (korean ? inKorean : english);

// An element with a class and children (elements, or strings as text).
function el(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function button(className, text, title, act) {
  const made = el("button", className, text);
  made.type = "button";
  made.title = title;
  made.addEventListener("click", act);
  return made;
}

// Characters that a reader does not see and that change what is seen: marks and overrides of direction, spaces without
// width, operators without a sign, fillers of Hangul, tags, control characters. They are named where they stand.
const UNSEEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e007f}\u{e0100}-\u{e01ef}]/gu;
const SEEN = /^[\t\n\r\x20-\x7e\u00a0-\u0600\u1100-\u1112\u1161-\u1175\u11a8-\u11c2\uac00-\ud7a3\u4e00-\u9fff]*$/u;

const nameOf = (character) => "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");

// Puts text into an element, with what nobody sees by its name.
function put(parent, text) {
  if (SEEN.test(text)) {
    parent.append(text);
    return parent;
  }
  let from = 0;
  for (const found of text.matchAll(UNSEEN)) {
    parent.append(text.slice(from, found.index), named(found[0]));
    from = found.index + found[0].length;
  }
  parent.append(text.slice(from));
  return parent;
}

function named(character) {
  const mark = el("span", "unseen", nameOf(character));
  mark.title = say("a character that is not seen", "보이지 않는 문자");
  return mark;
}

// The same as a plain string.
const shown = (text) => text.replace(UNSEEN, (character) => nameOf(character));

// Text of any value of a session: what is no text is shown as data.
const str = (value) => (typeof value === "string" ? value : value == null ? "" : JSON.stringify(value));
const num = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
const list = (value) => (Array.isArray(value) ? value : []);
const obj = (value) => (value !== null && typeof value === "object" && !Array.isArray(value) ? value : {});

// The first line with something in it, short enough for a row.
function preview(text, most = 110) {
  const line = text.slice(0, 2000).trim().replace(/\s+/g, " ");
  return line.length > most ? line.slice(0, most).replace(/[\ud800-\udbff]$/, "") + "…" : line;
}

// The same of Markdown, without the marks that would only be noise in one line.
const gist = (text) => preview(text.slice(0, 2000).replace(/^\s*(?:#{1,6}|>|[-*+]) +/gm, " ").replace(/\*\*|`{3,}\w*/g, ""));

const LANGUAGE = korean ? "ko" : "en";
const WHEN = new Intl.DateTimeFormat(LANGUAGE, { dateStyle: "medium", timeStyle: "short" });
const HOUR = new Intl.DateTimeFormat(LANGUAGE, { timeStyle: "short" });
const COUNT = new Intl.NumberFormat(LANGUAGE);

function when(text, format = WHEN) {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? str(text) : format.format(at);
}

const tokens = (count) => (count < 1000 ? String(count) : count < 1e6 ? (count / 1000).toFixed(1) + "k" : (count / 1e6).toFixed(2) + "M");
const dollars = (sum) => "$" + (sum >= 1 ? sum.toFixed(2) : sum.toFixed(4).replace(/0{1,2}$/, ""));
const bytes = (count) => (count < 1024 ? count + " B" : count < 1 << 20 ? (count / 1024).toFixed(1) + " KB" : (count / (1 << 20)).toFixed(1) + " MB");

// So much of a text is shown at once; the rest when it is asked for.
const SHOWN = 60000;

// Puts text by `fill(parent, text)`; of a very long one the beginning, and a button for the rest.
function putLong(parent, text, fill = put) {
  if (text.length <= SHOWN) {
    fill(parent, text);
    return parent;
  }
  const cut = text.lastIndexOf("\n", SHOWN);
  fill(parent, text.slice(0, cut > SHOWN / 2 ? cut : SHOWN));
  const more = button("more", say(`Show all ${COUNT.format(text.length)} characters`, `전체 ${COUNT.format(text.length)}자 보기`), "", () => {
    parent.replaceChildren();
    fill(parent, text);
  });
  parent.append(more);
  return parent;
}

// Copies text to the clipboard.
function copier(text) {
  const made = button("copy", say("Copy", "복사"), say("Copy the text", "텍스트 복사"), async () => {
    try {
      await navigator.clipboard.writeText(text());
      made.textContent = say("Copied", "복사됨");
    } catch {
      made.textContent = say("Not allowed here", "복사할 수 없음");
    }
    setTimeout(() => (made.textContent = say("Copy", "복사")), 1500);
  });
  return made;
}
