//! What is assigned to a name that tells of a secret: `AWS_SECRET_ACCESS_KEY=…`, `password: "…"`, `"apiKey": ["…"]`.

use super::MASKED;
use regex::Regex;
use std::ops::Range;

/// The name, and the sign behind it; a type may stand between (`let password: &str = "…"`).
const ASSIGNED: &str = r#"(?x)
    (?<name> [A-Za-z0-9_.-]*? (?: (?i: (?: password | passwd | passphrase | pwd | secret (?: [_-]?key )? | api[_-]?key
        | access[_-]?key | private[_-]?key ) s? | token | authorization ) | _TOKEN | _KEY | _[Pp][Aa][Ss][Ss] | _PAT ) )
    ["'\\]{0,5} [\ \t]{0,8}
    (?: : [\ \t]? &? (?: 'static[\ ] )? (?: str | string | String | Option<String> | any ) [\ \t]{0,8} = | := | => | ==? | : )
    (?: \r?\n )? [\ \t]{0,8}"#;

/// Words behind such names that tell what stands there, and do not.
const KINDS: &[&str] = &[
    "string",
    "number",
    "boolean",
    "object",
    "hidden",
    "optional",
    "required",
    "undefined",
    "redacted",
    "masked",
    "integer",
    "unknown",
    "nullable",
    "secret",
    "default",
    "present",
    "absent",
    "[secret]",
];
/// Words of sentences about passwords.
const ABOUT: &[&str] =
    &["password", "passphrase", "enter ", "required", "invalid", "must ", "cannot ", "비밀번호", "암호를"];
/// Where programs have secrets from.
const PLACES: &[&str] = &[
    "self", "this", "process", "env", "os", "config", "cfg", "settings", "req", "request", "ctx", "args", "opts",
    "options", "props", "params", "state", "user", "body", "data", "import", "std", "crate", "secrets", "vars", "var",
    "z", "form",
];

/// The fewest characters behind a name that says that it is a password, and behind another one.
const SHORTEST: (usize, usize) = (6, 8);
/// Bytes of a value that are looked at.
const LOOKED_AT: usize = 512;
/// Strings of a list that are looked at.
const LISTED: usize = 256;

#[derive(Debug)]
pub(super) struct Assigned(Regex);

impl Assigned {
    pub(super) fn new() -> Option<Self> {
        Regex::new(ASSIGNED).ok().map(Self)
    }

    /// A text without the values, and how many there were.
    pub(super) fn out(&self, text: &str) -> (String, usize) {
        let (mut without, mut from, mut at, mut count) = (String::with_capacity(text.len()), 0, 0, 0);
        while let Some(found) = self.0.captures_at(text, at) {
            let (Some(whole), Some(name)) = (found.get(0), found.name("name")) else { break };
            at = whole.end();
            for value in values(text, name.range(), whole.range()) {
                without.push_str(&text[from..value.start]);
                without.push_str(MASKED);
                from = value.end;
                at = value.end;
                count += 1;
            }
        }
        without.push_str(&text[from..]);
        (without, count)
    }

    /// Whether a string or a number of JSON is a secret by the name that it stands under.
    pub(super) fn is_under(&self, name: &str, value: &str) -> bool {
        let sign = format!("{name}=");
        let names = self.0.captures(&sign).is_some_and(|found| found["name"] == *name && found[0] == *sign);
        names && is_quoted(name, value)
    }
}

/// The secrets behind a name and its sign.
fn values(text: &str, name: Range<usize>, whole: Range<usize>) -> Vec<Range<usize>> {
    let (start, sign) = (whole.end, &text[name.end..whole.end]);
    let at_line = text[..name.start].ends_with('\n') || name.start == 0;
    let name = &text[name];
    let mut found = Vec::new();
    if let Some(list) = text[start..].strip_prefix('[') {
        let mut at = text.len() - list.len();
        for _ in 0..LISTED {
            at += text[at..].len() - text[at..].trim_start_matches([' ', '\t', '\r', '\n', ',']).len();
            let Some(value) = quoted(text, at) else { break };
            at = text[value.end..].find(['"', '\'', '`']).map_or(text.len(), |quote| value.end + quote + 1);
            if is_quoted(name, &text[value.clone()]) {
                found.push(value);
            }
        }
        return found;
    }
    let marked =
        text[start..].strip_prefix(['b', 'r', 'f', 'u', '@', '$']).filter(|rest| rest.starts_with(['"', '\'']));
    let at = marked.map_or(start, |rest| text.len() - rest.len());
    match quoted(text, at) {
        Some(value) if is_quoted(name, &text[value.clone()]) => found.push(value),
        Some(_) => {}
        None => {
            let quotes = text[at..].len() - text[at..].trim_start_matches(['"', '\'', '\\', '`']).len();
            found.extend(bare(text, at + quotes, name, sign, at_line));
        }
    }
    found
}

/// What stands between quotes of either kind, which may themselves be in a string: up to the same ones, in the same line.
fn quoted(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = &text[start..];
    let slashes = rest.len() - rest.trim_start_matches('\\').len();
    let quote = rest[slashes..].chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let from = start + slashes + 1;
    let mut behind = 0;
    for (at, c) in text[from..].char_indices() {
        match c {
            '\n' => return None,
            '\\' => behind += 1,
            _ if c == quote && behind == slashes => return Some(from..from + at - slashes),
            // The end of the string that all this is in.
            '"' if behind < slashes => return None,
            _ => behind = 0,
        }
    }
    None
}

/// What stands without quotes, when it is a secret.
fn bare(text: &str, start: usize, name: &str, sign: &str, at_line: bool) -> Option<Range<usize>> {
    // Whether it is one shows here; where it ends may be further on.
    let (whole, rest) = (&text[start..], super::window(&text[start..], LOOKED_AT));
    let stops = |c: char| {
        c.is_whitespace()
            || matches!(c, '"' | '\'' | '`' | ',' | ';' | '(' | ')' | '[' | ']' | '{' | '}')
            || matches!(c, '<' | '>' | '|' | '&' | '\\')
    };
    let mut end = rest.find(stops).unwrap_or(rest.len());
    let assigns = sign.contains('=');
    if assigns && name.to_ascii_lowercase().ends_with("passphrase") {
        // It has blanks.
        let line = &rest[..rest.find(['\n', '\r', '"', '\'', '`', '\\']).unwrap_or(rest.len())];
        let is_code = line.contains(['(', ')', '{', '}', '[', ']', ';', '<', '>', ',']) || is_place(line.trim());
        if !is_code && !is_blank(line) && line.trim().chars().count() >= SHORTEST.0 && line.trim().contains(' ') {
            return Some(start..start + line.trim_end().len());
        }
    }
    let behind = &rest[end..];
    let value = rest[..end].trim_end_matches([':', '?']);
    end = value.len();
    // `get_password(`, `Option<String>`, `list[3]`.
    if behind.starts_with(['(', '[', '<', '{']) || value.contains("::") || is_blank(value) || !is_long(name, value) {
        return None;
    }
    let code = value.starts_with(['&', '*', '$']) && value[1..].chars().all(|c| c.is_alphanumeric() || c == '_');
    if code || is_path(name, value) || is_place(value) {
        return None;
    }
    let (digit, letter) = (value.contains(|c: char| c.is_ascii_digit()), value.contains(char::is_alphabetic));
    let variable = !name.contains(|c: char| c.is_ascii_lowercase());
    let strong = is_password(name);
    let symbol = value.trim_end_matches(['!', '.', '*']).contains(['!', '#', '%', '^', '$', '@', '~']);
    let tight = matches!(sign, "=" | ":=");
    // In a file of settings: nothing else is in the line.
    let setting = strong
        && at_line
        && tight
        && behind.trim_start_matches(' ').chars().next().is_none_or(|c| c == '\n' || c == '\r');
    let foreign = strong && assigns && value.contains(|c: char| c.is_alphabetic() && !c.is_ascii());
    let secret = match (letter, digit) {
        (false, true) => !is_count(name, value),
        (true, true) => true,
        (true, false) => variable || symbol || setting || foreign,
        (false, false) => false,
    };
    if end == rest.len() {
        end = whole.find(stops).unwrap_or(whole.len());
    }
    secret.then_some(start..start + end)
}

/// Whether what stands in quotes behind such a name, or alone in JSON, is a secret and no text about one.
fn is_quoted(name: &str, value: &str) -> bool {
    let value = value.trim();
    if is_blank(value) || !is_long(name, value) || is_path(name, value) || is_place(value) {
        return false;
    }
    let (digit, letter) = (value.contains(|c: char| c.is_ascii_digit()), value.contains(char::is_alphabetic));
    if !letter {
        return digit && !is_count(name, value);
    }
    if is_password(name) {
        let small = value.to_lowercase();
        return digit || !ABOUT.iter().any(|word| small.contains(word));
    }
    let variable = !name.contains(|c: char| c.is_ascii_lowercase());
    if value.contains(char::is_whitespace) {
        // `Token abc123def456`: a kind and the thing, no sentence.
        let last = value.split_whitespace().next_back().unwrap_or_default();
        let (digit, letter) =
            (last.contains(|c: char| c.is_ascii_digit()), last.contains(|c: char| c.is_ascii_alphabetic()));
        return value.split_whitespace().count() == 2 && last.len() >= SHORTEST.1 && digit && letter;
    }
    let (upper, lower) =
        (value.contains(|c: char| c.is_ascii_uppercase()), value.contains(|c: char| c.is_ascii_lowercase()));
    let symbol = value.trim_end_matches(['!', '.']).contains(['!', '#', '%', '^', '$', '@', '~', '&', '+']);
    // The name of a variable: `const KEY: &str = "ANTHROPIC_API_KEY"`.
    let names = value.contains('_') && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    digit || symbol || (variable && !names) || (value.len() >= 24 && upper && lower)
}

fn is_password(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix('s').filter(|one| !one.ends_with("_pas")).unwrap_or(&name);
    ["password", "passwd", "passphrase", "pwd", "_pass"].iter().any(|word| name.ends_with(word))
}

fn is_long(name: &str, value: &str) -> bool {
    value.chars().count() >= if is_password(name) { SHORTEST.0 } else { SHORTEST.1 }
}

/// Digits behind a name that counts.
fn is_count(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let counts = ["max", "min", "total", "num", "n_", "count"].iter().any(|word| name.starts_with(word));
    counts || value.contains('.') && name.ends_with("token")
}

/// Nothing yet, or something that tells where the value is to go.
fn is_blank(value: &str) -> bool {
    let small = value.trim().to_lowercase();
    let within = |open: &str, close: &str| small.starts_with(open) && small.ends_with(close);
    let reference = small.strip_prefix('$').is_some_and(|rest| {
        let is_name = rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let telling = ["pass", "secret", "token", "key", "pw"].iter().any(|word| rest.contains(word));
        is_name && (telling || !value.contains(|c: char| c.is_ascii_lowercase()))
    });
    !small.contains(char::is_alphanumeric)
        || small.starts_with("[secret]")
        || small.starts_with("your")
        || small.contains("xxxx")
        || small.contains("...")
        || within("<", ">")
        || within("{", "}")
        || within("${", "}")
        || within("$(", ")")
        || within("%(", ")s")
        || within("[", "]")
        || reference
        || KINDS.contains(&small.as_str())
}

/// `./keys/id`, `/home/ann/.ssh/id_ed25519`; base64 may begin like one.
fn is_path(name: &str, value: &str) -> bool {
    let base64 = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    let mixed = value.contains(|c: char| c.is_ascii_digit())
        && value.contains(|c: char| c.is_ascii_uppercase())
        && value.contains(|c: char| c.is_ascii_lowercase());
    let key = value.len() >= 32 && base64 && mixed;
    let place = name.to_ascii_lowercase().ends_with("pwd");
    let below = value.starts_with("./") || value.starts_with("../") || value.starts_with("~/");
    let path = value.starts_with('/') && (!is_password(name) || place || value[1..].contains('/'));
    (below || path || (place && value.contains(":\\"))) && !key
}

/// `process.env.API_KEY`, `self.password`.
fn is_place(value: &str) -> bool {
    let mut parts = value.split('.');
    let first = parts.next().unwrap_or_default();
    let names =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '?' | '!'));
    value.contains('.') && PLACES.contains(&first.trim_end_matches(['?', '!'])) && parts.all(names)
}

#[cfg(test)]
pub(super) const PATTERN: &str = ASSIGNED;
