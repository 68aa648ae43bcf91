//! Globs of names and paths, as `find` and `grep` take them. Both sides are compared in NFC; the disk is never asked here.

use crate::input::Form;
use gjc_protocol::Refusal;
use regex::{Regex, RegexBuilder};
use std::borrow::Cow;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The longest glob, in bytes.
const MOST_BYTES: usize = 4_096;
/// What a compiled glob may take.
const SIZE_LIMIT: usize = 4 << 20;

/// Characters that mean more than themselves.
const SPECIAL: [char; 8] = ['*', '?', '[', ']', '{', '}', ',', '\\'];

/// A glob. Without a `/` it is about names at any depth, with one about the path from the searched folder; `*` stays within
/// a name, `**` does not; a `/` at the end means folders; a `!` at the beginning leaves out what it matches and what is in it.
pub(crate) struct Glob {
    pattern: Pattern,
    whole_path: bool,
    folders: bool,
    excludes: bool,
}

/// What of a path or a name must match.
enum Pattern {
    /// `*` and a text: most globs are one, and a search for them looks at every name of a tree.
    End(String),
    Any(Regex),
}

impl Pattern {
    fn is_match(&self, name: &str) -> bool {
        match self {
            Self::End(end) => name.ends_with(end),
            Self::Any(pattern) => pattern.is_match(name),
        }
    }
}

impl Glob {
    /// From what a model wrote in `field`.
    pub(crate) fn new(form: &Form, field: &str, given: &str) -> Result<Self, Refusal> {
        let (excludes, rest) = given.strip_prefix('!').map_or((false, given), |rest| (true, rest));
        let rest = rest.strip_prefix("./").unwrap_or(rest);
        let folders = rest.ends_with('/');
        let rest = rest.trim_end_matches('/');
        let whole_path = rest.contains('/');
        let text: String = rest.strip_prefix('/').unwrap_or(rest).nfc().collect();
        if text.is_empty() {
            return Err(form.wrong(format!("`{field}` is empty")));
        }
        if text.len() > MOST_BYTES {
            return Err(form.wrong(format!("`{field}` has more than {MOST_BYTES} bytes")));
        }
        if let Some(end) = text.strip_prefix('*').filter(|end| !whole_path && !end.contains(SPECIAL)) {
            return Ok(Self { pattern: Pattern::End(end.into()), whole_path, folders, excludes });
        }
        let wrong = |why: &str| form.wrong(format!("`{field}` is no glob: {why}"));
        let pattern = translated(&text).map_err(wrong)?;
        let pattern = RegexBuilder::new(&pattern)
            .dot_matches_new_line(true)
            .size_limit(SIZE_LIMIT)
            .build()
            .map_err(|_| wrong("a range is the wrong way round, or there are too many alternatives"))?;
        Ok(Self { pattern: Pattern::Any(pattern), whole_path, folders, excludes })
    }

    /// Whether it is about this path from the searched folder.
    pub(crate) fn finds(&self, path: &[u8], is_folder: bool) -> bool {
        if !self.excludes && !self.whole_path {
            // The usual one: nothing but the name has to be looked at.
            let name = memchr::memrchr(b'/', path).map_or(path, |at| &path[at + 1..]);
            return self.hits(&composed(name), is_folder);
        }
        let path = &*composed(path);
        if self.excludes { !self.hits(path, is_folder) && !self.holds(path) } else { self.hits(path, is_folder) }
    }

    /// Whether a file at this path is to be searched: also one in a folder that the glob names with a `/` at its end.
    pub(crate) fn admits(&self, path: &[u8]) -> bool {
        self.finds(path, false) || (self.folders && !self.excludes && self.holds(&composed(path)))
    }

    /// Whether it is about a folder above.
    fn holds(&self, path: &str) -> bool {
        path.match_indices('/').any(|(end, _)| self.hits(&path[..end], true))
    }

    fn hits(&self, path: &str, is_folder: bool) -> bool {
        if self.folders && !is_folder {
            return false;
        }
        let name = path.rfind('/').filter(|_| !self.whole_path).map_or(path, |at| &path[at + 1..]);
        self.pattern.is_match(name)
    }
}

/// In NFC; what is not UTF-8 becomes U+FFFD.
fn composed(path: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(path);
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return text;
    }
    text.nfc().collect::<String>().into()
}

/// A glob as a regular expression. ripgrep's own crate for globs is not used here: its `?` and `[…]` are about bytes, and a
/// syllable of 한글 has three.
fn translated(glob: &str) -> Result<String, &'static str> {
    let mut pattern = String::from("^(?:");
    let (mut rest, mut open) = (glob, 0usize);
    // Where a name begins, `**/` means any folders, also none.
    let mut at_name = true;
    while let Some(c) = rest.chars().next() {
        if at_name && let Some(after) = rest.strip_prefix("**/") {
            pattern.push_str("(?:.*/)?");
            rest = after;
            continue;
        }
        if at_name && rest == "**" {
            pattern.push_str(".+");
            break;
        }
        rest = &rest[c.len_utf8()..];
        at_name = c == '/';
        match c {
            '*' => {
                rest = rest.trim_start_matches('*');
                pattern.push_str("[^/]*");
            }
            '?' => pattern.push_str("[^/]"),
            '[' => rest = class(rest, &mut pattern)?,
            '{' => {
                open += 1;
                at_name = true;
                pattern.push_str("(?:");
            }
            ',' if open > 0 => {
                at_name = true;
                pattern.push('|');
            }
            '}' if open > 0 => {
                open -= 1;
                pattern.push(')');
            }
            '\\' => {
                let c = rest.chars().next().ok_or("a \\ at the end")?;
                rest = &rest[c.len_utf8()..];
                push_escaped(&mut pattern, c);
            }
            _ => push_escaped(&mut pattern, c),
        }
    }
    if open > 0 {
        return Err("a { is not closed");
    }
    pattern.push_str(")$");
    Ok(pattern)
}

