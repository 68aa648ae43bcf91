//! Names below a folder: their order, how they are shown, and the first ones of very many. The disk is never asked here.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The bytes of a path, ordered part by part: what stands in a folder comes right after the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) Vec<u8>);

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        by_parts(&self.0, &other.0)
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares two paths part by part, each part by its bytes.
pub(crate) fn by_parts(one: &[u8], other: &[u8]) -> Ordering {
    match differ(one, other).map(|at| (one[at], other[at])) {
        Some((b'/', _)) => Ordering::Less,
        Some((_, b'/')) => Ordering::Greater,
        Some((a, b)) => a.cmp(&b),
        None => one.len().cmp(&other.len()),
    }
}

/// Where two differ first, within the length of the shorter one. Names of a tree begin alike, so eight bytes are compared at
/// a time.
fn differ(one: &[u8], other: &[u8]) -> Option<usize> {
    let alike = one.chunks_exact(8).zip(other.chunks_exact(8)).take_while(|(a, b)| a == b).count() * 8;
    one[alike..].iter().zip(&other[alike..]).position(|(a, b)| a != b).map(|at| alike + at)
}

/// The first of many names, in little memory.
#[derive(Debug)]
pub(crate) struct First {
    most: usize,
    /// The greatest on top.
    kept: BinaryHeap<Name>,
    /// How many were seen.
    pub(crate) seen: u64,
}

impl First {
    /// Keeps so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, kept: BinaryHeap::new(), seen: 0 }
    }

    /// Takes a name, with a mark after it.
    pub(crate) fn add(&mut self, name: &[u8], mark: &str) {
        self.seen += 1;
        if self.kept.len() >= self.most {
            if self.kept.peek().is_none_or(|last| by_parts(name, &last.0).is_ge()) {
                return;
            }
            self.kept.pop();
        }
        self.kept.push(Name([name, mark.as_bytes()].concat()));
    }

    /// Takes what another one has.
    pub(crate) fn take(&mut self, other: Self) {
        self.seen += other.seen;
        for name in other.kept {
            self.kept.push(name);
            if self.kept.len() > self.most {
                self.kept.pop();
            }
        }
    }

    /// All that were kept, in order.
    pub(crate) fn sorted(self) -> Vec<Name> {
        self.kept.into_sorted_vec()
    }
}

/// A path below `root`, as bytes without the root.
pub(crate) fn below<'a>(root: &Path, path: &'a Path) -> &'a [u8] {
    let rest = path.as_os_str().as_bytes();
    let rest = rest.strip_prefix(root.as_os_str().as_bytes()).unwrap_or(rest);
    rest.strip_prefix(b"/").unwrap_or(rest)
}

/// A name as text of one line: what is not UTF-8 becomes U+FFFD, and what would break or turn the line is escaped. A file may
/// be named so that its name looks like lines of the tool.
pub(crate) fn shown(name: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(name);
    if !text.contains(breaks_a_line) {
        return text;
    }
    text.chars()
        .fold(String::with_capacity(text.len()), |mut shown, c| {
            if breaks_a_line(c) {
                shown.extend(c.escape_default())
            } else {
                shown.push(c)
            }
            shown
        })
        .into()
}

fn breaks_a_line(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What stands before each name: the folder as it was given, so that a name can be given to the next tool.
pub(crate) fn prefix(given: Option<&str>) -> String {
    let given = given.unwrap_or(".");
    let mut rest = given;
    while let Some(less) = rest.strip_prefix("./") {
        rest = less.trim_start_matches('/');
    }
    match rest.trim_end_matches('/') {
        "" if given.starts_with('/') => "/".into(),
        "" | "." => String::new(),
        folder => format!("{folder}/"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsStr;

    #[test]
    fn a_name_is_one_line_whatever_it_holds() {
        for (name, expected) in [
            (&b"src/main.rs"[..], "src/main.rs"),
            ("보고서\u{ac00}".as_bytes(), "보고서가"),
            (b"a\nb: 1 match", "a\\nb: 1 match"),
            ("a\u{202e}gpj.exe".as_bytes(), "a\\u{202e}gpj.exe"),
            (b"\xb0\xa1", "\u{fffd}\u{fffd}"),
            (b"\x1b[2J", "\\u{1b}[2J"),
        ] {
            assert_eq!(shown(name), expected);
        }
    }

    #[test]
    fn names_are_given_as_the_next_tool_takes_them() {
        for (given, expected) in [
            (None, ""),
            (Some("."), ""),
            (Some("./"), ""),
            (Some("src"), "src/"),
            (Some("./src//"), "src/"),
            (Some("../가"), "../가/"),
            (Some("/"), "/"),
            (Some("/srv/"), "/srv/"),
            (Some(".hidden"), ".hidden/"),
        ] {
            assert_eq!(prefix(given), expected, "{given:?}");
        }
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_paths(
            one in "[ab.가/]{0,24}[ab가]".prop_filter("plain", |p| plain(p)),
            other in "[ab.가/]{0,24}[ab가]".prop_filter("plain", |p| plain(p)),
        ) {
            prop_assert_eq!(by_parts(one.as_bytes(), other.as_bytes()), Path::new(&one).cmp(Path::new(&other)));
        }

        #[test]
        fn the_first_are_the_first_of_all_however_they_come(
            names in prop::collection::vec("[a-c가나]{1,3}", 0..40), most in 1usize..10, cut in 0usize..40,
        ) {
            let (one, other) = names.split_at(cut.min(names.len()));
            let mut first = First::new(most);
            let mut second = First::new(most);
            one.iter().for_each(|name| first.add(name.as_bytes(), ""));
            other.iter().for_each(|name| second.add(name.as_bytes(), ""));
            first.take(second);
            prop_assert_eq!(first.seen, names.len() as u64);
            let mut expected = names.clone();
            expected.sort();
            expected.truncate(most);
            let got: Vec<_> = first.sorted().into_iter().map(|name| String::from_utf8(name.0).unwrap()).collect();
            prop_assert_eq!(got, expected);
        }
    }

    /// Without what a walk never gives: empty parts and dots.
    fn plain(path: &str) -> bool {
        path.split('/').all(|part| !part.is_empty() && part != "." && part != "..") && !OsStr::new(path).is_empty()
    }
}
