//! Which paths a Rust file mentions outside its tests, written out as far as the file's own imports tell.
//!
//! Tokens are enough for that, and unlike a text search they know comments, strings and `#[cfg(test)]`.

use std::collections::HashMap;
use std::str::FromStr;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One mention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    /// `std::fs::write`; a macro call ends with `!`, a glob import with `::*`.
    pub(crate) path: String,
    /// Line, counted from 1.
    pub(crate) line: usize,
}

/// All mentions of a file, and the files' worth of modules that only tests see.
#[derive(Debug, Default)]
pub(crate) struct Mentions {
    /// In the order of the file.
    pub(crate) paths: Vec<Mention>,
    /// Names of `#[cfg(test)] mod name;`.
    pub(crate) test_modules: Vec<String>,
}

/// Reads a file's text.
///
/// # Errors
/// When it does not consist of Rust tokens.
pub(crate) fn mentions(text: &str) -> Result<Mentions> {
    let tokens = TokenStream::from_str(text).map_err(|error| anyhow!("no Rust: {error}"))?;
    let mut reader = Reader::default();
    reader.walk(tokens);
    let imports = reader.imports;
    let mut found = reader.found;
    for mention in &mut found.paths {
        mention.path = written_out(&mention.path, &imports);
    }
    Ok(found)
}

/// `process::Command::new` after `use std::process;` is `std::process::Command::new`.
fn written_out(path: &str, imports: &HashMap<String, String>) -> String {
    let (first, rest) = path.split_once("::").unwrap_or((path, ""));
    match imports.get(first) {
        Some(full) if rest.is_empty() => full.clone(),
        Some(full) => format!("{full}::{rest}"),
        None => path.to_owned(),
    }
}

#[derive(Default)]
struct Reader {
    found: Mentions,
    imports: HashMap<String, String>,
}

impl Reader {
    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = self.step(&tokens, at);
        }
    }

    /// Reads what starts at `at`, answers where the next thing starts.
    fn step(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        if let Some(attribute) = attribute(tokens, at) {
            return self.attribute(&attribute, tokens, at);
        }
        match &tokens[at] {
            TokenTree::Ident(word) if *word == "use" => self.import(tokens, at + 1),
            TokenTree::Ident(_) => self.path(tokens, at),
            TokenTree::Group(group) => {
                self.walk(group.stream());
                at + 1
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => at + 1,
        }
    }

    fn attribute(&mut self, attribute: &Attribute, tokens: &[TokenTree], at: usize) -> usize {
        let text: String = attribute.inside.to_string().chars().filter(|c| !c.is_whitespace()).collect();
        let next = at + attribute.len;
        if text.starts_with("cfg(test)") || text.starts_with("cfg(all(test") {
            return if attribute.inner { tokens.len() } else { self.skip_item(tokens, next) };
        }
        if !text.starts_with("cfg_attr(test,") {
            self.walk(attribute.inside.clone());
        }
        next
    }

    /// Past the item at `at`: its further attributes, then up to its `;` or its braces.
    fn skip_item(&mut self, tokens: &[TokenTree], mut at: usize) -> usize {
        while let Some(attribute) = attribute(tokens, at) {
            at += attribute.len;
        }
        let start = at;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Punct(p) if p.as_char() == ';' => {
                    self.found.test_modules.extend(module_name(&tokens[start..at]));
                    break;
                }
                TokenTree::Group(g) if g.delimiter() == Delimiter::Brace && !is_use(&tokens[start..at]) => break,
                _ => {}
            }
        }
        at
    }

    /// A path in code: words joined by `::`, and a macro's `!`.
    fn path(&mut self, tokens: &[TokenTree], mut at: usize) -> usize {
        let line = tokens[at].span().start().line;
        let mut path = tokens[at].to_string();
        at += 1;
        while let Some(TokenTree::Ident(word)) = tokens.get(at + 2)
            && colons(tokens, at)
        {
            path = format!("{path}::{word}");
            at += 3;
        }
        let bang = matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == '!');
        if bang && matches!(tokens.get(at + 1), Some(TokenTree::Group(_))) {
            path.push('!');
            at += 1;
        }
        self.found.paths.push(Mention { path, line });
        at
    }

    /// `use` up to its `;`: each imported name is a mention, and an abbreviation for what follows.
    fn import(&mut self, tokens: &[TokenTree], start: usize) -> usize {
        let end = (start..tokens.len())
            .find(|&i| matches!(&tokens[i], TokenTree::Punct(p) if p.as_char() == ';'))
            .unwrap_or(tokens.len());
        // `use<'a>` in a return type is no import.
        if matches!(tokens.get(start), Some(TokenTree::Punct(p)) if p.as_char() == '<') {
            return start;
        }
        self.tree(&tokens[start..end], "");
        end
    }

    fn tree(&mut self, tokens: &[TokenTree], prefix: &str) {
        for branch in tokens.split(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ',')) {
            let mut path = prefix.to_owned();
            let mut alias = None;
            let mut words = branch.iter().peekable();
            let Some(line) = branch.first().map(|t| t.span().start().line) else { continue };
            let mut inner = None;
            while let Some(token) = words.next() {
                match token {
                    TokenTree::Ident(word) if *word == "as" => alias = words.next().map(ToString::to_string),
                    TokenTree::Ident(word) if *word == "self" && !prefix.is_empty() => {}
                    TokenTree::Ident(word) => path = join(&path, &word.to_string()),
                    TokenTree::Punct(p) if p.as_char() == '*' => path = join(&path, "*"),
                    TokenTree::Group(group) => inner = Some(group.stream()),
                    TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                }
            }
            if let Some(inner) = inner {
                self.tree(&inner.into_iter().collect::<Vec<_>>(), &path);
                continue;
            }
            let name = alias.unwrap_or_else(|| path.rsplit("::").next().unwrap_or(&path).to_owned());
            self.found.paths.push(Mention { path: path.clone(), line });
            if name != path {
                self.imports.insert(name, path);
            }
        }
    }
}