/// What stands behind a `[`; gives what comes after its `]`.
fn class<'g>(rest: &'g str, pattern: &mut String) -> Result<&'g str, &'static str> {
    let (negated, rest) = rest.strip_prefix(['!', '^']).map_or((false, rest), |rest| (true, rest));
    // A `]` in the first place is one of the characters.
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let end = rest[first..].find(']').ok_or("a [ is not closed")? + first;
    pattern.push_str(if negated { "[[^" } else { "[[" });
    for (at, c) in rest[..end].char_indices() {
        let range = c == '-' && at > 0 && at + 1 < end;
        if range { pattern.push('-') } else { push_escaped(pattern, c) }
    }
    pattern.push_str("]&&[^/]]");
    Ok(&rest[end + 1..])
}

fn push_escaped(pattern: &mut String, c: char) {
    pattern.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4])));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const FORM: Form = Form { tool: "find", example: "{}" };

    fn finds(glob: &str, path: &str) -> bool {
        let (path, is_folder) = path.strip_suffix('/').map_or((path, false), |path| (path, true));
        Glob::new(&FORM, "pattern", glob).unwrap().finds(path.as_bytes(), is_folder)
    }

    #[test]
    fn without_a_slash_it_is_about_names_and_with_one_about_paths() {
        #[rustfmt::skip]
        let table = [
            ("*.rs", "a.rs", true), ("*.rs", "src/deep/a.rs", true), ("*.rs", "a.rs.txt", false),
            ("src/*.rs", "src/a.rs", true), ("src/*.rs", "src/deep/a.rs", false), ("src/*.rs", "x/src/a.rs", false),
            ("src/**/*.rs", "src/a.rs", true), ("src/**/*.rs", "src/deep/er/a.rs", true),
            ("**/src/*.rs", "x/src/a.rs", true), ("**/*.rs", "a.rs", true),
            ("/a.rs", "a.rs", true), ("/a.rs", "x/a.rs", false), ("./a/b", "a/b", true),
            ("*.{ts,tsx}", "a.tsx", true), ("[ab].rs", "b.rs", true), ("?.rs", "가.rs", true),
            ("src", "src/", true), ("src/", "src/", true), ("src/", "src", false), ("src", "src/a", false),
            ("!*.rs", "a.rs", false), ("!*.rs", "a.c", true), ("!target", "target/debug/a.c", false),
            ("!a/b", "a/b/c", false), ("!a/b", "a/c", true), (".*", ".env", true), ("*", ".env", true),
            ("**", "a/b", true), ("a/**", "a/b/c", true), ("a/**", "a/", false), ("a/**/b", "a/b", true), ("a**b", "a/b", false),
            ("[!a]*", "b", true), ("[^가-깋]", "나", true), ("[^가-깋]", "각", false), ("[]x]", "]", true), ("[a-]", "-", true),
            ("{a,b/**/c}", "b/x/c", true), ("{src,{test,문서}s}/*", "문서s/x", true), ("a.b", "axb", false), ("(a|b)", "(a|b)", true),
            (r"\*", "*", true), (r"\*", "a", false), ("a,b}", "a,b}", true), ("a[^x]b", "a/b", false),
        ];
        for (glob, path, expected) in table {
            assert_eq!(finds(glob, path), expected, "{glob} {path}");
        }
    }

    #[test]
    fn either_form_of_a_glob_finds_either_form_of_a_name() {
        let forms = |text: &str| [text.nfc().collect::<String>(), text.nfd().collect()];
        for glob in ["한글*.md", "[가-힣][가-힣]보고.md", "??보고.md", "문서/**/*보고.md"] {
            for glob in forms(glob) {
                for name in forms(if glob.contains('/') { "문서/깊이/한글보고.md" } else { "한글보고.md" })
                {
                    assert!(finds(&glob, &name), "{glob} {name}");
                }
            }
        }
        assert!(!finds("하", &forms("한")[1]), "a syllable is not found in a longer one");
    }

    #[test]
    fn a_glob_with_a_slash_at_its_end_admits_what_is_in_the_folder() {
        let glob = Glob::new(&FORM, "glob", "src/").unwrap();
        assert!(glob.admits(b"src/a/b.rs") && glob.admits(b"x/src/a.rs") && !glob.admits(b"srcs/a.rs"));
        let glob = Glob::new(&FORM, "glob", "!src/").unwrap();
        assert!(!glob.admits(b"src/a/b.rs") && glob.admits(b"srcs/a.rs"));
    }

    #[test]
    fn what_is_no_glob_is_told() {
        for (glob, why) in [
            ("", "is empty"),
            ("/", "is empty"),
            ("[a", "is no glob"),
            ("{a", "is no glob"),
            ("[z-a]", "wrong way"),
            ("a\\", "at the end"),
        ] {
            let refusal = Glob::new(&FORM, "pattern", glob).err().unwrap();
            assert!(refusal.sentence.contains(why), "{refusal}");
        }
        assert!(Glob::new(&FORM, "pattern", &"가".repeat(2_000)).is_err());
    }
}
