//! The language of what is said to a person. English is what the code says; another language is made of that at the door
//! (`out::talk`, help, the rows of `gjc doctor`), sentence by sentence, from a table. What programs read (JSON, codes, answers,
//! lists of sessions and settings) is never translated.
//!
//! A test looks through the source for sentences that are said directly and finds each of them in the table. What is put together
//! from parts is translated as far as its parts are known.

mod help;
mod josa;
mod table;

use std::borrow::Cow;
use std::sync::OnceLock;
use table::Table;

/// A language other than English.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// 한국어.
    Korean,
}

static CHOSEN: OnceLock<Option<Language>> = OnceLock::new();
static KOREAN: OnceLock<Table> = OnceLock::new();

impl Language {
    /// As the variables say it: the first of `LC_ALL`, `LC_MESSAGES` and `LANG` that is not empty.
    fn of(get: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().filter_map(get).find(|value| !value.is_empty())?;
        let language = locale.split(['_', '.', '@']).next()?;
        // Only the letters of English can be read in every other encoding.
        let encoding = locale.split('.').nth(1).and_then(|rest| rest.split('@').next()).unwrap_or("UTF-8");
        let readable = ["UTF-8", "UTF8"].iter().any(|utf8| encoding.eq_ignore_ascii_case(utf8));
        (readable && language.eq_ignore_ascii_case("ko")).then_some(Self::Korean)
    }
}

/// Chooses the language for the life of the process.
pub(crate) fn choose() {
    let _ = CHOSEN.set(Language::of(|name| std::env::var(name).ok()));
}

/// What a person is told, in their language. Each line is a sentence; `gjc: ` and `hint: ` may stand before it.
pub(crate) fn told(text: &str) -> Cow<'_, str> {
    match CHOSEN.get() {
        Some(Some(Language::Korean)) => Cow::Owned(in_korean(text)),
        _ => Cow::Borrowed(text),
    }
}

/// A command line whose help is in the person's language.
pub(crate) fn command(command: clap::Command) -> clap::Command {
    match CHOSEN.get() {
        Some(Some(Language::Korean)) => help::translated(command, korean()),
        _ => command,
    }
}

/// A page of help, in the person's language to its last bracket.
pub(crate) fn page(page: String) -> String {
    match CHOSEN.get() {
        Some(Some(Language::Korean)) => help::finished(&page, korean()),
        _ => page,
    }
}

fn korean() -> &'static Table {
    KOREAN.get_or_init(|| Table::parse(include_str!("korean.txt")))
}

fn in_korean(text: &str) -> String {
    let table = korean();
    let line = |line: &str| match (line.strip_prefix("gjc: "), line.strip_prefix("hint: ")) {
        (Some(sentence), _) => format!("gjc: {}", table.say(sentence)),
        (_, Some(hint)) => format!("도움말: {}", table.say(hint)),
        _ => help::lines(line, table),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_choose() {
        let of = |vars: &[(&str, &str)]| {
            let found =
                |name: &str| vars.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
            Language::of(found)
        };
        for korean in ["ko", "ko_KR.UTF-8", "ko.utf8", "KO_KR@x"] {
            assert_eq!(of(&[("LANG", korean)]), Some(Language::Korean), "{korean}");
        }
        for other in ["C", "en_US.UTF-8", "kok_IN", "", "POSIX", "ko_KR.EUC-KR", "ko_KR.CP949@x"] {
            assert_eq!(of(&[("LANG", other)]), None, "{other}");
        }
        assert_eq!(of(&[("LANG", "ko_KR.UTF-8"), ("LC_ALL", "C")]), None);
        assert_eq!(of(&[("LANG", "C"), ("LC_MESSAGES", "ko_KR"), ("LC_ALL", "")]), Some(Language::Korean));
    }

    #[test]
    fn a_failure_is_told_with_its_way_out() {
        assert_eq!(
            in_korean("gjc: File not found: /집/파일.jsonl\nhint: give more of the id"),
            "gjc: 파일을 찾을 수 없습니다: /집/파일.jsonl\n도움말: 아이디를 더 길게 쓰세요"
        );
        assert_eq!(in_korean("gjc: what nobody has translated"), "gjc: what nobody has translated");
    }
}

#[cfg(test)]
mod complete;
