//! Front matter: the few lines of YAML at the head of a text, between two lines of `---`.

use crate::yaml::{Content, parse};
use std::collections::BTreeMap;
use std::path::Path;

/// The texts that stand directly in the front matter, by their names, and what follows it; `None` where a text has none. What is
/// no scalar (a map, a list) is left out. Lines that are no YAML are read as `name: value` each, as other agents do: many such
/// texts are written without quotes where YAML wants some.
#[must_use]
pub fn front_matter(text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let rest = text.strip_prefix("---")?;
    let rest = rest.strip_prefix('\r').unwrap_or(rest).strip_prefix('\n')?;
    let mut end = 0;
    let line = rest.split_inclusive('\n').find(|line| {
        let is_end = line.trim_end() == "---";
        end += if is_end { 0 } else { line.len() };
        is_end
    })?;
    let (head, after) = (&rest[..end], &rest[end + line.len()..]);
    let pairs = match parse(Path::new(""), head) {
        Ok(Some(node)) => match node.content {
            Content::Map { pairs, .. } => pairs
                .into_iter()
                .filter_map(|(key, node)| match node.content {
                    Content::Scalar { text, .. } => Some((key.name, text)),
                    _ => None,
                })
                .collect(),
            _ => BTreeMap::new(),
        },
        Ok(None) => BTreeMap::new(),
        Err(_) => by_lines(head),
    };
    Some((pairs, after))
}

fn by_lines(head: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
        is_name.then(|| (name.to_owned(), value.trim().trim_matches('"').to_owned()))
    };
    head.lines().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Option<(Vec<(String, String)>, &str)> {
        front_matter(text).map(|(pairs, rest)| (pairs.into_iter().collect(), rest))
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn texts_are_read_and_all_else_is_left_out() {
        let text =
            "\u{FEFF}---\r\nname: 배포\r\ndescription: >-\r\n  한 줄\r\n  두 줄\r\nmetadata:\r\n  a: b\r\n---\r\n본문";
        assert_eq!(of(text), Some((pairs(&[("description", "한 줄 두 줄"), ("name", "배포")]), "본문")));
        assert_eq!(of("---\n# nothing\n---\n"), Some((Vec::new(), "")));
        for none in ["", "name: x", "---", "---\nname: x\n", "----\nname: x\n---\n", " ---\nname: x\n---\n"] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_colon_that_wants_quotes_is_taken_as_it_was_meant() {
        let text = "---\nname: pdf\ndescription: Use when: a PDF\n  more: x\n---\nx";
        assert_eq!(of(text), Some((pairs(&[("description", "Use when: a PDF"), ("name", "pdf")]), "x")));
    }

    proptest! {
        #[test]
        fn no_text_panics(head in "[-a:>|\\[\\]{}&*!'\"\u{FEFF}한\r\n ]{0,60}") {
            let _ = front_matter(&head);
            let _ = front_matter(&format!("---\n{head}\n---\n본문"));
        }
    }
}
