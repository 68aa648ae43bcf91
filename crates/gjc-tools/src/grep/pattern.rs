//! A pattern that finds a text in either normal form: a line counts if the pattern, in NFC, matches the line in NFC.
//!
//! Files are not normalised to be searched; most lines never match. The pattern is widened into one that finds every line that
//! could count (한 becomes `(?:한|하 ᆫ|ᄒ ᅡ ᆫ)`), and each line that it finds is then asked exactly. What a letter may be
//! written as is told by [`kin`]. A pattern whose letters are all ASCII is taken as it is.

use super::kin::{self, kin};
use crate::input::Form;
use gjc_protocol::Refusal;
use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures, NoError};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ast::AssertionKind::{EndLine, EndText, StartLine, StartText};
use regex_syntax::ast::{self, Ast, ClassSet, ClassSetItem, Span};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The longest pattern, in bytes.
const MOST_BYTES: usize = 64 * 1024;
/// What a compiled pattern may take, and its cache.
const SIZE_LIMIT: usize = 16 << 20;
/// What may follow the first character of a letter and become one with it: vowels and finals of 한글, marks, and the one
/// vowel sign that Unicode counts as a letter.
const TAIL: &str = "[\u{1160}-\u{11FF}\\p{M}\u{16D67}]*";

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
        let Some(wide) = widened(&text) else { return Ok(Self::Plain(exact)) };
        // One that is too large to be built is replaced by one that finds every line.
        let wide = build(&wide, meaning).or_else(|_| build("", Meaning::default()));
        Ok(Self::Forms { wide: wide.map_err(|error| wrong(form, &error, meaning))?, exact })
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
            Ast::Literal(literal) => {
                self.beyond_ascii |= !literal.c.is_ascii();
                if let Some(written) = written(literal.c, &one(&literal.span)) {
                    self.edits.push((literal.span, written));
                }
            }
            Ast::ClassBracketed(class) => {
                let mut wide = WideClass::default();
                let simple = !class.negated
                    && match &class.kind {
                        ClassSet::Item(item) => wide.add(item),
                        ClassSet::BinaryOp(_) => false,
                    };
                self.beyond_ascii |= !one(&class.span).is_ascii();
                self.edits.push((class.span, if simple { wide.done(&one(&class.span)) } else { or_none("[^\n]") }));
            }
            Ast::Dot(span) => self.edits.push((**span, or_none("."))),
            Ast::ClassUnicode(class) => self.edits.push((class.span, or_none("[^\n]"))),
            Ast::ClassPerl(class) => self.edits.push((class.span, or_none(&one(&class.span)))),
            // Within a letter that is written in parts there may be one that NFC does not have, or the other way round.
            Ast::Assertion(at) if !matches!(at.kind, StartLine | EndLine | StartText | EndText) => {
                self.edits.push((at.span, "(?:)".into()));
            }
            _ => {}
        }
        Ok(())
    }
}

/// What stands for any character, with what belongs to it. It may be nothing: where marks come in another order or in one
/// with a letter, what NFC has as a character of its own may have been taken with the one before.
fn or_none(one: &str) -> String {
    format!("(?:{one}{TAIL})?")
}

/// What a character of a pattern in NFC may be written as; nothing where it is always itself.
fn written(c: char, given: &str) -> Option<String> {
    if HANGUL.contains(&u32::from(c)) {
        return Some(format!("(?:{given}|{})", syllables(u32::from(c), u32::from(c))));
    }
    if kin::joins(c) {
        return Some(or_none("[^\n]"));
    }
    let kin = kin(c);
    (!kin.is_empty()).then(|| format!("(?:[{given}{}]{TAIL})", characters(kin.into_iter())))
}

fn characters(of: impl Iterator<Item = char>) -> String {
    of.fold(String::new(), |mut text, c| {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\x{{{:X}}}", u32::from(c));
        text
    })
}

/// A class of characters and ranges, as it may be written.
#[derive(Default)]
struct WideClass {
    syllables: Vec<String>,
    kin: BTreeSet<char>,
    /// Whether it holds what may have been taken with the character before.
    joins: bool,
}

impl WideClass {
    /// Takes in what a class holds; false if it holds more than characters and ranges.
    fn add(&mut self, item: &ClassSetItem) -> bool {
        match item {
            ClassSetItem::Literal(literal) => self.range(literal.c, literal.c),
            ClassSetItem::Range(range) => self.range(range.start.c, range.end.c),
            ClassSetItem::Union(union) => return union.items.iter().all(|item| self.add(item)),
            ClassSetItem::Empty(_) => {}
            _ => return false,
        }
        true
    }

    fn range(&mut self, start: char, end: char) {
        let (first, last) = (u32::from(start).max(*HANGUL.start()), u32::from(end).min(*HANGUL.end()));
        if first <= last {
            self.syllables.push(syllables(first, last));
        }
        self.kin.extend(kin::of_range(start, end));
        self.joins |= kin::joins_within(start, end);
    }

    fn done(self, given: &str) -> String {
        let mut wide = format!("(?:{given}");
        if !self.kin.is_empty() {
            wide.push_str(&format!("|[{}]{TAIL}", characters(self.kin.into_iter())));
        }
        for syllables in self.syllables {
            wide.push('|');
            wide.push_str(&syllables);
        }
        if self.joins {
            wide.push_str(&format!("|[^\n]{TAIL}|"));
        }
        wide.push(')');
        wide
    }
}

