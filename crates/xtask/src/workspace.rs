//! What cargo knows about the workspace.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The part of `cargo metadata --no-deps` that the checks read.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Workspace {
    /// The members, in cargo's order.
    pub(crate) packages: Vec<Package>,
    /// Where the root `Cargo.toml` lies.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// Where builds go.
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
}

/// One crate of the workspace.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    /// Name of the crate.
    pub(crate) name: String,
    /// Its `Cargo.toml`.
    pub(crate) manifest_path: PathBuf,
    /// What its `Cargo.toml` asks for; optional dependencies too.
    pub(crate) dependencies: Vec<Dependency>,
}

/// One line of a dependency table.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Dependency {
    /// Name of the crate that is asked for (not its local alias).
    pub(crate) name: String,
    /// Which table the line stands in.
    #[serde(default)]
    pub(crate) kind: Kind,
}

/// The dependency tables of cargo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    /// `[dependencies]`.
    #[default]
    Normal,
    /// `[build-dependencies]`.
    Build,
    /// `[dev-dependencies]`.
    Dev,
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // Cargo writes `null` for the ordinary table.
        Ok(match Option::<String>::deserialize(d)?.as_deref() {
            None | Some("normal") => Self::Normal,
            Some("build") => Self::Build,
            Some("dev") => Self::Dev,
            Some(other) => return Err(serde::de::Error::custom(format!("unknown kind of dependency `{other}`"))),
        })
    }
}

/// Asks cargo.
///
/// # Errors
/// When cargo fails (a broken `Cargo.toml`) or answers something else than the documented JSON.
pub(crate) fn load() -> Result<Workspace> {
    let out = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo could not be started; is it on PATH?")?;
    ensure!(out.status.success(), "`cargo metadata` failed; what it said stands above");
    serde_json::from_slice(&out.stdout).context("`cargo metadata` answered something unexpected")
}
