//! Lists of names as the model sees them: as many as fit, and what is said of the rest.

use crate::names::{Name, shown};
use crate::work::count;

/// Bytes shown at most: about 15,000 tokens, a tenth of what a model takes in.
pub(crate) const SHOWN_BYTES: usize = 50 * 1024;
/// More names than this are never shown, whatever the limit: each takes two bytes at least.
pub(crate) const MOST_NAMES: u64 = (SHOWN_BYTES / 2) as u64;

/// Lines, and notes in brackets below them.
#[derive(Debug, Default)]
pub(crate) struct Page {
    text: String,
    lines: u64,
    lossy: bool,
}

impl Page {
    /// Adds a line of its own; false if it does not fit.
    pub(crate) fn add(&mut self, line: &str) -> bool {
        if self.lines > 0 && self.text.len() + line.len() + 1 > SHOWN_BYTES {
            return false;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
        true
    }

    /// Adds a name after a prefix; false if it does not fit.
    pub(crate) fn add_name(&mut self, prefix: &str, name: &Name) -> bool {
        let name = shown(&name.0);
        let lossy = name.contains(char::REPLACEMENT_CHARACTER);
        let fits = self.add(&format!("{prefix}{name}"));
        self.lossy |= lossy && fits;
        fits
    }

    /// How many lines there are.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Remembers that a name was shown that is not UTF-8.
    pub(crate) fn mark_lossy(&mut self) {
        self.lossy = true;
    }

    /// Done, with notes.
    pub(crate) fn close(mut self, notes: impl IntoIterator<Item = String>) -> String {
        let lossy =
            "bytes of names that are not UTF-8 are shown as \u{fffd}; reach such a file with bash and a wildcard";
        let lossy = self.lossy.then(|| lossy.to_string());
        for note in notes.into_iter().chain(lossy) {
            self.text.push_str(&format!("[{note}]\n"));
        }
        self.text
    }
}

/// What is said where more was found than shown.
pub(crate) fn more(shown: u64, found: u64, noun: &str, way_out: &str) -> Option<String> {
    let found_text = count(usize::try_from(found).unwrap_or(usize::MAX), noun);
    (shown < found).then(|| format!("{shown} of {found_text} shown, {} more; {way_out}", found - shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_at_a_line_that_does_not_fit_but_shows_the_first_one() {
        let mut page = Page::default();
        let long = "가".repeat(SHOWN_BYTES);
        assert!(page.add(&long) && !page.add("나"));
        let text = page.close(["다".into()]);
        assert!(text.ends_with("가\n[다]\n") && text.len() == long.len() + 1 + "[다]\n".len());
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        assert_eq!(more(2, 2, "file", ""), None);
        assert_eq!(more(2, 5, "file", "하라").as_deref(), Some("2 of 5 files shown, 3 more; 하라"));
    }
}