/// A range of syllables, half composed and decomposed. More than the range, which the exact question settles: the syllables
/// without a final of the initials and vowels of the range, with any final; the initials with any vowel and final. One alone
/// has its own letters.
fn syllables(first: u32, last: u32) -> String {
    let place = |code: u32| code - HANGUL.start();
    let initial = |code: u32| INITIAL + place(code) / (VOWELS * FINALS);
    let open = |code: u32| HANGUL.start() + place(code) / FINALS * FINALS;
    let range = |first: u32, last: u32| format!("[\\x{{{first:X}}}-\\x{{{last:X}}}]");
    let (vowel, last_vowel, finals) = if first == last {
        let vowel = VOWEL + place(first) / FINALS % VOWELS;
        let end = FINAL + place(first) % FINALS;
        (vowel, vowel, if end == FINAL { String::new() } else { range(end, end) })
    } else {
        (VOWEL, VOWEL + VOWELS - 1, range(FINAL + 1, FINAL + FINALS - 1) + "?")
    };
    let half = range(open(first), open(last));
    format!("{half}{finals}|{}{}{finals}", range(initial(first), initial(last)), range(vowel, last_vowel))
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
    fn letters_are_found_however_they_are_put_together() {
        for (text, line, expected) in [
            // Hanja of the compatibility block, which NFC replaces.
            ("豈", "\u{F900}", true),
            ("\u{F900}", "豈", true),
            ("樂園", "\u{F914}園 \u{F95C}", true),
            ("[一-龥]園", "\u{F914}園", true),
            ("[樂]", "\u{F9BF}", true),
            ("樂", "\u{F900}", false),
            ("\u{2F800}", "丽", true),
            // Half composed: a syllable without its final, and the final.
            ("한글", "하\u{11AB}그\u{11AF}", true),
            ("한글", "하\u{11AB}글", true),
            ("하\u{11AB}글", "한글", true),
            ("[가-힣]글!", "하\u{11AB}그\u{11AF}!", true),
            ("[한]", "하\u{11AB}", true),
            ("하", "하\u{11AB}", false),
            ("[가-깋]나", "나\u{11A8}나", false),
            // Marks in whatever order, with whatever letter that is composed already.
            ("ệ", "e\u{302}\u{323}", true),
            ("ệ", "\u{EA}\u{323}", true),
            ("ệ", "\u{1EB9}\u{302}", true),
            ("ẹ", "\u{E9}\u{323}", true),
            ("ẹ.", "\u{E9}\u{323}", true),
            ("ẹ\u{301}$", "\u{E9}\u{323}", true),
            ("é", "\u{E9}\u{323}", false),
            ("[ẹ-ẻ]x", "\u{E9}\u{323}x", false),
            ("(?i)Å", "\u{212B} a\u{30A}", true),
            ("Ω", "\u{2126}", true),
            ("が.", "か\u{3099}く", true),
            ("あ.い", "あか\u{3099}い", true),
            ("é;", "e\u{301}\u{37E}", true),
            ("éK", "é\u{212A}", true),
            (r"é\b", "e\u{301} x", true),
            (r"é\Bx", "e\u{301}x", true),
        ] {
            assert_eq!(finds(text, line), expected, "{} in {}", text.escape_unicode(), line.escape_unicode());
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_widened_asks_every_line() {
        let text = "é".repeat(2_000);
        assert!(build(&widened(&text).unwrap(), Meaning::default()).is_err());
        assert!(finds(&text, &"e\u{301}".repeat(2_000)) && !finds(&text, &"e\u{301}".repeat(1_999)));
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

    const PARTS: &[&str] = &[
        "각",
        "가",
        "나",
        "é",
        ".",
        "[가-나]",
        "[^가각]",
        "한+",
        "x?",
        "(?:가|나){2}",
        r"\w",
        "^",
        "$",
        "ẹ",
        "\u{301}",
        "樂",
        "が",
        "[à-ỹ]",
        r"\b",
        r"\B",
        r"\W",
        "[가樂é]",
        "क़",
        "\u{F914}",
        "ẹ\u{301}",
        "[一-龥]",
        "K",
        r"\S",
    ];
    /// What lines are made of: composed, in parts, half composed, and what NFC replaces or puts into another order.
    const LETTERS: &[&str] = &[
        "각", "가", "나", "한", "ㄱ", "é", "x", "e", " ", "하", "\u{11AB}", "\u{1112}", "\u{1161}", "\u{301}",
        "\u{302}", "\u{323}", "ẹ", "ê", "樂", "\u{F914}", "\u{F95C}", "か", "\u{3099}", "が", "\u{212A}", "\u{958}",
        "\u{915}", "\u{93C}", "園", "\u{338}", "=",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_line_counts_if_the_composed_pattern_matches_the_composed_line(
            parts in prop::collection::vec(prop::sample::select(PARTS), 1..5),
            letters in prop::collection::vec(prop::sample::select(LETTERS), 0..9),
            forms in any::<(bool, bool)>(),
        ) {
            let (text, line) = (parts.concat(), letters.concat());
            let text: String = if forms.0 { text.nfd().collect() } else { text };
            let line: String = if forms.1 { line.nfd().collect() } else { line };
            let composed: String = text.nfc().collect();
            // Composed, a mark may have become one with the backslash's letter.
            let plain = build(&composed, Meaning::default());
            prop_assume!(plain.is_ok());
            let plain = plain.unwrap();
            // A pattern of ASCII is asked of the line as it is.
            let asked = if composed.is_ascii() { line.clone() } else { line.nfc().collect() };
            prop_assert_eq!(finds(&text, &line), plain.is_match(asked.as_bytes()).unwrap());
        }
    }
}
