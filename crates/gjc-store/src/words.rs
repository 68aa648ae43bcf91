//! Words: what a text is cut into for a search, and when a text holds what is searched for.
//!
//! A text is folded first (NFC, lower case), then cut into runs of one kind of letters:
//!
//! | run | tokens |
//! |---|---|
//! | letters and digits (`read`, `v2`, `größe`) | the word |
//! | 한글 | the word, its stems without particles (`세션에서는` → `세션에서`, `세션`), its pairs of syllables |
//! | letters of scripts that write no blanks (漢字, かな, ไทย) | the run, its letters, its pairs of letters |
//!
//! A query is cut into [`Term`]s in the same way, each without its particles: a word is found as a word, 한글 and 漢字 of two
//! letters or more anywhere in a run. What holds a term has all its tokens ([`Term::tokens`]), so that an index of tokens can
//! rule a text out and never misses one; the reverse is decided by [`Term::is_in`].
//!
//! What never happens here: a file is read; anything is remembered.

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// A text as it is compared: NFC, lower case.
#[must_use]
pub fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    // The small sigma of a word's end is the same letter.
    let lower = |c: char| c.to_lowercase().map(|c| if c == 'ς' { 'σ' } else { c });
    let lower = |text: &str| text.chars().flat_map(lower).collect::<String>();
    if is_nfc(text) { lower(text) } else { lower(&text.nfc().collect::<String>()) }
}

/// Whether a letter belongs to the one before it: a mark, a part of a syllable, a joiner.
#[must_use]
pub fn is_behind(letter: char) -> bool {
    is_combining_mark(letter) || matches!(letter, '\u{1160}'..='\u{11ff}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// How a script writes its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    /// With blanks between them.
    Spaced,
    /// With blanks, and particles at their ends.
    Hangul,
    /// Without blanks.
    Dense,
}

fn script(letter: char) -> Option<Script> {
    match letter {
        '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' => {
            Some(Script::Hangul)
        }
        '\u{0e00}'..='\u{0eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}'
            if letter.is_alphanumeric() || is_combining_mark(letter) =>
        {
            Some(Script::Dense)
        }
        _ if letter.is_alphanumeric() => Some(Script::Spaced),
        _ => None,
    }
}

/// The runs of a folded text, each with its script and whether it stands right behind another run.
fn runs(folded: &str) -> impl Iterator<Item = (&str, Script, bool)> {
    let mut rest = folded;
    let mut joined = false;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            let Some(kind) = script(first) else {
                rest = &rest[first.len_utf8()..];
                joined = false;
                continue;
            };
            let same = |c: char| script(c) == Some(kind) || is_combining_mark(c);
            let end = rest.find(|c| !same(c)).unwrap_or(rest.len());
            let (run, behind) = rest.split_at(end);
            rest = behind;
            return Some((run, kind, std::mem::replace(&mut joined, true)));
        }
    })
}

/// Particles that stand behind a noun, the longest first.
const PARTICLES: &[&str] = &[
    "에서부터",
    "으로부터",
    "에게서는",
    "이라고는",
    "에서는",
    "에서도",
    "에서의",
    "으로는",
    "으로도",
    "으로서",
    "으로써",
    "에게는",
    "에게도",
    "에게서",
    "한테서",
    "까지는",
    "까지도",
    "부터는",
    "로부터",
    "이라고",
    "이라는",
    "이라도",
    "이나마",
    "처럼은",
    "보다는",
    "보다도",
    "에서",
    "으로",
    "에게",
    "한테",
    "께서",
    "까지",
    "부터",
    "마다",
    "처럼",
    "보다",
    "조차",
    "마저",
    "밖에",
    "이나",
    "이랑",
    "이며",
    "하고",
    "라고",
    "라는",
    "라도",
    "로는",
    "로도",
    "로서",
    "로써",
    "에는",
    "에도",
    "에만",
    "와는",
    "과는",
    "와의",
    "과의",
    "만은",
    "만을",
    "만이",
    "만의",
    "들은",
    "들을",
    "들이",
    "들의",
    "들에",
    "들",
    "은",
    "는",
    "이",
    "가",
    "을",
    "를",
    "에",
    "의",
    "와",
    "과",
    "도",
    "로",
    "만",
    "나",
    "랑",
    "야",
];

