//! A pattern that finds a text in either normal form: a line counts if the pattern, in NFC, matches the line in NFC.
//!
//! Files are not normalised to be searched; most lines never match. The pattern is widened into one that finds every line that
//! could count (한 becomes `(?:한|ᄒ ᅡ ᆫ)`), and each line that it finds is then asked exactly. A pattern whose letters are
//! all ASCII means the same in both forms, and is taken as it is.

use crate::input::Form;
use gjc_protocol::Refusal;
use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures, NoError};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ast::{self, Ast, ClassSet, ClassSetItem, Span};
use std::borrow::Cow;
use std::fmt::Write as _;
use unicode_normalization::char::decompose_canonical;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The longest pattern, in bytes.
const MOST_BYTES: usize = 64 * 1024;
/// What a compiled pattern may take, and its cache.
const SIZE_LIMIT: usize = 16 << 20;
/// A class with more characters than this is widened for 한글 alone.
const WIDE_CLASS: u32 = 1_024;
/// What in NFD follows the first character of a letter: vowels and finals of 한글, and marks.
const TAIL: &str = "[\u{1160}-\u{11FF}\u{0300}-\u{036F}]*";

const HANGUL: std::ops::RangeInclusive<u32> = 0xAC00..=0xD7A3;
const INITIAL: u32 = 0x1100;
const VOWEL: u32 = 0x1161;
/// One before the first final.
const FINAL: u32 = 0x11A7;
const VOWELS: u32 = 21;
const FINALS: u32 = 28;

/// What is searched for.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// The same in both forms.
    Plain(RegexMatcher),
    /// Finds more than counts, then asks exactly.
    Forms { wide: RegexMatcher, exact: RegexMatcher },
}

/// How a pattern is meant.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Meaning {
    /// As a text, not as a regular expression.
    pub(crate) literal: bool,
    /// Whatever the case.
    pub(crate) ignore_case: bool,
}

impl Pattern {
    /// From what a model wrote.
    pub(crate) fn new(form: &Form, given: &str, meaning: Meaning) -> Result<Self, Refusal> {
        if given.is_empty() {
            return Err(form.wrong("`pattern` is empty"));
        }
        if given.len() > MOST_BYTES {
            return Err(form.wrong(format!("`pattern` has more than {MOST_BYTES} bytes")));
        }
        let composed: String = given.nfc().collect();
        let text = if meaning.literal { regex_syntax::escape(&composed) } else { composed };
        let exact = build(&text, meaning).map_err(|error| wrong(form, &error, meaning))?;
        let wide = widened(&text).and_then(|wide| build(&wide, meaning).ok());
        Ok(match wide {
            Some(wide) => Self::Forms { wide, exact },
            None => Self::Plain(exact),
        })
    }
}

fn build(text: &str, meaning: Meaning) -> Result<RegexMatcher, grep_regex::Error> {
    RegexMatcherBuilder::new()
        .case_insensitive(meaning.ignore_case)
        // `^` and `$` are about lines, and a line may end with CR LF.
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .crlf(true)
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(SIZE_LIMIT)
        .build(text)
}

fn wrong(form: &Form, error: &grep_regex::Error, meaning: Meaning) -> Refusal {
    let text = error.to_string();
    let why = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let why = why.strip_prefix("error: ").unwrap_or(why);
    if why.contains("\"\\n\"") || why.contains(r"'\n'") || why.contains("literal") && why.contains(r"\n") {
        let refusal = form.wrong("`pattern` holds a line feed, and is asked of single lines");
        return refusal.hint("search for one of the lines, with context for those around it");
    }
    let hint = if meaning.literal { "make it shorter" } else { "mend it, or set literal to search for the very text" };
    form.wrong(format!("`pattern` is no regular expression: {why}")).hint(hint)
}

/// The pattern that finds both forms of what `pattern` (in NFC) finds, and perhaps more; `None` where all is ASCII.
fn widened(pattern: &str) -> Option<String> {
    let tree = ast::parse::Parser::new().parse(pattern).ok()?;
    let widen = ast::visit(&tree, Widen { pattern, ..Widen::default() }).ok()?;
    if !widen.beyond_ascii {
        return None;
    }
    let (mut text, mut at) = (String::with_capacity(pattern.len() * 4), 0);
    for (span, with) in &widen.edits {
        text.push_str(&pattern[at..span.start.offset]);
        text.push_str(with);
        at = span.end.offset;
    }
    text.push_str(&pattern[at..]);
    Some(text)
}

/// Collects what is to be put in place of what, in the order of the pattern.
#[derive(Default)]
struct Widen<'p> {
    pattern: &'p str,
    edits: Vec<(Span, String)>,
    beyond_ascii: bool,
}