struct Attribute {
    inside: TokenStream,
    inner: bool,
    len: usize,
}

/// `#[..]` or `#![..]`.
fn attribute(tokens: &[TokenTree], at: usize) -> Option<Attribute> {
    let is = |i: usize, c: char| matches!(tokens.get(i), Some(TokenTree::Punct(p)) if p.as_char() == c);
    if !is(at, '#') {
        return None;
    }
    let inner = is(at + 1, '!');
    let len = if inner { 3 } else { 2 };
    match tokens.get(at + len - 1) {
        Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Bracket => {
            Some(Attribute { inside: g.stream(), inner, len })
        }
        _ => None,
    }
}

fn colons(tokens: &[TokenTree], at: usize) -> bool {
    [at, at + 1].iter().all(|&i| matches!(tokens.get(i), Some(TokenTree::Punct(p)) if p.as_char() == ':'))
}

fn is_use(tokens: &[TokenTree]) -> bool {
    tokens.iter().any(|t| matches!(t, TokenTree::Ident(word) if *word == "use"))
}

fn module_name(item: &[TokenTree]) -> Option<String> {
    let at = item.iter().position(|t| matches!(t, TokenTree::Ident(word) if *word == "mod"))?;
    item.get(at + 1).map(ToString::to_string)
}

fn join(prefix: &str, word: &str) -> String {
    if prefix.is_empty() { word.to_owned() } else { format!("{prefix}::{word}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn found(text: &str, path: &str) {
        let all = mentions(text).unwrap().paths;
        assert!(all.iter().any(|m| m.path == path), "no `{path}` in {all:#?}");
    }

    #[track_caller]
    fn silent(text: &str, word: &str) {
        let all = mentions(text).unwrap().paths;
        assert!(!all.iter().any(|m| m.path.contains(word)), "`{word}` in {all:#?}");
    }

    #[test]
    fn a_path_is_found_in_code_types_and_macros() {
        found("fn f() { std::process::Command::new(\"ls\"); }", "std::process::Command::new");
        found("struct S { c: std::process::Command }", "std::process::Command");
        found("fn f() { vec![std::env::var(\"HOME\")]; }", "std::env::var");
        found("fn f() { println!(\"한글\"); }", "println!");
    }

    #[test]
    fn imports_are_written_out() {
        found("use std::{fs, process::{Command, Stdio}};", "std::process::Command");
        found("use std::process; fn f() { process::Command::new(\"ls\"); }", "std::process::Command::new");
        found("use std::process::Command as C; fn f() { C::new(\"ls\"); }", "std::process::Command::new");
        found(
            "use std::process::{self, Stdio}; fn f() { process::Command::new(\"ls\"); }",
            "std::process::Command::new",
        );
        found("use std::env::*;", "std::env::*");
    }

    #[test]
    fn comments_strings_and_comparisons_are_no_mentions() {
        silent("/// std::process::Command\n// println!\nconst S: &str = \"println!(memmap)\";", "println");
        silent("fn f(print: u8) -> bool { print != 3 }", "print!");
    }

    #[test]
    fn tests_are_not_looked_at() {
        silent("#[cfg(test)] mod tests { use std::fs; }", "fs");
        silent("#[cfg(test)] #[allow(x)] fn f() { std::fs::read(p) }", "fs");
        silent("#![cfg(test)] use std::fs;", "fs");
        silent("#[cfg(test)] use std::{fs, io}; fn f() {}", "fs");
        silent("#![cfg_attr(test, allow(clippy::disallowed_methods))] fn f() {}", "disallowed");
        found("#[cfg(test)] mod tests { } fn f() { std::fs::read(p); }", "std::fs::read");
        found("#[cfg(feature = \"testing\")] fn f() { std::fs::read(p); }", "std::fs::read");
        assert_eq!(mentions("#[cfg(test)] mod tests; mod other;").unwrap().test_modules, ["tests"]);
    }

    #[test]
    fn an_attribute_is_a_mention_with_its_line() {
        let all = mentions("fn a() {}\n#[allow(clippy::disallowed_methods)]\nfn b() {}").unwrap().paths;
        assert!(all.contains(&Mention { path: "clippy::disallowed_methods".into(), line: 2 }), "{all:#?}");
    }

    #[test]
    fn what_is_no_rust_is_said() {
        assert!(mentions("fn f( {").is_err());
    }
}
