//! Standard output: data only. Standard error: talk. A reader of either that has gone away is silence, not an error: the
//! session goes on and is stored.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes a line.
pub(crate) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}

/// Writes the event about unanswered prompts, which has the number of the event before it.
pub(crate) fn unanswered(seq: u64, body: Option<&gjc_protocol::EventBody>) {
    if let Some(body) = body.cloned() {
        line(&serde_json::to_string(&gjc_protocol::Event { seq, body }).unwrap_or_default());
    }
}

/// Writes bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Writes a sentence to standard error, in the person's language, as plain text. (`eprintln!` would panic when nobody reads.)
pub(crate) fn talk(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(plain(&crate::words::told(text)).as_bytes()).and_then(|()| err.write_all(b"\n"));
}

/// Writes a question to standard error, and stays on its line. `--quiet` does not silence it.
pub(crate) fn ask(question: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(plain(&crate::words::told(question)).as_bytes()).and_then(|()| err.flush());
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on [`notice`] says nothing.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// As [`talk`], of what a person may want to know and nobody has to: `--quiet` silences it.
pub(crate) fn notice(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        talk(text);
    }
}

/// Shows how far something is that takes long, on one row of a terminal that is written over; nothing without a terminal, or
/// with `--quiet`. An empty text takes the row away.
pub(crate) fn progress(text: &str) {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() && !QUIET.load(Ordering::Relaxed) {
        let _ = write!(err, "\r\u{1b}[K{}", row(&crate::words::told(text))).and_then(|()| err.flush());
    }
}

/// Text without characters that a terminal would obey; line feeds and tabs stay.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .filter(|c| !matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'))
        .collect()
}

/// Text of others as a part of one row: plain, and unable to begin a row of its own.
pub(crate) fn row(text: &str) -> String {
    plain(&text.replace(['\n', '\t'], " "))
}

/// A path as a person types it to a shell: in quotes where it holds anything but letters, digits and what paths are made of.
pub(crate) fn word(text: &str) -> String {
    let bare = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | ':' | '@' | ',');
    if !text.is_empty() && text.chars().all(bare) { text.into() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// A session's id as a person types it to a shell: a file of others may call itself anything.
pub(crate) fn id(id: &str) -> String {
    word(&row(id))
}

/// The first `cells` columns of a text on one line, padded to exactly that width. 한글 takes two columns a letter.
pub(crate) fn cell(text: &str, cells: usize) -> String {
    use unicode_width::UnicodeWidthChar;
    let text = row(text);
    let width = |c: char| c.width().unwrap_or(0);
    let whole: usize = text.chars().map(width).sum();
    let room = if whole > cells { cells.saturating_sub(1) } else { cells };
    let (mut shown, mut used) = (String::new(), 0);
    for c in text.chars() {
        if used + width(c) > room {
            break;
        }
        used += width(c);
        shown.push(c);
    }
    if whole > cells {
        shown.push('…');
        used += 1;
    }
    shown.extend(std::iter::repeat_n(' ', cells.saturating_sub(used)));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn cells_have_exactly_their_width() {
        for text in ["", "plain", "한글 제목입니다", "섞인 mixed 텍스트", "a\u{1b}[31mred", "😀😀😀", "é́"]
        {
            for cells in 1..20 {
                assert_eq!(cell(text, cells).width(), cells, "{text:?} in {cells}");
            }
        }
        assert_eq!(cell("한글제목", 5), "한글…");
        assert_eq!(cell("한글제목", 6), "한글… ");
    }

    #[test]
    fn a_word_is_one_to_a_shell() {
        for (text, word) in
            [("/a/한글-1.x", "/a/한글-1.x"), ("/a b", "'/a b'"), ("it's", "'it'\\''s'"), ("", "''"), ("$x", "'$x'")]
        {
            assert_eq!(super::word(text), word);
        }
    }

    #[test]
    fn nothing_that_a_terminal_obeys_passes() {
        assert_eq!(plain("a\u{1b}]52;c;x\u{7}b\u{9b}31m\u{202e}c\n"), "a]52;c;xb31mc\n");
    }
}
