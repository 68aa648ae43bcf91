//! What is wrong with a file, for a person: place, sentence, the line itself, a way out. No secret is ever shown.

use std::fmt;
use std::path::{Path, PathBuf};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The most columns of a line that are shown.
const SHOWN: usize = 100;
/// The most problems that are shown.
const MOST: usize = 20;

/// One problem of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub sentence: String,
    /// The way out.
    pub hint: Option<String>,
    /// The line itself, without what may be a secret, and the columns before the place.
    shown: (String, usize),
}

impl Problem {
    /// At a byte of a text. Where the line belongs to a name that may hold a secret, no value of it is shown.
    pub(crate) fn at(file: &Path, text: &str, byte: usize, sentence: impl AsRef<str>) -> Self {
        let byte = text.floor_char_boundary(byte.min(text.len()));
        let before = &text[..byte];
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        let line = text[begin..].split(['\n', '\r']).next().unwrap_or_default();
        let within = &before[begin..];
        let shown = match secret_at(&text[..begin], line) {
            None => excerpt(line, within),
            Some(end) => {
                let (kept, ahead) = excerpt(&line[..end], &within[..end.min(within.len())]);
                (format!("{kept}…"), ahead)
            }
        };
        Self {
            file: file.into(),
            line: before.matches('\n').count() + 1,
            column: within.chars().count() + 1,
            sentence: mask(sentence.as_ref()),
            hint: None,
            shown,
        }
    }

    /// Adds the way out.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        write!(f, "{}:{}:{}: {}", self.file.display(), self.line, self.column, self.sentence)?;
        write!(f, "\n  {number} | {}\n  {margin} | {}^", self.shown.0, " ".repeat(self.shown.1))?;
        match &self.hint {
            Some(hint) => write!(f, "\n  {margin} = {hint}"),
            None => Ok(()),
        }
    }
}

/// What is wrong with a file; never nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    /// The first of them.
    pub shown: Vec<Problem>,
    /// How many more there are.
    pub more: usize,
}