/// Whether a run is the particle of the word before it, in other letters: `gjc에서`.
fn is_particle(run: &str, joined: bool) -> bool {
    joined && PARTICLES.contains(&run)
}

/// A 한글 word without its last particle; `None` where none is left to take away.
fn without_particle(word: &str) -> Option<&str> {
    let stem = |particle: &&str| word.strip_suffix(*particle).filter(|stem| !stem.is_empty());
    PARTICLES.iter().find_map(stem)
}

/// Each pair of letters that stand beside each other.
fn pairs(run: &str) -> impl Iterator<Item = &str> {
    let ends = run.char_indices().skip(2).map(|(at, _)| at).chain([run.len()]);
    let two = run.chars().nth(1).is_some();
    run.char_indices().zip(ends).map(|((from, _), to)| &run[from..to]).filter(move |_| two)
}

/// Each token of a folded text, some of them more than once.
pub fn tokens(folded: &str, mut each: impl FnMut(&str)) {
    for (run, script, joined) in runs(folded) {
        match script {
            Script::Spaced => each(run),
            // `gjc에서`: the word is the one before.
            Script::Hangul if is_particle(run, joined) => {
                each(run);
                pairs(run).for_each(&mut each);
            }
            Script::Hangul => {
                each(run);
                std::iter::successors(without_particle(run), |stem| without_particle(stem)).for_each(&mut each);
                pairs(run).for_each(&mut each);
            }
            Script::Dense => {
                each(run);
                run.char_indices().for_each(|(at, letter)| each(&run[at..at + letter.len_utf8()]));
                pairs(run).for_each(&mut each);
            }
        }
    }
}

/// One word of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Term {
    /// A word, found as one (or as the stem of one).
    Word(String),
    /// Letters that stand beside each other in a run, at least two.
    Part(String),
    /// One letter of a script without blanks.
    Letter(char),
}

impl Term {
    /// Whether a folded text holds it.
    #[must_use]
    pub fn is_in(&self, folded: &str) -> bool {
        self.find(folded).is_some()
    }

    /// Where a folded text holds it first.
    #[must_use]
    pub fn find(&self, folded: &str) -> Option<usize> {
        match self {
            Self::Part(part) => folded.find(part.as_str()),
            Self::Letter(letter) => folded.find(*letter),
            Self::Word(word) => {
                // Most texts hold it nowhere at all, which is found out faster.
                let first = folded.find(word.as_str())?;
                // Back to where the run begins that it may be the end of.
                let from = folded[..first].rfind(|c| script(c).is_none() && !is_combining_mark(c)).unwrap_or(0);
                let base = folded.as_ptr() as usize;
                let is = |run: &str, kind, joined| {
                    let mut stems = std::iter::successors(without_particle(run), |stem| without_particle(stem));
                    run == word || kind == Script::Hangul && !is_particle(run, joined) && stems.any(|stem| stem == word)
                };
                runs(&folded[from..])
                    .find(|(run, kind, joined)| is(run, *kind, *joined))
                    .map(|(run, ..)| run.as_ptr() as usize - base)
            }
        }
    }

    /// The tokens that each text has that holds it.
    pub fn tokens(&self, mut each: impl FnMut(&str)) {
        match self {
            Self::Word(word) => each(word),
            Self::Part(part) => pairs(part).for_each(each),
            Self::Letter(letter) => each(letter.encode_utf8(&mut [0; 4])),
        }
    }
}

/// The words of a query, each once. None where it has no letters.
#[must_use]
pub fn terms(query: &str) -> Vec<Term> {
    let folded = folded(query);
    let mut terms = Vec::new();
    for (run, script, joined) in runs(&folded) {
        let mut letters = run.chars();
        let (first, more) = (letters.next(), letters.next().is_some());
        let term = match (script, first) {
            (Script::Spaced, _) => Term::Word(run.into()),
            (Script::Hangul, _) if is_particle(run, joined) => continue,
            (Script::Hangul, _) => hangul(run),
            (Script::Dense, Some(letter)) if !more => Term::Letter(letter),
            (Script::Dense, _) => Term::Part(run.into()),
        };
        if !terms.contains(&term) {
            terms.push(term);
        }
    }
    // `.을` has nothing else to go by.
    if terms.is_empty() { runs(&folded).map(|(run, ..)| Term::Word(run.into())).collect() } else { terms }
}

