//! Every sentence that the source can say to a person is in the table, and every pair of the table is said somewhere.

use super::table::Table;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What models and developers are told is not for the person at the keyboard.
const OTHERS: [&str; 4] = ["gjc-tools", "gjc-fp", "testkit", "xtask"];
/// What the look finds, and what has too few letters of its own to be told from words of others.
const NO_SENTENCES: [&str; 3] = ["\"lone surrogates\"", "{} is not {}", "\"{}\" is not {}"];
/// Crates whose texts a person reads wherever they are made.
const EDGES: [&str; 3] = ["gjc", "gjc-agent", "gjc-settings"];
/// Calls whose texts a person reads.
const SAYING: [&str; 12] =
    ["usage", "new", "hint", "talk", "notice", "push", "fail", "above", "Notice", "ok", "note", "problem"];

#[test]
fn every_sentence_is_translated() {
    let table = Table::parse(include_str!("korean.txt"));
    let said = sentences();
    let missing: Vec<&String> = said.iter().filter(|sentence| !table.knows(sentence)).collect();
    assert!(missing.is_empty(), "crates/gjc/src/words/korean.txt lacks {}:\n{missing:#?}", missing.len());
}

#[test]
fn every_line_of_help_is_translated() {
    use clap::CommandFactory;
    let table = Table::parse(include_str!("korean.txt"));
    let mut command = crate::cli::Cli::command();
    command.build();
    let said: BTreeSet<String> = super::help::texts(&command).into_iter().collect();
    let missing: Vec<&String> = said.iter().filter(|line| super::help::lines(line, &table) == **line).collect();
    assert!(missing.is_empty(), "crates/gjc/src/words/korean.txt lacks {}:\n{missing:#?}", missing.len());
}

#[test]
fn every_translation_is_whole() {
    let table = Table::parse(include_str!("korean.txt"));
    for (from, said) in table.pairs() {
        let places = from.matches("{}").count();
        for place in 1..=places {
            assert!(said.contains(&format!("{{{place}}}")), "what differs is lost: {from}\n{said}");
        }
        assert!(!said.contains(&format!("{{{}}}", places + 1)), "{from}\n{said}");
        assert!(said.chars().any(|c| ('가'..='힣').contains(&c)), "no 한글: {said}");
    }
}

fn sentences() -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeSet::new();
    for folder in std::fs::read_dir(crates).expect("the workspace is there").flatten() {
        if !OTHERS.iter().any(|other| folder.file_name() == *other) {
            let edge = EDGES.iter().any(|edge| folder.file_name() == *edge);
            for file in sources(&folder.path().join("src")) {
                let text = std::fs::read_to_string(&file).expect("a source is text");
                look(TokenStream::from_str(&text).expect("a source is Rust"), edge, &mut found);
            }
        }
    }
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    files
}

/// Collects `#[error("…")]`; at the edge also the texts in the arguments of what speaks.
fn look(tokens: TokenStream, edge: bool, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        let before = |back: usize| index.checked_sub(back).map(|at| tokens[at].to_string());
        if before(2).as_deref() == Some("mod") && before(1).as_deref() == Some("tests") {
            continue;
        }
        let name = before(1).unwrap_or_default();
        let arguments = matches!(group.delimiter(), Delimiter::Parenthesis | Delimiter::Brace);
        let speaks = name == "error" && group.delimiter() == Delimiter::Parenthesis
            || edge && arguments && SAYING.contains(&name.as_str())
            || group.delimiter() == Delimiter::Brace && is_body_of_hint(&tokens[..index]);
        if speaks {
            literals(group, found);
        }
        look(group.stream(), edge, found);
    }
}

/// Whether what stands before a group is the head of `fn hint(…) -> …`.
fn is_body_of_hint(before: &[TokenTree]) -> bool {
    let head = before.iter().rposition(|token| token.to_string() == "fn").map_or(&[][..], |at| &before[at..]);
    let whole =
        head.iter().filter(|token| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace));
    head.get(1).is_some_and(|name| name.to_string() == "hint") && whole.count() == 0
}

/// The sentences in a group: texts with a blank in them.
fn literals(group: &Group, found: &mut BTreeSet<String>) {
    for token in group.stream() {
        match token {
            TokenTree::Group(inner) => literals(&inner, found),
            TokenTree::Literal(literal) => {
                if let Some(text) = text_of(&literal.to_string()) {
                    for line in text.split('\n') {
                        let line = line.strip_prefix("gjc: ").or_else(|| line.strip_prefix("hint: ")).unwrap_or(line);
                        let sentence = with_places(line);
                        // Half of a sentence, or a word, is no sentence.
                        if sentence.replace("{}", "").trim().contains(' ') && !NO_SENTENCES.contains(&sentence.as_str())
                        {
                            found.insert(sentence);
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// The text of a string literal.
fn text_of(literal: &str) -> Option<String> {
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    let (mut text, mut chars) = (String::new(), inner.chars().peekable());
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (c, false) => text.push(c),
            _ => match chars.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                '\n' => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                other => text.push(other),
            },
        }
    }
    Some(text)
}

/// With `{}` for whatever stands in braces.
fn with_places(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        out.push_str(before);
        match (behind.strip_prefix('{'), behind.split_once('}')) {
            (Some(behind), _) => {
                out.push('{');
                rest = behind;
            }
            (None, Some((_, after))) => {
                out.push_str("{}");
                rest = after;
            }
            (None, None) => return text.to_owned(),
        }
    }
    out + rest
}
