//! Changes of a text, and how a person sees them.

use std::collections::VecDeque;
use std::ops::Range;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;
/// Above this many pairs of lines, a changed region is shown as replaced as a whole.
const MAX_PAIRS: usize = 1_000_000;

/// Some bytes in place of others.
pub(crate) struct Change<'a> {
    /// Where, in the text before. Not empty.
    pub(crate) at: Range<usize>,
    /// What stands there now.
    pub(crate) new: &'a [u8],
}

/// The text after changes, which are sorted and do not overlap.
pub(crate) fn apply(before: &[u8], changes: &[Change<'_>]) -> Vec<u8> {
    splice(before, 0..before.len(), changes)
}

fn splice(before: &[u8], within: Range<usize>, changes: &[Change<'_>]) -> Vec<u8> {
    let mut after = Vec::with_capacity(within.len());
    let mut done = within.start;
    for change in changes {
        after.extend_from_slice(&before[done..change.at.start]);
        after.extend_from_slice(change.new);
        done = change.at.end;
    }
    after.extend_from_slice(&before[done..within.end]);
    after
}

/// Lines in place of other lines, nothing between them unchanged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Which lines of the text before, from 0.
    pub(crate) old: Range<usize>,
    /// What stands there now, with line ends.
    pub(crate) new: Vec<Vec<u8>>,
}

/// The changed lines.
pub(crate) fn runs(before: &[u8], changes: &[Change<'_>]) -> Vec<Run> {
    let starts = starts(before);
    let line_of = |at: usize| starts.partition_point(|start| *start <= at).saturating_sub(1);
    let start_of = |line: usize| starts.get(line).copied().unwrap_or(before.len());
    let mut runs = Vec::new();
    let mut rest = changes;
    while let Some(first) = rest.first() {
        // The line behind the change too: without its line end the change would join them.
        let region = |change: &Change<'_>| line_of(change.at.start)..(line_of(change.at.end) + 1).min(starts.len());
        let mut lines = region(first);
        let mut len = 1;
        while let Some(next) = rest.get(len)
            && region(next).start < lines.end
        {
            lines.end = region(next).end;
            len += 1;
        }
        let bytes = start_of(lines.start)..start_of(lines.end);
        let new = splice(before, bytes.clone(), &rest[..len]);
        let (old, new) = (split(&before[bytes]), split(&new));
        runs.extend(compare(&old, &new).into_iter().map(|(old, new_at)| Run {
            old: lines.start + old.start..lines.start + old.end,
            new: new[new_at].iter().map(|line| line.to_vec()).collect(),
        }));
        rest = &rest[len..];
    }
    runs
}

/// A unified diff.
pub(crate) fn unified(name: &str, before: &[u8], runs: &[Run]) -> String {
    let lines = split(before);
    let mut text = format!("--- a/{name}\n+++ b/{name}\n");
    let mut shift = 0isize;
    let mut rest: VecDeque<&Run> = runs.iter().collect();
    while let Some(first) = rest.pop_front() {
        let mut hunk = vec![first];
        let mut end = first.old.end;
        while let Some(next) = rest.front()
            && next.old.start - end <= 2 * CONTEXT
        {
            end = next.old.end;
            hunk.extend(rest.pop_front());
        }
        let old = first.old.start.saturating_sub(CONTEXT)..(end + CONTEXT).min(lines.len());
        let grown = hunk.iter().map(|run| run.new.len() as isize - run.old.len() as isize).sum::<isize>();
        let range = |start: usize, len: usize| format!("{},{len}", if len == 0 { start } else { start + 1 });
        text.push_str(&format!(
            "@@ -{} +{} @@\n",
            range(old.start, old.len()),
            range(old.start.saturating_add_signed(shift), old.len().saturating_add_signed(grown))
        ));
        let mut at = old.start;
        for run in hunk {
            lines[at..run.old.start].iter().for_each(|line| push(&mut text, ' ', line));
            lines[run.old.clone()].iter().for_each(|line| push(&mut text, '-', line));
            run.new.iter().for_each(|line| push(&mut text, '+', line));
            at = run.old.end;
        }
        lines[at..old.end].iter().for_each(|line| push(&mut text, ' ', line));
        shift += grown;
    }
    text
}

fn push(text: &mut String, sign: char, line: &[u8]) {
    text.push(sign);
    text.push_str(&String::from_utf8_lossy(line));
    if !line.ends_with(b"\n") {
        text.push_str("\n\\ No newline at end of file\n");
    }
}

/// Lines with their ends.
fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn starts(text: &[u8]) -> Vec<usize> {
    let begins = (!text.is_empty()).then_some(0);
    begins.into_iter().chain(memchr::memchr_iter(b'\n', text).map(|at| at + 1).filter(|at| *at < text.len())).collect()
}

/// Which lines of `old` are replaced by which of `new`: the rest is a longest common subsequence.
fn compare(old: &[&[u8]], new: &[&[u8]]) -> Vec<(Range<usize>, Range<usize>)> {
    let same = |pair: &(&&[u8], &&[u8])| pair.0 == pair.1;
    let head = old.iter().zip(new).take_while(same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    if a.is_empty() && b.is_empty() {
        return Vec::new();
    }
    if a.len().saturating_mul(b.len()) > MAX_PAIRS {
        return vec![(head..head + a.len(), head..head + b.len())];
    }
    // common[i][j]: how much a[i..] and b[j..] have in common.
    let width = b.len() + 1;
    let mut common = vec![0u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i * width + j] = if a[i] == b[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let mut replaced: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let removes = j == b.len() || (i < a.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]);
        let from = (head + i, head + j);
        if removes {
            i += 1
        } else {
            j += 1
        }
        match replaced.last_mut() {
            Some((old, new)) if (old.end, new.end) == from => (old.end, new.end) = (head + i, head + j),
            _ => replaced.push((from.0..head + i, from.1..head + j)),
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Replaces each `(old, new)` at its first place, checks the diff against `expected`, and that it says what was done.
    fn check(before: &str, edits: &[(&str, &str)], expected: &str) {
        let change = |(old, new): &(&str, &'static str)| {
            let at = before.find(old).unwrap();
            Change { at: at..at + old.len(), new: new.as_bytes() }
        };
        let edits: Vec<(&str, &'static str)> =
            edits.iter().map(|(old, new)| (*old, &*new.to_string().leak())).collect();
        let changes: Vec<_> = edits.iter().map(change).collect();
        let runs = runs(before.as_bytes(), &changes);
        assert_eq!(unified("가.txt", before.as_bytes(), &runs).split_once("+++ b/가.txt\n").unwrap().1, expected);

        let mut lines: Vec<Vec<u8>> = split(before.as_bytes()).into_iter().map(<[u8]>::to_vec).collect();
        for run in runs.into_iter().rev() {
            lines.splice(run.old, run.new);
        }
        assert_eq!(lines.concat(), apply(before.as_bytes(), &changes));
    }

    #[test]
    fn diffs_are_minimal_and_true() {
        check("가\n나\n다\n", &[("나", "너")], "@@ -1,3 +1,3 @@\n 가\n-나\n+너\n 다\n");
        check(
            "a\nb",
            &[("b", "c")],
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n",
        );
        check("a\nb\n", &[("b\n", "")], "@@ -1,2 +1,1 @@\n a\n-b\n");
        check("a\nb\n", &[("\n", "")], "@@ -1,2 +1,1 @@\n-a\n-b\n+ab\n");
        check("a\n", &[("a\n", "")], "@@ -1,1 +0,0 @@\n-a\n");
        check("a\nb\nc\n", &[("a\nb\nc", "A\nb\nC")], "@@ -1,3 +1,3 @@\n-a\n+A\n b\n-c\n+C\n");
        check("x y\n", &[("x", "1"), ("y", "2")], "@@ -1,1 +1,1 @@\n-x y\n+1 2\n");
        let lines: String = (1..=20).map(|n| format!("<{n}>\n")).collect();
        check(
            &lines,
            &[("<2>\n", "<2>\nnew\n"), ("<15>", "changed")],
            "@@ -1,5 +1,6 @@\n <1>\n <2>\n+new\n <3>\n <4>\n <5>\n\
             @@ -12,7 +13,7 @@\n <12>\n <13>\n <14>\n-<15>\n+changed\n <16>\n <17>\n <18>\n",
        );
    }
}