impl ast::Visitor for Widen<'_> {
    type Output = Self;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<Self, Self::Err> {
        Ok(self)
    }

    fn visit_pre(&mut self, tree: &Ast) -> Result<(), Self::Err> {
        let one = |span: &Span| self.pattern[span.start.offset..span.end.offset].to_string();
        match tree {
            Ast::Literal(literal) if !literal.c.is_ascii() => {
                self.beyond_ascii = true;
                if let Some(apart) = decomposed(literal.c) {
                    self.edits.push((literal.span, format!("(?:{}|{apart})", one(&literal.span))));
                }
            }
            Ast::ClassBracketed(class) => {
                let (mut apart, mut simple) = (Vec::new(), !class.negated);
                match &class.kind {
                    ClassSet::Item(item) => simple &= alternatives(item, &mut apart),
                    ClassSet::BinaryOp(_) => simple = false,
                }
                self.beyond_ascii |= !one(&class.span).is_ascii();
                if !simple {
                    self.edits.push((class.span, format!("(?:[^\n]{TAIL})")));
                } else if !apart.is_empty() {
                    self.edits.push((class.span, format!("(?:{}|{})", one(&class.span), apart.join("|"))));
                }
            }
            Ast::Dot(span) => self.edits.push((**span, format!("(?:.{TAIL})"))),
            Ast::ClassUnicode(class) => self.edits.push((class.span, format!("(?:[^\n]{TAIL})"))),
            Ast::ClassPerl(class) => self.edits.push((class.span, format!("(?:{}{TAIL})", one(&class.span)))),
            _ => {}
        }
        Ok(())
    }
}

/// The NFD of a character as a pattern, if it is another text.
fn decomposed(c: char) -> Option<String> {
    let mut apart = String::new();
    decompose_canonical(c, |part| apart.push(part));
    (!apart.chars().eq([c])).then(|| regex_syntax::escape(&apart))
}

/// The decomposed forms of what a class holds; false if it holds more than characters and ranges.
fn alternatives(item: &ClassSetItem, apart: &mut Vec<String>) -> bool {
    match item {
        ClassSetItem::Literal(literal) => {
            apart.extend(decomposed(literal.c));
            true
        }
        ClassSetItem::Range(range) => {
            let (start, end) = (u32::from(range.start.c), u32::from(range.end.c));
            let (first, last) = (start.max(*HANGUL.start()), end.min(*HANGUL.end()));
            if first <= last {
                apart.push(syllables(first, last));
            }
            if end.saturating_sub(start) <= WIDE_CLASS {
                let others = (start..=end).filter(|code| !HANGUL.contains(code)).filter_map(char::from_u32);
                apart.extend(others.filter_map(decomposed));
            }
            true
        }
        ClassSetItem::Union(union) => union.items.iter().all(|item| alternatives(item, apart)),
        ClassSetItem::Empty(_) => true,
        _ => false,
    }
}

/// A range of syllables, decomposed: the initials of the range with any vowel and final. More than the range, which the exact
/// question settles.
fn syllables(first: u32, last: u32) -> String {
    let initial = |code: u32| INITIAL + (code - HANGUL.start()) / (VOWELS * FINALS);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "[\\u{{{:X}}}-\\u{{{:X}}}][\\u{{{:X}}}-\\u{{{:X}}}][\\u{{{:X}}}-\\u{{{:X}}}]?",
        initial(first),
        initial(last),
        VOWEL,
        VOWEL + VOWELS - 1,
        FINAL + 1,
        FINAL + FINALS - 1,
    );
    text
}

/// A line in NFC; `None` if it is so already.
fn composed(line: &[u8]) -> Option<String> {
    if line.is_ascii() {
        return None;
    }
    let text: Cow<'_, str> = String::from_utf8_lossy(line);
    (is_nfc_quick(text.chars()) != IsNormalized::Yes).then(|| text.nfc().collect())
}

/// Whether the exact pattern matches a line.
fn counts(exact: &RegexMatcher, line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let found = match composed(line) {
        Some(text) => exact.is_match(text.as_bytes()),
        None => exact.is_match(line),
    };
    found.unwrap_or(false)
}

