//! What may stand behind `/export`.

use crate::Refusal;

/// The path behind `/export`, if there is one. It ends at the first blank.
///
/// # Errors
/// When it asks for what `/dump` does, or is quoted: blanks cannot be kept here, and half a path would be another file.
pub fn export_argument(argument: &str) -> Result<Option<&str>, Refusal> {
    let Some(word) = argument.split_whitespace().next() else { return Ok(None) };
    if word.starts_with(['"', '\'']) {
        return Err(Refusal::new(
            "quoted_path",
            "a path behind /export ends at its first blank, and quotes do not change that",
        )
        .hint("for a path with blanks: gjc sessions export <id> \"my page.html\""));
    }
    match refuse_copies(word) {
        Some(refusal) => Err(refusal),
        None => Ok(Some(word)),
    }
}

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
        for (argument, path) in [
            ("", None),
            ("  \t", None),
            ("page.html", Some("page.html")),
            ("  세션/페이지.html  ", Some("세션/페이지.html")),
            ("my page.html", Some("my")),
            ("copy.html", Some("copy.html")),
            ("한글\u{3000}뒤", Some("한글")),
        ] {
            assert_eq!(export_argument(argument).unwrap(), path, "{argument:?}");
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
