//! What may stand behind `/export`.

use crate::Refusal;

/// What stands behind `/export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportArgument<'a> {
    /// The page, where one is named.
    pub path: Option<&'a str>,
    /// Whether the page is opened once it is there.
    pub open: bool,
}

/// Reads what stands behind `/export`: a path that ends at its first blank, and `--no-open` before or behind it.
///
/// # Errors
/// When it asks for what `/dump` does, or is quoted: blanks cannot be kept here, and half a path would be another file.
pub fn export_argument(argument: &str) -> Result<ExportArgument<'_>, Refusal> {
    let mut words = argument.split_whitespace().take(2);
    let mut said = ExportArgument { path: None, open: true };
    while let Some(word) = words.next() {
        if word == NO_OPEN {
            said.open = false;
            continue;
        }
        if word.starts_with(['"', '\'']) {
            return Err(Refusal::new(
                "quoted_path",
                "a path behind /export ends at its first blank, and quotes do not change that",
            )
            .hint("for a path with blanks: gjc sessions export <id> \"my page.html\""));
        }
        if let Some(refusal) = refuse_copies(word) {
            return Err(refusal);
        }
        said.path = Some(word);
        said.open &= words.next() != Some(NO_OPEN);
    }
    Ok(said)
}

const NO_OPEN: &str = "--no-open";

/// The refusal of a word that asks for the clipboard.
#[must_use]
pub fn refuse_copies(word: &str) -> Option<Refusal> {
    matches!(word, "--copy" | "clipboard" | "copy").then(|| {
        Refusal::new("use_dump", "an export is a file; nothing is copied")
            .hint("use /dump to copy the session to the clipboard")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_ends_at_the_first_blank() {
        for (argument, path, open) in [
            ("", None, true),
            ("  \t", None, true),
            ("page.html", Some("page.html"), true),
            ("  세션/페이지.html  ", Some("세션/페이지.html"), true),
            ("my page.html", Some("my"), true),
            ("copy.html", Some("copy.html"), true),
            ("한글\u{3000}뒤", Some("한글"), true),
            ("--no-open", None, false),
            ("--no-open page.html", Some("page.html"), false),
            ("page.html --no-open", Some("page.html"), false),
        ] {
            assert_eq!(export_argument(argument).unwrap(), ExportArgument { path, open }, "{argument:?}");
        }
    }

    #[test]
    fn copies_are_for_dump_and_quoted_paths_for_the_command_line() {
        for argument in ["--copy", "clipboard", "copy", " copy now"] {
            let refusal = export_argument(argument).unwrap_err();
            assert_eq!(refusal.code, "use_dump");
            assert!(refusal.hint.unwrap().contains("/dump"));
        }
        for argument in ["\"my page.html\"", "'a b'"] {
            let refusal = export_argument(argument).unwrap_err();
            assert_eq!(refusal.code, "quoted_path");
            assert!(refusal.hint.unwrap().contains("gjc sessions export"));
        }
    }
}
