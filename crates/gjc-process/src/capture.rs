//! The output: first bytes, last bytes, and the whole of it in a file if it does not fit.

use std::{collections::VecDeque, io, path::PathBuf};

use tokio::{
    fs::{File, OpenOptions, remove_file},
    io::AsyncWriteExt,
};

/// How many bytes of the output stay in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputCap {
    /// This many from the beginning.
    pub keep_head: usize,
    /// This many from the end.
    pub keep_tail: usize,
}

impl Default for OutputCap {
    /// 16 KiB of each: the beginning names the command's subject, the end its result.
    fn default() -> Self {
        Self { keep_head: 16 * 1024, keep_tail: 16 * 1024 }
    }
}

/// What is left of the output of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// All of the output if it fits, else its beginning. Never ends inside a code point because of the cut.
    pub head: Vec<u8>,
    /// The end of an output that did not fit, else empty. Never begins inside a code point because of the cut.
    pub tail: Vec<u8>,
    /// How much the program wrote, in bytes.
    pub total_bytes: u64,
    /// Whether bytes are missing between head and tail.
    pub truncated: bool,
    /// The file with the whole output, if one was asked for and needed.
    pub spilled: Option<PathBuf>,
    /// Why there is no such file although it was asked for and needed, as a sentence.
    pub spill_failed: Option<String>,
}

impl Captured {
    /// How many bytes are missing between head and tail.
    pub fn left_out(&self) -> u64 {
        self.total_bytes - (self.head.len() + self.tail.len()) as u64
    }

    /// The same output under a smaller cap. What is there of its beginning and end must be more than that cap.
    #[must_use]
    pub fn cut(mut self, cap: OutputCap) -> Self {
        if self.total_bytes <= (cap.keep_head as u64).saturating_add(cap.keep_tail as u64) {
            return self;
        }
        let end = if self.truncated { &self.tail } else { &self.head };
        let end = &end[end.len().saturating_sub(cap.keep_tail)..];
        let tail = end[broken_start(end)..].to_vec();
        self.head.truncate(cap.keep_head);
        self.head.truncate(whole_len(&self.head));
        Self { tail, truncated: true, ..self }
    }

    /// The output as text: head, a line `[… 123456 bytes left out …]`, tail. Bytes that are not UTF-8
    /// become U+FFFD.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.truncated {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[… {} bytes left out …]\n", self.left_out()));
        }
        text.push_str(&String::from_utf8_lossy(&self.tail));
        text
    }
}

/// Collects chunks into a [`Captured`]. Holds at most `keep_head + keep_tail` bytes.
pub(crate) struct Capture {
    cap: OutputCap,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    spill: Spill,
}

enum Spill {
    Off,
    Wanted(PathBuf),
    Open(PathBuf, File),
    Failed(String),
}

impl Capture {
    pub(crate) fn new(cap: OutputCap, spill: Option<PathBuf>) -> Self {
        let spill = spill.map_or(Spill::Off, Spill::Wanted);
        Self { cap, head: Vec::new(), tail: VecDeque::new(), total: 0, spill }
    }

    pub(crate) async fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        if self.overflowed() {
            // Before the ring below forgets anything: the file starts with the very first byte.
            self.spill(chunk).await;
        }
        let (first, rest) = chunk.split_at(chunk.len().min(self.cap.keep_head - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.cap.keep_tail)..];
        let forget = (self.tail.len() + rest.len()).saturating_sub(self.cap.keep_tail);
        self.tail.drain(..forget);
        self.tail.extend(rest);
    }

    pub(crate) async fn finish(mut self) -> Captured {
        let truncated = self.overflowed();
        let (mut head, mut tail) = (self.head, Vec::from(self.tail));
        if truncated {
            head.truncate(whole_len(&head));
            tail.drain(..broken_start(&tail));
        } else {
            head.append(&mut tail);
        }
        if let Spill::Open(path, file) = &mut self.spill
            && let Err(error) = file.flush().await
        {
            self.spill = give_up(path, &error).await;
        }
        let (spilled, spill_failed) = match self.spill {
            Spill::Open(path, _) => (Some(path), None),
            Spill::Failed(why) => (None, Some(why)),
            Spill::Off | Spill::Wanted(_) => (None, None),
        };
        Captured { head, tail, total_bytes: self.total, truncated, spilled, spill_failed }
    }

    fn overflowed(&self) -> bool {
        self.total > (self.cap.keep_head as u64).saturating_add(self.cap.keep_tail as u64)
    }

    /// A full disk must not fail the program: the output in memory is still worth having.
    async fn spill(&mut self, chunk: &[u8]) {
        if let Spill::Wanted(path) = &mut self.spill {
            let path = std::mem::take(path);
            if let Some(folder) = path.parent() {
                // If the folder cannot be made, the file cannot either, and that is told below.
                let _ = tokio::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).await;
            }
            // `create_new`: neither an older output nor the target of a planted link is overwritten.
            let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).await;
            self.spill = match opened {
                Ok(file) => Spill::Open(path, file),
                Err(error) => Spill::Failed(sentence(&path, &error)),
            };
            let (older, newer) = self.tail.as_slices();
            for kept in [&self.head[..], older, newer] {
                write(&mut self.spill, kept).await;
            }
        }
        write(&mut self.spill, chunk).await;
    }
}

