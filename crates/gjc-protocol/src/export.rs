//! What may stand behind `/export`.

use crate::Refusal;

/// What stands behind `/export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportArgument<'a> {
    /// The page, where one is named.
    pub path: Option<&'a str>,
    /// Whether the page is opened once it is there.
    pub open: bool,
    /// Whether it replaces a file that is no earlier page.
    pub force: bool,
}

/// Reads what stands behind `/export`: a path that ends at its first blank, and `--no-open` and `--force` before or right behind it.
///
/// # Errors
/// When it asks for what `/dump` does, has another option, or is quoted: blanks cannot be kept here, and half a path would be another file.
pub fn export_argument(argument: &str) -> Result<ExportArgument<'_>, Refusal> {
    let mut said = ExportArgument { path: None, open: true, force: false };
    for word in argument.split_whitespace() {
        match word {
            "--no-open" => {
                said.open = false;
                continue;
            }
            "--force" => {
                said.force = true;
                continue;
            }
            // What stands behind the first blank belongs to no path, nor to another: a forced `my page.html` never
            // replaces `my`.
            _ if said.path.is_some() && !word.starts_with('-') => break,
            _ => {}
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
        if word.starts_with('-') {
            return Err(Refusal::new("unknown_option", format!("there is no {word} behind /export")).hint(format!(
                "what may stand there: a path, --no-open, --force; a file whose name begins so is ./{word}"
            )));
        }
        said.path = Some(word);
    }
    Ok(said)
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
        for (argument, path, open, force) in [
            ("", None, true, false),
            ("  \t", None, true, false),
            ("page.html", Some("page.html"), true, false),
            ("  세션/페이지.html  ", Some("세션/페이지.html"), true, false),
            ("my page.html", Some("my"), true, false),
            ("copy.html", Some("copy.html"), true, false),
            ("한글\u{3000}뒤", Some("한글"), true, false),
            ("--no-open", None, false, false),
            ("--no-open page.html", Some("page.html"), false, false),
            ("page.html --no-open", Some("page.html"), false, false),
            ("쪽지.html --force", Some("쪽지.html"), true, true),
            ("--force", None, true, true),
            ("--force --no-open a.html", Some("a.html"), false, true),
            ("a.html --no-open --force", Some("a.html"), false, true),
            ("my page.html --force", Some("my"), true, false),
            ("./--copy", Some("./--copy"), true, false),
        ] {
            assert_eq!(export_argument(argument).unwrap(), ExportArgument { path, open, force }, "{argument:?}");
        }
    }

    #[test]
    fn an_option_that_is_none_is_no_path() {
        for argument in ["-f", "--forced", "a.html --오픈", "-", "--no-open --open"] {
            let refusal = export_argument(argument).unwrap_err();
            assert_eq!(refusal.code, "unknown_option", "{argument}");
            assert!(refusal.hint.unwrap().contains("--force"));
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