impl Problems {
    /// Adds one. What will not be shown is only counted: each costs a look at the text before it.
    pub(crate) fn add(&mut self, problem: impl FnOnce() -> Problem) {
        if self.shown.len() < MOST { self.shown.push(problem()) } else { self.more += 1 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, problem) in self.shown.iter().enumerate() {
            if nth > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Problems {}

/// A line as it may be shown, and how many columns stand before the place.
fn excerpt(line: &str, before: &str) -> (String, usize) {
    let (plain, ahead) = (mask(&flat(line)), flat(before).width());
    // Where the line is long, the place stays in sight.
    let from = ahead.saturating_sub(SHOWN / 2);
    let skipped = if ahead < SHOWN { 0 } else { cut(&plain, from).1 };
    let rest = &plain[skipped..];
    let (shown, taken) = cut(rest, SHOWN);
    let mut text = if skipped > 0 { format!("…{shown}") } else { shown.to_owned() };
    let column = if skipped > 0 { ahead - plain[..skipped].width() + 1 } else { ahead };
    if taken < rest.len() {
        text.push('…');
    }
    let column = column.min(text.width());
    (text, column)
}

/// The part of a text that fits into some columns, and its bytes.
fn cut(text: &str, columns: usize) -> (&str, usize) {
    let mut used = 0;
    let end = text
        .char_indices()
        .find(|(_, c)| {
            used += c.width().unwrap_or(0);
            used > columns
        })
        .map_or(text.len(), |(at, _)| at);
    (&text[..end], end)
}

/// One column for each tab and each character that a terminal would obey.
fn flat(text: &str) -> String {
    let obeyed = |c: char| {
        c.is_control()
            || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
    };
    text.chars().map(|c| if obeyed(c) { ' ' } else { c }).collect()
}

/// Words in a name that say that its value is a secret.
const SECRETS: &[&str] = &["key", "token", "secret", "passw", "credential", "auth"];

/// The bytes of a line that may be shown, if it names a secret or may continue the value of a line above that does.
fn secret_at(above: &str, line: &str) -> Option<usize> {
    let names = |line: &str| {
        // Only ASCII letters are folded: places stay what they were.
        let line = line.to_ascii_lowercase();
        SECRETS.iter().filter_map(|word| Some(line.find(word)? + word.len())).min()
    };
    if let Some(at) = names(line) {
        let end = line[at..].find([':', '=', ' ', '"', '\'']).map_or(line.len(), |end| at + end);
        return Some(end);
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut least = indent(line);
    let mut lines = above.lines().rev().filter(|line| !line.trim().is_empty());
    // Right below it a line without a name of its own goes on with the value, wherever it begins.
    let next = lines.next();
    if next.is_some_and(|next| names(next).is_some()) && !line.contains(':') {
        return Some(0);
    }
    for outer in next.into_iter().chain(lines) {
        if indent(outer) < least {
            least = indent(outer);
            if names(outer).is_some() {
                return Some(0);
            }
        }
    }
    None
}

/// The words of a line, with those that look like keys replaced: long, and of hexadecimal digits or of all kinds of letters.
/// Every word keeps its width, so that the place stays right.
fn mask(line: &str) -> String {
    let wordy = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '=');
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while !rest.is_empty() {
        let word = &rest[..rest.find(|c| !wordy(c)).unwrap_or(rest.len())];
        let has = |kind: fn(char) -> bool| word.contains(kind);
        let mixed = has(|c| c.is_ascii_uppercase()) && has(|c| c.is_ascii_lowercase()) && has(|c| c.is_ascii_digit());
        let looks_like_a_key = word.len() >= 16 && (mixed || word.chars().all(|c| c.is_ascii_hexdigit()));
        if looks_like_a_key || word.starts_with("sk-") {
            out.extend(std::iter::repeat_n('*', word.len()));
        } else {
            out.push_str(word);
        }
        rest = &rest[word.len()..];
        if let Some(c) = rest.chars().next() {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_caret_stands_below_the_place_also_behind_hangul() {
        let text = "a: 1\n# 한글\n한글: 값 # 왜\n";
        let byte = text.find("값").unwrap();
        let problem = Problem::at(Path::new("c.yml"), text, byte, "문장").hint("길");
        assert_eq!(problem.to_string(), "c.yml:3:5: 문장\n  3 | 한글: 값 # 왜\n    |       ^\n    = 길");
    }

    #[test]
    fn of_a_long_line_the_place_is_shown() {
        let text = format!("{}틀림{}", "가".repeat(300), "b".repeat(300));
        let shown = Problem::at(Path::new("c"), &text, text.find("틀림").unwrap(), "x").to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].contains("틀림") && lines[1].width() < SHOWN + 10, "{shown}");
        let column = lines[2].find('^').unwrap();
        let below: usize = lines[1].split("틀림").next().unwrap().width();
        assert_eq!(column, below, "{shown}");
    }

    #[test]
    fn what_may_be_a_key_is_not_shown() {
        for line in ["x: sk-ant-1", "x: \"ghp_0123456789abcdefABCD\"", "{a: 0123456789abcdef0123}"] {
            let problem = Problem::at(Path::new("c"), line, 0, "x").to_string();
            assert!(!problem.contains("ant-1") && !problem.contains("0123456789"), "{problem}");
        }
        let problem = Problem::at(Path::new("c"), "apiKey: hunter2", 8, "sk-abc").to_string();
        assert!(!problem.contains("hunter2") && !problem.contains("abc") && problem.contains("apiKey…"), "{problem}");
        let kept = Problem::at(Path::new("c"), "default: anthropic/claude-sonnet-4-5", 0, "x").to_string();
        assert!(kept.contains("anthropic/claude-sonnet-4-5"), "{kept}");
    }

    proptest! {
        #[test]
        fn any_place_of_any_text_can_be_shown(text in "(?s).{0,200}", byte in 0usize..900) {
            let problem = Problem::at(Path::new("한글.yml"), &text, byte, "x");
            let shown = problem.to_string();
            prop_assert!(shown.lines().count() <= 3, "{}", shown);
            let obeyed = shown.chars().any(|c| c.is_control() && c != '\n');
            prop_assert!(!obeyed);
        }
    }
}