/// The shortest stem that says something. A stem of one syllable does where the particle has two or more: `집에서`, but not
/// `가을`.
fn hangul(run: &str) -> Term {
    let (mut stem, mut word) = (run, run);
    while let Some(shorter) = without_particle(word) {
        let particle = word[shorter.len()..].chars().count();
        if shorter.chars().count() == 1 && particle == 1 {
            break;
        }
        (stem, word) = (shorter, shorter);
    }
    if stem.chars().nth(1).is_some() { Term::Part(stem.into()) } else { Term::Word(stem.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn all(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        tokens(&folded(text), |token| all.push(token.to_owned()));
        all
    }

    fn finds(query: &str, text: &str) -> bool {
        let (terms, text) = (terms(query), folded(text));
        !terms.is_empty() && terms.iter().all(|term| term.is_in(&text))
    }

    #[test]
    fn texts_are_cut_by_how_their_script_writes_words() {
        assert_eq!(all("Read crates/gjc-store_v2.rs!"), ["read", "crates", "gjc", "store", "v2", "rs"]);
        assert_eq!(all("세션에서는"), ["세션에서는", "세션", "세션", "션에", "에서", "서는"]);
        assert_eq!(all("两个字"), ["两个字", "两", "个", "字", "两个", "个字"]);
        assert_eq!(all("gjc에서 Größe"), ["gjc", "에서", "에서", "größe"]);
        assert_eq!(all("…—!"), [""; 0]);
    }

    #[test]
    fn a_korean_word_is_found_whatever_particle_stands_behind_it() {
        for particle in
            ["", "에서", "을", "를", "이", "가", "으로", "은", "는", "의", "까지", "에서는", "으로부터", "들이"]
        {
            assert!(finds("목록", &format!("세션 목록{particle} 보았다")), "{particle}");
            assert!(finds(&format!("목록{particle}"), "긴 목록"), "{particle}");
            assert!(finds(&format!("gjc{particle}"), &format!("그래서 gjc{particle} 한다")), "{particle}");
            assert!(finds("gjc", &format!("gjc{particle}")), "{particle}");
        }
        assert!(
            finds("집에서", "집을 나왔다")
                && finds("목록", "세션목록을")
                && finds("데이터베이스", "고객데이터베이스에서")
        );
        assert!(!finds("가을", "가게") && !finds("목록", "목적") && !finds("데이터베이스", "데이터와 베이스"));
    }

    #[test]
    fn mixed_words_scripts_without_blanks_and_both_normal_forms_are_found() {
        assert!(finds("worktree를", "새 Worktree가 필요") && finds("API키", "api키를 숨긴다"));
        assert!(finds("个字", "这是两个字。") && finds("字", "两个字") && !finds("字个", "两个字"));
        assert!(finds("설정", "\u{1109}\u{1165}\u{11af}\u{110c}\u{1165}\u{11bc}을") && finds("CAFE\u{301}", "café"));
        assert!(finds("ΜΈΤΡΟΣ", "μέτρος"));
        assert!(!finds("cat", "concatenate") && finds("read_file", "the file was read"));
        assert!(terms("  ;— ").is_empty());
        assert_eq!(terms("을"), [Term::Word("을".into())]);
    }

    #[test]
    fn what_holds_a_term_has_its_tokens() {
        let texts = [
            "세션목록에서 gjc를 집에서는",
            "两个字 かな글자ABC한글",
            "é́x 가\u{301}나 ไทยคำ",
            "을 를에서 들",
            "x에서y",
            "gjc들이 들이",
            "字들에서만",
        ];
        let mut proved = 0;
        for text in texts {
            let text = folded(text);
            let mut held = HashSet::new();
            tokens(&text, |token| held.extend([token.to_owned()]));
            let letters: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            for (index, from) in letters.iter().enumerate() {
                for to in &letters[index + 1..] {
                    for term in terms(&text[*from..*to]).iter().filter(|term| term.is_in(&text)) {
                        proved += 1;
                        term.tokens(|token| assert!(held.contains(token), "{term:?} without {token:?} in {text:?}"));
                    }
                }
            }
        }
        assert!(proved > 400, "{proved}");
    }
}
