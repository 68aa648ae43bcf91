//! What a person sees of a call before they allow it, and what binds the call to that.

use crate::diff::{self, Change, Run};
use crate::sandbox::Workspace;
use crate::{ToolCtx, path};
use gjc_flow::{Call, Digest, digest};
use gjc_protocol::Refusal;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Bytes of a preview.
const SHOWN: usize = 64 * 1024;
/// A larger file is compared by its metadata, and shown as replaced without its content.
const COMPARED: u64 = 32 << 20;

/// What a call would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The command that it would run.
    pub command: Option<String>,
    /// The file that it would write, links followed.
    pub path: Option<PathBuf>,
    /// What would change, as a diff; of a command, what else is to be known; without command and path, the input.
    pub text: Option<String>,
    /// Whether command or text are cut at the end.
    pub cut: bool,
    /// Whether everything that it changes is content of the workspace. What git and gjc keep there for themselves (`.git`,
    /// `.gjc`) makes programs run and settings count; it is not.
    pub within: bool,
    /// What all of this was made from: the call runs only as long as it is that ([`ToolCtx::basis`]).
    pub basis: Option<Digest>,
}

impl Preview {
    /// Of a call that says nothing but its input.
    #[must_use]
    pub fn of_input(call: &Call) -> Self {
        let (text, cut) = cut(call.input.get());
        Self { text: Some(text), cut, ..Self::nothing() }
    }

    /// Of a command.
    pub(crate) fn of_command(command: &str) -> Self {
        let (command, cut) = cut(command);
        Self { command: Some(command), cut, ..Self::nothing() }
    }

    /// Of a file whose content becomes another. `given`: the path as the model wrote it.
    pub(crate) fn of_file(ctx: &ToolCtx, given: &str, path: &Path, diff: &str, before: Option<&Before>) -> Self {
        let basis = basis(path, before);
        let path = path::real(path).unwrap_or_else(|| path.into());
        let (text, cut) = cut(diff);
        let text = if text.is_empty() { format!("{given}: nothing changes\n") } else { text };
        let within = is_content(ctx, &path);
        Self { path: Some(path), text: Some(text), cut, within, basis: Some(basis), ..Self::nothing() }
    }

    fn nothing() -> Self {
        Self { command: None, path: None, text: None, cut: false, within: false, basis: None }
    }
}

/// Whether a path without links is content of the session's workspace.
fn is_content(ctx: &ToolCtx, path: &Path) -> bool {
    let Some(rest) = Workspace::of(&ctx.cwd, &ctx.home)
        .write
        .first()
        .and_then(|root| path.strip_prefix(root).ok().map(Path::to_path_buf))
    else {
        return false;
    };
    // A file system may not tell capital letters from small ones.
    let kept = |name: &std::ffi::OsStr| {
        [".git", ".gjc"].iter().any(|kept| name.to_str().is_some_and(|name| name.eq_ignore_ascii_case(kept)))
    };
    rest.components().all(|part| matches!(part, Component::Normal(name) if !kept(name)))
}

/// The diff of a file that is replaced as a whole.
pub(crate) fn replacement(given: &str, before: Option<&Before>, after: &[u8]) -> String {
    let name = given.trim_start_matches('/');
    match before {
        Some(Before { bytes: None, len, .. }) => format!("{name}: {len} bytes are replaced by {}\n", after.len()),
        Some(Before { bytes: Some(before), .. }) if !before.is_empty() => {
            let whole = [Change { at: 0..before.len(), new: after }];
            let lines = diff::runs(before, &whole);
            if lines.is_empty() { String::new() } else { diff::unified(name, before, &lines) }
        }
        _ => {
            let new = after.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            diff::unified(name, &[], &[Run { old: 0..0, new }])
        }
    }
}

/// A file as it was looked at.
pub(crate) struct Before {
    /// Its content, unless it is too large.
    bytes: Option<Vec<u8>>,
    len: u64,
    seen: Digest,
}

impl Before {
    /// With this content.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len() as u64, seen: digest(&bytes), bytes: Some(bytes) }
    }

    /// The file at a path that `existing` is of.
    pub(crate) fn read(path: &Path, existing: &Metadata) -> io::Result<Self> {
        let len = existing.len();
        if len <= COMPARED {
            return fs::read(path).map(Self::of);
        }
        let what = (existing.dev(), existing.ino(), len, existing.mtime(), existing.mtime_nsec());
        Ok(Self { bytes: None, len, seen: digest(format!("{what:?}").as_bytes()) })
    }
}

/// What a preview is bound to: which file a path leads to, and what is in it, or that there is none.
fn basis(path: &Path, before: Option<&Before>) -> Digest {
    let real = path::real(path).unwrap_or_default();
    let seen = before.map_or(&[][..], |before| &before.seen);
    digest(&[real.as_os_str().as_encoded_bytes(), &[0], seen].concat())
}

/// Whether what a call was allowed for is still so; where nothing was looked at it always is.
pub(crate) fn still(ctx: &ToolCtx, path: &Path) -> io::Result<bool> {
    let Some(seen) = ctx.basis() else { return Ok(true) };
    let before = match fs::metadata(path) {
        Ok(existing) => Some(Before::read(path, &existing)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok(basis(path, before.as_ref()) == seen)
}

/// What the model hears when it is not.
pub(crate) fn changed(given: &str) -> Refusal {
    Refusal::new("changed_meanwhile", format!("nothing was done: {given} has changed since this was allowed"))
        .hint("read it again, then call again")
}

/// The beginning of a text, between two characters.
fn cut(text: &str) -> (String, bool) {
    let end = if text.len() > SHOWN { text.floor_char_boundary(SHOWN) } else { text.len() };
    (text[..end].into(), end < text.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cut_is_between_characters_and_takes_nothing_from_a_short_text(text in "[가-힣a-z\u{1F600}]{0,40}", n in 1usize..3000) {
            let long = text.repeat(n);
            let (shown, is_cut) = cut(&long);
            prop_assert!(long.starts_with(&shown) && shown.len() <= SHOWN);
            prop_assert_eq!(is_cut, shown.len() < long.len());
            prop_assert!(!is_cut || shown.len() > SHOWN - 4);
        }
    }

    #[test]
    fn a_replacement_is_told_line_by_line() {
        let before = |text: &str| Before::of(text.into());
        assert_eq!(
            replacement("/가.txt", None, "새\n글".as_bytes()),
            "--- a/가.txt\n+++ b/가.txt\n@@ -0,0 +1,2 @@\n+새\n+글\n\\ No newline at end of file\n"
        );
        assert_eq!(replacement("a", Some(&before("")), b"x\n"), "--- a/a\n+++ b/a\n@@ -0,0 +1,1 @@\n+x\n");
        assert_eq!(
            replacement("a", Some(&before("하나\n둘\n")), "하나\n셋\n".as_bytes()),
            "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 하나\n-둘\n+셋\n"
        );
        assert_eq!(replacement("a", Some(&before("x\n")), b"x\n"), "");
        assert_eq!(replacement("a", Some(&before("x\n")), b""), "--- a/a\n+++ b/a\n@@ -1,1 +0,0 @@\n-x\n");
    }
}
