//! The walk below a folder that `grep` and `find` share: what is left out, who ends it, what is said of places that could not
//! be read. It follows no link, and opens nothing but folders and ignore files.
//!
//! Left out are what `.gitignore` (in a git repository), `.git/info/exclude` and `.ignore` name, those of the folders above
//! too; and everything named `.git`. Hidden files are not left out. Excludes of the user (`core.excludesFile`) do not count:
//! the same tree gives the same answer on every machine.

use crate::names::{below, shown};
use crate::work::blocking;
use crate::{ToolCtx, ToolOutput};
use gjc_entry::Label;
use gjc_protocol::Refusal;
use ignore::{DirEntry, WalkBuilder, WalkState};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The longest ignore file, in bytes.
const IGNORE_BYTES: u64 = 1 << 20;
/// Characters of a sentence about such a place.
const MOST_CHARS: usize = 300;
/// Places named of those that could not be read.
const NAMED: usize = 3;

/// Whether the work shall end, cheap to ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Whether it shall.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Nothing, or the refusal of work that was cancelled.
    pub(crate) fn check(&self, what: &str) -> Result<(), Refusal> {
        if self.is_set() { Err(Refusal::new("cancelled", format!("cancelled before {what} was done"))) } else { Ok(()) }
    }
}

/// Sets its [`Stop`] when it goes: nobody waits for the work any more.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// [`blocking`] work that ends soon after it was cancelled.
pub(crate) async fn stoppable<F>(ctx: &ToolCtx, planned: Label, work: F) -> ToolOutput
where
    F: FnOnce(&Stop, &mut Label) -> Result<ToolOutput, Refusal> + Send + 'static,
{
    let stop = Stop::default();
    let mut raise = Some(StopOnDrop(stop.clone()));
    if ctx.cancel.is_cancelled() {
        raise.take();
    }
    let mut running = std::pin::pin!(blocking(planned, move |label| work(&stop, label)));
    tokio::select! {
        done = &mut running => done,
        () = ctx.cancel.cancelled() => {
            raise.take();
            running.await
        }
    }
}

/// Locks; what a thread that broke off has left is still sound here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Places that could not be read.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    count: u64,
    first: BTreeSet<String>,
    /// Whether ignore files were not heeded, and which one was the reason.
    unheeded: Option<String>,
}

impl Unread {
    /// One more.
    pub(crate) fn add(&mut self, sentence: String) {
        self.count += 1;
        self.first.insert(sentence);
        if self.first.len() > NAMED {
            self.first.pop_last();
        }
    }

    /// Takes what another one has.
    pub(crate) fn take(&mut self, other: Self) {
        self.count += other.count;
        self.first.extend(other.first);
        while self.first.len() > NAMED {
            self.first.pop_last();
        }
        self.unheeded = self.unheeded.take().or(other.unheeded);
    }

    /// How many.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// As notes for the model.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.unheeded.iter().cloned().collect();
        if self.count > 0 {
            let named = self.first.iter().map(String::as_str).collect::<Vec<_>>().join("; ");
            let more = self.count - self.first.len() as u64;
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            notes.push(format!("not all could be read: {named}{more}"));
        }
        notes
    }
}

/// What is done with each entry, on one of the walk's threads.
pub(crate) type Visit<'s> = Box<dyn FnMut(DirEntry) + Send + 's>;

