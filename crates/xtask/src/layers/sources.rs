//! Rules about the sources of each crate: what may be mentioned where.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::paths;
use super::table::{Exempt, Kept};
use crate::workspace::Workspace;

const SWITCH: &str = "clippy::disallowed_methods";

/// The rules; a value, so that tests can bring their own.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) kept: &'static [Kept],
    pub(crate) exempt: &'static [Exempt],
}

/// What a scan found.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Broken rules, as sentences.
    pub(crate) broken: Vec<String>,
    /// How many files were read.
    pub(crate) files: usize,
    /// How often each exemption is used, in the order of the table.
    pub(crate) exempt_uses: Vec<usize>,
}

/// Reads `crates/*/src` of every member; `tests/`, `benches/` and `#[cfg(test)]` are not looked at.
///
/// # Errors
/// When a file cannot be read or is no Rust.
pub(crate) fn check(rules: &Rules, workspace: &Workspace) -> Result<Scan> {
    let mut scan = Scan { exempt_uses: vec![0; rules.exempt.len()], ..Scan::default() };
    for package in &workspace.packages {
        let home = package.manifest_path.parent().context("a Cargo.toml lies in a folder")?;
        let mut files = Vec::new();
        rust_files(&home.join("src"), &mut files)?;
        if home.join("build.rs").exists() {
            files.push(home.join("build.rs"));
        }
        let texts = read(&files)?;
        let skip = test_files(&texts);
        for (file, found) in texts.iter().filter(|(file, _)| !skip.iter().any(|s| file.starts_with(s))) {
            scan.files += 1;
            let place = format!("{}/{}", package.name, file.strip_prefix(home).unwrap_or(file).display());
            for mention in &found.paths {
                judge(rules, &mut scan, &package.name, &place, mention);
            }
        }
    }
    Ok(scan)
}

fn judge(rules: &Rules, scan: &mut Scan, krate: &str, place: &str, mention: &paths::Mention) {
    let at = format!("crates/{place}:{}", mention.line);
    if mention.path == SWITCH {
        match rules.exempt.iter().position(|exempt| inside(place, exempt.place)) {
            Some(which) => scan.exempt_uses[which] += 1,
            None => scan.broken.push(format!(
                "{at}: {SWITCH} is switched off here; do without, or add the place and its reason to EXEMPT in \
                 crates/xtask/src/layers/table.rs"
            )),
        }
    }
    for rule in rules.kept {
        let bound = rule.who.is_empty() || rule.who.contains(&krate);
        let here = rule.only_in.iter().any(|room| inside(place, room));
        if bound && !here && rule.paths.iter().any(|path| mentions(&mention.path, path)) {
            scan.broken.push(format!("{at}: `{}`: {}", mention.path, rule.why));
        }
    }
}

/// Whether `place` (`crate/src/a/b.rs`) is the room or lies in it.
fn inside(place: &str, room: &str) -> bool {
    place.strip_prefix(room).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
}

/// Whether the mention is the path, something under it, or a glob that brings it in.
fn mentions(mention: &str, path: &str) -> bool {
    let under = mention.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    let by_glob = mention.strip_suffix("::*").is_some_and(|parent| {
        path.strip_prefix(parent).is_some_and(|rest| rest.starts_with("::") && !rest[2..].contains("::"))
    });
    under || by_glob
}

type Read = Vec<(PathBuf, paths::Mentions)>;

fn read(files: &[PathBuf]) -> Result<Read> {
    let one = |file: &PathBuf| {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let found = paths::mentions(&text).with_context(|| file.display().to_string())?;
        Ok((file.clone(), found))
    };
    files.iter().map(one).collect()
}