async fn write(spill: &mut Spill, bytes: &[u8]) {
    if let Spill::Open(path, file) = spill
        && let Err(error) = file.write_all(bytes).await
    {
        *spill = give_up(path, &error).await;
    }
}

/// Removes a file that would pass for the whole output and is not.
async fn give_up(path: &PathBuf, error: &io::Error) -> Spill {
    let _ = remove_file(path).await;
    Spill::Failed(sentence(path, error))
}

fn sentence(path: &std::path::Path, error: &io::Error) -> String {
    format!("the whole output could not be kept in {}: {error}", path.display())
}

/// The length of the longest prefix that does not stop inside a code point. Bytes that cannot become a code
/// point whatever follows are left alone.
pub(crate) fn whole_len(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let needs = match bytes[at] {
            0x80..=0xBF => continue,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        return if needs > back { at } else { bytes.len() };
    }
    bytes.len()
}

/// How many bytes at the start are the rest of a code point that was cut.
fn broken_start(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xBF)).count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn capture(cap: OutputCap, chunks: &[&[u8]]) -> Captured {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let mut capture = Capture::new(cap, None);
            for chunk in chunks {
                capture.push(chunk).await;
                assert!(capture.head.len() <= cap.keep_head && capture.tail.len() <= cap.keep_tail);
            }
            capture.finish().await
        })
    }

    #[test]
    fn hangul_is_never_split_whatever_the_cap() {
        let text = "가나다라마바사 a한글b 🦀끝";
        for keep_head in 0..=text.len() {
            for keep_tail in 0..=text.len() {
                let got = capture(OutputCap { keep_head, keep_tail }, &[text.as_bytes()]);
                assert_eq!(got.truncated, keep_head + keep_tail < text.len());
                let (head, tail) = (std::str::from_utf8(&got.head).unwrap(), std::str::from_utf8(&got.tail).unwrap());
                assert!(text.starts_with(head) && text.ends_with(tail));
                if got.truncated {
                    assert!(head.len() + 3 >= keep_head && tail.len() + 3 >= keep_tail);
                    let left_out = text.len() - head.len() - tail.len();
                    assert!(got.text().contains(&format!("[… {left_out} bytes left out …]\n")));
                } else {
                    assert_eq!(got.text(), text);
                }
            }
        }
    }

    #[test]
    fn an_output_that_is_cut_later_is_as_if_it_had_been_cut_at_once() {
        let text = "가나다라마바사 a한글b 🦀끝";
        for (keep_head, keep_tail) in (0..=20).flat_map(|head| (0..=20).map(move |tail| (head, tail))) {
            let small = OutputCap { keep_head, keep_tail };
            for more in [0, 9, 100] {
                // As much of the beginning as there is room for, and the same of the end.
                let roomy = OutputCap { keep_head: keep_head + more, keep_tail };
                let cut = capture(roomy, &[text.as_bytes()]).cut(small);
                assert_eq!(cut, capture(small, &[text.as_bytes()]), "{small:?} {more}");
            }
        }
    }

    #[test]
    fn the_line_between_stands_alone() {
        let got = capture(OutputCap { keep_head: 3, keep_tail: 3 }, &[b"one, two, three"]);
        assert_eq!(got.text(), "one\n[… 9 bytes left out …]\nree");
        let got = capture(OutputCap { keep_head: 4, keep_tail: 0 }, &[b"one\ntwo\n"]);
        assert_eq!(got.text(), "one\n[… 4 bytes left out …]\n");
    }

    #[test]
    fn a_cap_without_limit_keeps_everything() {
        let got = capture(OutputCap { keep_head: usize::MAX, keep_tail: usize::MAX }, &["한".as_bytes(), b"x"]);
        assert_eq!((got.text().as_str(), got.truncated), ("한x", false));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_kept_and_shown_lossily() {
        let got = capture(OutputCap::default(), &[b"a\xff", b"\xed\x95\x9c b"]);
        assert_eq!(got.head, b"a\xff\xed\x95\x9c b");
        assert_eq!(got.text(), "a\u{fffd}한 b");
    }

    proptest! {
        #[test]
        fn head_and_tail_are_the_ends_of_the_stream(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
            keep_head in 0usize..60,
            keep_tail in 0usize..60,
        ) {
            let all = chunks.concat();
            let got = capture(OutputCap { keep_head, keep_tail }, &chunks.iter().map(Vec::as_slice).collect::<Vec<_>>());
            prop_assert_eq!(got.total_bytes, all.len() as u64);
            prop_assert!(all.starts_with(&got.head) && all.ends_with(&got.tail));
            prop_assert_eq!(got.truncated, all.len() > keep_head + keep_tail);
            if got.truncated {
                prop_assert!(got.head.len() + 3 >= keep_head && got.tail.len() + 3 >= keep_tail);
            } else {
                prop_assert_eq!(&got.head, &all);
            }
        }
    }
}
