//! Sentences of one language for those of another.
//!
//! The file: pairs of lines with a blank line between pairs; lines that begin with `#` say something about it. `{}` in the
//! first line stands for what differs from case to case; `{1}`, `{2}` in the second for the first and second of these, and
//! `{을}`, `{이}`, `{은}`, `{과}`, `{으로}`, `{이라는}` for the particle that fits behind what stands before it.

use super::josa;

/// All pairs.
#[derive(Debug)]
pub(crate) struct Table {
    /// Those with the most fixed letters first: a more exact sentence wins.
    pairs: Vec<Pair>,
}

#[derive(Debug)]
struct Pair {
    fixed: Vec<&'static str>,
    said: &'static str,
}

/// A sentence in a sentence in a sentence; beyond that it stays as it is.
const DEPTH: usize = 4;

impl Table {
    pub(crate) fn parse(file: &'static str) -> Self {
        let mut lines = file.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let mut pairs = Vec::new();
        while let (Some(from), Some(said)) = (lines.next(), lines.next()) {
            pairs.push(Pair { fixed: from.split("{}").collect(), said });
        }
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.fixed.iter().map(|fixed| fixed.len()).sum::<usize>()));
        Self { pairs }
    }

    /// The sentence in the other language; as it is where the table does not know it.
    pub(crate) fn say(&self, sentence: &str) -> String {
        self.say_within(sentence, DEPTH)
    }

    /// Whether it knows a sentence with `{}` in it.
    #[cfg(test)]
    pub(crate) fn knows(&self, template: &str) -> bool {
        self.pairs.iter().any(|pair| pair.fixed.join("{}") == template)
    }

    /// Each pair: the first line, the second one.
    #[cfg(test)]
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (String, &'static str)> {
        self.pairs.iter().map(|pair| (pair.fixed.join("{}"), pair.said))
    }

    fn say_within(&self, sentence: &str, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else { return sentence.to_owned() };
        if let Some((place, rest)) = after_place(sentence) {
            return format!("{place}{}", self.say_within(rest, depth));
        }
        let found = self.pairs.iter().find_map(|pair| Some((pair, pair.differing(sentence)?)));
        let Some((pair, differing)) = found else {
            // A place or a name may stand before the sentence.
            return match sentence.split_once(": ") {
                Some((place, rest)) => format!("{place}: {}", self.say_within(rest, depth)),
                None => sentence.to_owned(),
            };
        };
        let differing: Vec<String> = differing.into_iter().map(|part| self.say_within(part, depth)).collect();
        pair.fill(&differing)
    }
}

impl Pair {
    /// What stands in the places that differ, if this is the sentence.
    fn differing<'s>(&self, sentence: &'s str) -> Option<Vec<&'s str>> {
        let (first, others) = self.fixed.split_first()?;
        let mut rest = sentence.strip_prefix(first)?;
        let Some((last, inner)) = others.split_last() else { return rest.is_empty().then(Vec::new) };
        let mut found = Vec::new();
        for fixed in inner {
            let (differing, behind) = rest.split_once(fixed)?;
            found.push(differing);
            rest = behind;
        }
        found.push(rest.strip_suffix(last)?);
        // What a bracket opens ends in the same piece: a shorter sentence must not take the end of a longer one.
        found.iter().all(|piece| piece.matches('(').count() == piece.matches(')').count()).then_some(found)
    }

    fn fill(&self, differing: &[String]) -> String {
        let mut filled = String::new();
        let mut rest = self.said;
        while let Some((before, behind)) = rest.split_once('{') {
            filled.push_str(before);
            let Some((name, after)) = behind.split_once('}') else { break };
            let part = name.parse::<usize>().ok().and_then(|number| differing.get(number.checked_sub(1)?));
            match (part, josa::after(&filled, name)) {
                (Some(part), _) => filled.push_str(part),
                (None, Some(particle)) => filled.push_str(particle),
                (None, None) => filled.push_str(&format!("{{{name}}}")),
            }
            rest = after;
        }
        filled.push_str(rest);
        filled
    }
}

/// A sentence without the `file:line:column: ` before it.
fn after_place(sentence: &str) -> Option<(&str, &str)> {
    let numbers = |place: &str| {
        let mut parts = place.rsplitn(3, ':');
        let number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
        number(parts.next()) && number(parts.next()) && parts.next().is_some()
    };
    let at = sentence.match_indices(": ").map(|(at, _)| at).find(|at| numbers(&sentence[..*at]))?;
    Some(sentence.split_at(at + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# A test.
the folder {} is gone; it goes on in {}
{1}{이} 없어졌습니다. {2}에서 이어집니다

{} cannot be read: {}
{1}{을} 읽을 수 없습니다: {2}

no room
자리가 없습니다
";

    #[test]
    fn what_differs_is_put_where_the_other_language_wants_it() {
        let table = Table::parse(FILE);
        for (from, said) in [
            ("the folder /집 is gone; it goes on in /새 집", "/집이 없어졌습니다. /새 집에서 이어집니다"),
            ("메모 cannot be read: no room", "메모를 읽을 수 없습니다: 자리가 없습니다"),
            (
                "파일 cannot be read: x cannot be read: no room",
                "파일을 읽을 수 없습니다: x를 읽을 수 없습니다: 자리가 없습니다",
            ),
            ("no room at all", "no room at all"),
            ("/집/설정.yml:2:3: no room", "/집/설정.yml:2:3: 자리가 없습니다"),
            (
                "/새 집: x/설정.yml:2:3: 메모 cannot be read: no room",
                "/새 집: x/설정.yml:2:3: 메모를 읽을 수 없습니다: 자리가 없습니다",
            ),
            ("메모 cannot be read (attempt 2)", "메모 cannot be read (attempt 2)"),
            ("", ""),
        ] {
            assert_eq!(table.say(from), said);
        }
        assert!(table.knows("{} cannot be read: {}") && !table.knows("{} cannot be"));
    }

    #[test]
    fn what_somebody_else_wrote_cannot_make_it_loop_or_break() {
        let table = Table::parse(FILE);
        let deep = "x cannot be read: ".repeat(10_000);
        assert!(table.say(&deep).len() < 2 * deep.len());
        assert_eq!(table.say("{1} cannot be read: {을}"), "{1}을 읽을 수 없습니다: {을}");
    }
}