/// Files and folders of modules that were declared `#[cfg(test)] mod name;`.
fn test_files(texts: &Read) -> BTreeSet<PathBuf> {
    let mut skip = BTreeSet::new();
    for (file, found) in texts {
        let folder = match file.file_stem().and_then(|stem| stem.to_str()) {
            Some("lib" | "main" | "mod") => file.parent().unwrap_or(file).to_owned(),
            _ => file.with_extension(""),
        };
        for name in &found.test_modules {
            skip.extend([folder.join(name), folder.join(format!("{name}.rs"))]);
        }
    }
    skip
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut entries: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::table::{EXEMPT, KEPT};
    use super::*;
    use crate::workspace::Package;

    /// Writes `crates/<place>` files and scans them with the real rules.
    fn scan(files: &[(&str, &str)]) -> Scan {
        let house = tempfile::tempdir().unwrap();
        let mut names = BTreeSet::new();
        for (place, text) in files {
            let path = house.path().join("crates").join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            names.insert(place.split('/').next().unwrap().to_owned());
        }
        let packages = names.into_iter().map(|name| Package {
            manifest_path: house.path().join("crates").join(&name).join("Cargo.toml"),
            name,
            dependencies: Vec::new(),
        });
        let workspace = Workspace {
            packages: packages.collect(),
            root: house.path().to_owned(),
            target: house.path().join("target"),
        };
        check(&Rules { kept: KEPT, exempt: EXEMPT }, &workspace).unwrap()
    }

    #[track_caller]
    fn broken(place: &str, text: &str, sentence: &str) {
        let found = scan(&[(place, text)]).broken;
        assert!(found.iter().any(|s| s.contains(sentence)), "expected `{sentence}`, found {found:#?}");
    }

    #[track_caller]
    fn fine(place: &str, text: &str) {
        assert_eq!(scan(&[(place, text)]).broken, Vec::<String>::new());
    }

    const SPAWN: &str = "use std::process::Command;";

    #[test]
    fn only_process_and_workspace_start_programs() {
        broken("gjc-tools/src/lib.rs", SPAWN, "only gjc-process and gjc-workspace start programs");
        broken("gjc-tools/src/lib.rs", "fn f() { tokio::process::Command::new(\"ls\"); }", "start programs");
        broken("gjc-tools/src/lib.rs", "use std::process::*;", "start programs");
        broken("gjc/src/main.rs", SPAWN, "start programs");
        fine("gjc-process/src/lib.rs", SPAWN);
        fine("gjc-workspace/src/git/mod.rs", SPAWN);
        fine("gjc-tools/src/lib.rs", "use std::process::ExitStatus;");
    }

    #[test]
    fn only_the_binary_reads_the_environment_and_prints() {
        broken("gjc-llm/src/lib.rs", "fn f() { std::env::var(\"HOME\"); }", "only gjc reads");
        broken("gjc-llm/src/lib.rs", "use std::env; fn f() { env::vars(); }", "only gjc reads");
        broken("gjc-llm/src/lib.rs", "fn f() { println!(\"안녕\"); }", "only gjc prints");
        fine("gjc/src/main.rs", "fn main() { println!(\"{:?}\", std::env::args()); }");
        fine("gjc-llm/src/lib.rs", "const X: &str = env!(\"CARGO_PKG_NAME\");");
    }

    #[test]
    fn nobody_maps_files() {
        broken("gjc-log/src/scan.rs", "use memmap2::Mmap;", "no file is mapped");
    }

    #[test]
    fn pure_crates_do_no_io() {
        broken("gjc-context/src/lib.rs", "use std::fs::File;", "do no I/O");
        broken("gjc-flow/src/lib.rs", "use std::net::TcpStream;", "do no I/O");
        fine("gjc-store/src/lib.rs", "use std::fs::File;");
    }

    #[test]
    fn the_log_touches_files_only_through_its_fs() {
        broken("gjc-log/src/writer.rs", "use std::fs::File;", "only through its `Fs`");
        fine("gjc-log/src/fs/os.rs", "use std::fs::File;");
    }

    #[test]
    fn the_lint_is_switched_off_only_where_the_list_says() {
        let off = "#![allow(clippy::disallowed_methods)]";
        broken("gjc-context/src/lib.rs", off, "switched off here");
        broken("gjc-log/src/lib.rs", off, "switched off here");
        let found = scan(&[("gjc-log/src/fs/os.rs", off), ("gjc/src/main.rs", off)]);
        assert_eq!(found.broken, Vec::<String>::new());
        assert_eq!(found.exempt_uses.iter().sum::<usize>(), 2);
    }

    #[test]
    fn tests_are_free() {
        fine("gjc-log/src/lib.rs", "#[cfg(test)] mod tests { use std::process::Command; }");
        assert!(
            scan(&[
                ("gjc-log/src/lib.rs", "#[cfg(test)] mod probe;"),
                ("gjc-log/src/probe.rs", SPAWN),
                ("gjc-log/tests/it/main.rs", SPAWN),
            ])
            .broken
            .is_empty()
        );
    }

    #[test]
    fn a_room_is_a_whole_name() {
        assert!(inside("gjc-log/src/fs/os.rs", "gjc-log"));
        assert!(inside("gjc-log/src/fs.rs", "gjc-log/src/fs"));
        assert!(!inside("gjc-log/src/fsck.rs", "gjc-log/src/fs"));
        assert!(!inside("gjc-log/src/lib.rs", "gjc"));
    }
}
