//! Keys, kept out of everything that is shown.

use std::fmt;

/// A key. Printing it prints nothing of it; only this crate reads it, to put it into a header.
#[derive(Clone)]
pub struct Secret(Box<str>);

impl Secret {
    /// Takes a key; white space around it (the line feed of a file or of a command's output) goes.
    #[must_use]
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text without the key in it: some providers repeat the key in the sentence that refuses it.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        if self.0.is_empty() { text.into() } else { text.replace(&*self.0, "[key]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let key = Secret::new("sk-비밀\n");
        assert_eq!(format!("{key:?} {:#?}", Some(&key)), "Secret Some(\n    Secret,\n)");
        assert_eq!(key.mask("the key sk-비밀 is bad"), "the key [key] is bad");
        assert_eq!(Secret::new("").mask("abc"), "abc");
    }
}
