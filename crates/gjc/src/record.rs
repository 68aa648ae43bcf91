//! `--record`: the answers of a run as a script, without secrets. A file that is no script is never touched.

use crate::failure::Failure;
use crate::out;
use gjc_entry::Env;
use gjc_llm::scripted::ScriptedModel;
use gjc_llm::{Lines, Mask, Masks, Secret};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the answers of a run are written, and how secrets are taken out of them.
#[derive(Clone)]
pub(crate) struct Recorder {
    pub(crate) lines: Lines,
    masks: Arc<Masks>,
}

impl Recorder {
    /// Opens the file: a new one that nobody else can read, or a script, which goes on. `O_NOFOLLOW`: a link that somebody has
    /// laid there is no script.
    pub(crate) fn open(env: &Env, path: &Path) -> Result<Self, Failure> {
        let no = |why: String| {
            Failure::usage(format!("{} cannot be recorded to: {why}", path.display()))
                .hint("name a file that does not exist, or a script that was recorded before")
        };
        // Without O_NONBLOCK a pipe would wait for its reader for ever.
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
            .map_err(|error| no(error.to_string()))?;
        let known = file.metadata().map_err(|error| no(error.to_string()))?;
        if !known.is_file() {
            return Err(no("it is no file".into()));
        }
        if known.len() > 0 {
            ScriptedModel::load(path).map_err(|error| no(error.to_string()))?;
        }
        let ended = known.len() == 0 || ends_with_feed(path, known.len()).map_err(|error| no(error.to_string()))?;
        let values = env
            .vars
            .iter()
            .filter(|(name, value)| gjc_tools::is_secret(name, value))
            .map(|(_, value)| value.to_owned());
        let masks = Arc::new(Masks::new(values));
        let file = Mutex::new((file, ended, false));
        let name = path.display().to_string();
        let lines: Lines = Arc::new(move |line| {
            let (file, ended, failed) = &mut *file.lock().unwrap_or_else(PoisonError::into_inner);
            if *failed {
                return;
            }
            // The last line of another hand may have no line feed.
            let line = if *ended { line.to_owned() } else { format!("\n{line}") };
            *ended = true;
            if let Err(error) = append(file, &line) {
                // What is there stays a script; one word is enough.
                *failed = true;
                out::talk(&format!("gjc: {name} cannot be written ({error}); nothing more of this run is recorded"));
            }
        });
        Ok(Self { lines, masks })
    }

    /// Takes secrets out of a text: the variables that hold some, what looks like one, and this key.
    pub(crate) fn mask(&self, key: Option<Secret>) -> Mask {
        let masks = Arc::clone(&self.masks);
        Arc::new(move |text| match &key {
            Some(key) => masks.mask(&key.mask(text)),
            None => masks.mask(text),
        })
    }
}

fn ends_with_feed(path: &Path, len: u64) -> io::Result<bool> {
    let mut last = [0];
    File::open(path)?.read_exact_at(&mut last, len - 1)?;
    Ok(last == *b"\n")
}

/// One whole line, or none.
fn append(file: &mut File, line: &str) -> io::Result<()> {
    let before = file.metadata()?.len();
    let written = file.write_all(format!("{line}\n").as_bytes());
    if written.is_err() {
        file.set_len(before)?;
    }
    written
}
