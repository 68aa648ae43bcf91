//! A file that a person names in a prompt (`@file`): seen as `read` shows it, with the label of where it lies.

use crate::read::{IMAGE_BYTES, picture_kind};
use crate::{path, read};
use base64::Engine;
use gjc_entry::{Label, Origin};
use gjc_protocol::{Picture, PromptPart, Refusal};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A file that was read for a prompt.
#[derive(Debug)]
pub struct Attached {
    text: String,
    picture: Option<Picture>,
    path: PathBuf,
    file: File,
}

impl Attached {
    /// Reads a file, named from the folder where the person is.
    ///
    /// # Errors
    /// A refusal that names the file: it is not there, no file, or neither text nor picture.
    pub fn read(here: &Path, given: &str) -> Result<Self, Refusal> {
        let (seen, file) = read::whole(here, given)?;
        let picture = seen.picture.map(|(mime, data)| Picture { mime: mime.into(), data });
        // A picture's own line names it; a text is only numbered lines.
        let text = if picture.is_some() { seen.text } else { format!("[{given}]\n{}", seen.text) };
        Ok(Self { text, picture, path: path::find(here, given), file })
    }

    /// As a piece of a prompt to a session that works in `cwd`: what lies outside of it, or in gjc's `own` folder, is nobody's
    /// word, as for `read`.
    #[must_use]
    pub fn part(self, cwd: &Path, own: &Path) -> PromptPart {
        let Label { trusted, .. } = path::label_of(cwd, own, &self.path, &self.file);
        PromptPart { text: self.text, origin: Origin::Media, picture: self.picture, untrusted: !trusted }
    }
}

/// Whether models take a picture: its kind is one of theirs, its bytes are of that kind and not too many.
///
/// # Errors
/// A refusal that says what is wrong with it.
pub fn check_picture(picture: &Picture) -> Result<(), Refusal> {
    let wrong = |why: String| Refusal::new("bad_picture", why);
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(&picture.data)
        .map_err(|error| wrong(format!("the data of a picture is no base64: {error}")))?;
    if bytes.len() as u64 > IMAGE_BYTES {
        return Err(wrong(format!("a picture has {} bytes; models take {IMAGE_BYTES}", bytes.len())));
    }
    match picture_kind(&bytes) {
        Some(kind) if kind == picture.mime => Ok(()),
        Some(kind) => Err(wrong(format!("a picture that is called {} is {kind}", picture.mime))),
        None => Err(wrong(format!("what is called {} is no picture that models take", picture.mime))
            .hint("they take PNG, JPEG, GIF and WebP")),
    }
}