impl Matcher for Pattern {
    type Captures = NoCaptures;
    type Error = NoError;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        let (wide, exact) = match self {
            Self::Plain(plain) => return plain.find_at(haystack, at),
            Self::Forms { wide, exact } => (wide, exact),
        };
        let mut at = at;
        while at <= haystack.len() {
            let Some(found) = wide.find_at(haystack, at)? else { return Ok(None) };
            let start = memchr::memrchr(b'\n', &haystack[..found.start()]).map_or(0, |feed| feed + 1);
            let end =
                memchr::memchr(b'\n', &haystack[found.end()..]).map_or(haystack.len(), |feed| found.end() + feed + 1);
            if counts(exact, &haystack[start..end]) {
                return Ok(Some(found));
            }
            // Nothing of this line counts. At the end there is no further line to ask.
            if end == haystack.len() {
                return Ok(None);
            }
            at = end;
        }
        Ok(None)
    }

    fn new_captures(&self) -> Result<NoCaptures, NoError> {
        Ok(NoCaptures::new())
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, NoError> {
        match self {
            Self::Plain(plain) => plain.find_candidate_line(haystack),
            Self::Forms { .. } => Ok(self.find_at(haystack, 0)?.map(|found| LineMatchKind::Confirmed(found.start()))),
        }
    }

    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, NoError> {
        match self {
            Self::Plain(plain) => plain.shortest_match_at(haystack, at),
            Self::Forms { .. } => Ok(self.find_at(haystack, at)?.map(|found| found.end())),
        }
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        match self {
            Self::Plain(plain) => plain.non_matching_bytes(),
            Self::Forms { wide, .. } => wide.non_matching_bytes(),
        }
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        match self {
            Self::Plain(plain) => plain.line_terminator(),
            Self::Forms { wide, .. } => wide.line_terminator(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const FORM: Form = Form { tool: "grep", example: "{}" };

    fn pattern(text: &str, meaning: Meaning) -> Pattern {
        Pattern::new(&FORM, text, meaning).unwrap_or_else(|refusal| panic!("{text}: {refusal}"))
    }

    fn finds(text: &str, line: &str) -> bool {
        pattern(text, Meaning::default()).is_match(line.as_bytes()).unwrap()
    }

    fn forms(text: &str) -> [String; 2] {
        [text.nfc().collect(), text.nfd().collect()]
    }

    #[test]
    fn either_form_of_a_pattern_finds_either_form_of_a_line() {
        #[rustfmt::skip]
        let table = [
            ("한글", "여기 한글 있다", true), ("한.은", "한글은", true), ("^한글$", "한글", true),
            ("[가-힣]{2}!", "한글!", true), ("[가-깋]나", "각나", true), ("[가-깋]나", "낙나", false),
            ("한[^가]!", "한글!", true), ("한[^글]!", "한글!", false), ("(?:글|말)+ 있", "한글말 있다", true),
            ("글{2}", "글글", true), ("글{2}", "글", false), ("나라", "나락", false), ("나라", "나라가", true),
            (r"한\w+다", "한글이다", true), (r"\b한글\b", "이 한글 은", true), ("한글|영어", "영어", true),
            ("café", "un café", true), ("[é]té", "été", true), ("(?i)É", "é", true), ("naïve", "naive", false),
            (r"\x{D55C}글", "한글", true), (r"한\s글", "한 글", true), (r"\p{Hangul}글", "한글", true), ("[가나한]글", "한글", true),
            (r"(?x) 한 글 ", "한글", true), ("[[가-힣]&&[^나]]글", "한글", true), ("ㄱ", "ㄱ", true), ("가", "각", false),
        ];
        for (text, line, expected) in table {
            for text in forms(text) {
                for line in forms(line) {
                    assert_eq!(finds(&text, &line), expected, "{} in {}", text.escape_unicode(), line.escape_unicode());
                }
            }
        }
    }

    #[test]
    fn a_literal_means_what_it_says() {
        let literal = Meaning { literal: true, ..Meaning::default() };
        for text in forms("f(한글).*[x]") {
            for line in forms("let y = f(한글).*[x];") {
                assert!(pattern(&text, literal).is_match(line.as_bytes()).unwrap());
            }
            assert!(!pattern(&text, literal).is_match("f한글x".as_bytes()).unwrap());
        }
    }

    #[test]
    fn ascii_stays_as_it_is() {
        for text in ["fn .*main", r"\w+", "[a-z]", r"^\s*$", "(?i)todo"] {
            assert!(matches!(pattern(text, Meaning::default()), Pattern::Plain(_)), "{text}");
        }
    }

    #[test]
    fn a_match_is_looked_for_in_every_line() {
        let text = forms("나락\n나락\n나라\n나락").map(String::into_bytes);
        for text in text {
            let found = pattern("나라", Meaning::default()).find(&text).unwrap().unwrap();
            assert_eq!(memchr::memchr_iter(b'\n', &text[..found.start()]).count(), 2);
        }
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        for (text, why) in [
            ("", "is empty"),
            ("(한", "unclosed group"),
            ("[가", "unclosed character class"),
            ("*", "repetition operator missing expression"),
            ("a\nb", "line feed"),
            (r"a\nb", "line feed"),
            (r"(?:\w{900}){900}", "size"),
        ] {
            let refusal = Pattern::new(&FORM, text, Meaning::default()).unwrap_err();
            assert!(refusal.sentence.contains(why) && refusal.hint.is_some(), "{text:?}: {refusal}");
        }
        assert!(Pattern::new(&FORM, &"가".repeat(30_000), Meaning::default()).is_err());
    }

    const PARTS: &[&str] =
        &["각", "가", "나", "é", ".", "[가-나]", "[^가각]", "한+", "x?", "(?:가|나){2}", r"\w", "^", "$"];

    proptest! {
        #[test]
        fn a_line_counts_if_the_composed_pattern_matches_the_composed_line(
            parts in prop::collection::vec(prop::sample::select(PARTS), 1..5), line in "[각가나한ㄱéxe ]{0,8}",
            decompose in any::<(bool, bool)>(),
        ) {
            let text = parts.concat();
            let plain = build(&text.nfc().collect::<String>(), Meaning::default()).unwrap();
            let expected = plain.is_match(line.nfc().collect::<String>().as_bytes()).unwrap();
            let text = if decompose.0 { text.nfd().collect() } else { text };
            let line = if decompose.1 { line.nfd().collect() } else { line };
            prop_assert_eq!(finds(&text, &line), expected);
        }
    }
}