/// Visits all below `root` (a real path of a folder), on several threads, in no order: each folder, and of all else what is
/// `wanted` by its path from the root. `visit` is called once a thread; what a visitor holds is dropped when its thread is done.
///
/// What is not wanted is dropped where its folder is read: handing each of very many names from thread to thread takes longer
/// than to look at it.
pub(crate) fn walk<'s>(
    root: &Path,
    stop: &'s Stop,
    wanted: impl Fn(&[u8]) -> bool + Send + Sync + 'static,
    mut visit: impl FnMut() -> Visit<'s>,
) -> Unread {
    let unread = Arc::new(Mutex::new(Unread::default()));
    let mut builder = WalkBuilder::new(root);
    builder.current_dir(root).hidden(false).git_global(false).follow_links(false);
    let is_wanted = {
        let root = root.to_path_buf();
        move |entry: &DirEntry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            !is_git(entry) && (is_folder || wanted(below(&root, entry.path())))
        }
    };
    if let Some(odd) = root.ancestors().find_map(odd_ignore_file) {
        builder.parents(false).ignore(false).git_ignore(false).git_exclude(false);
        lock(&unread).unheeded = Some(format!(
            "no ignore files were heeded: {} is no regular file, or too large for one",
            shown(odd.as_os_str().as_encoded_bytes())
        ));
        builder.filter_entry(is_wanted);
    } else {
        let (unread, root) = (Arc::clone(&unread), root.to_path_buf());
        builder.filter_entry(move |entry| is_wanted(entry) && can_enter(&root, entry, &unread));
    }
    builder.build_parallel().run(|| {
        let (unread, root) = (Arc::clone(&unread), root.to_path_buf());
        let mut visit = visit();
        Box::new(move |entry| {
            if stop.is_set() {
                return WalkState::Quit;
            }
            match entry {
                Err(error) => told(&root, &error, &unread),
                Ok(entry) => {
                    if let Some(error) = entry.error() {
                        told(&root, error, &unread);
                    }
                    if entry.depth() > 0 {
                        visit(entry);
                    }
                }
            }
            WalkState::Continue
        })
    });
    std::mem::take(&mut *lock(&unread))
}

/// Keeps what went wrong. What was removed while the walk ran is not there any more, and that is all.
fn told(root: &Path, error: &ignore::Error, unread: &Mutex<Unread>) {
    if error.io_error().is_some_and(|error| error.kind() == ErrorKind::NotFound) {
        return;
    }
    let sentence = error.to_string().replace(&format!("{}/", root.display()), "");
    lock(unread).add(shown(short(&sentence).as_bytes()).into_owned());
}

/// A sentence whose name is too long, without the middle of it: what went wrong stands at the end.
fn short(sentence: &str) -> String {
    let chars: Vec<char> = sentence.chars().collect();
    match chars.len() {
        0..=MOST_CHARS => sentence.into(),
        len => chars[..MOST_CHARS / 2].iter().chain(&[' ', '…', ' ']).chain(&chars[len - MOST_CHARS / 2..]).collect(),
    }
}

/// Whether its name is `.git`; a walk only gives paths that end with a name.
fn is_git(entry: &DirEntry) -> bool {
    entry.path().as_os_str().as_bytes().ends_with(b"/.git")
}

/// Whether a folder can be entered: its ignore files are read by name and to the end, which must come.
fn can_enter(root: &Path, entry: &DirEntry, unread: &Mutex<Unread>) -> bool {
    if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
        return true;
    }
    let Some(odd) = odd_ignore_file(entry.path()) else { return true };
    let (folder, odd) = (shown(below(root, entry.path())), shown(below(root, &odd)).into_owned());
    lock(unread).add(format!("{folder}: {odd} is no regular file, or too large for an ignore file"));
    false
}

/// An ignore file of a folder that cannot be read to its end in short time: a pipe, a device, a link to one, a huge file.
fn odd_ignore_file(folder: &Path) -> Option<PathBuf> {
    let odd = |path: PathBuf| is_odd(&path).then_some(path);
    let git = folder.join(".git");
    odd(folder.join(".gitignore")).or_else(|| odd(folder.join(".ignore"))).or_else(|| match fs::metadata(&git) {
        Ok(found) if found.is_dir() => odd(git.join("info/exclude")),
        // A worktree or a submodule: a line that names the folder.
        Ok(found) if found.is_file() => odd(git.clone()).or_else(|| {
            let line = fs::read_to_string(&git).ok()?;
            let named = folder.join(line.lines().next()?.strip_prefix("gitdir: ")?);
            let common = named.join("commondir");
            odd(common.clone()).or_else(|| {
                let to = fs::read_to_string(&common).ok()?;
                odd(named.join(to.lines().next()?).join("info/exclude"))
            })
        }),
        _ => None,
    })
}

fn is_odd(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_dir() && (!found.is_file() || found.len() > IGNORE_BYTES))
}
