//! Recorded sessions and answers of other programs. They are not part of the project: a machine has them or has not.

use std::path::{Path, PathBuf};

/// A file or folder of the shared material, as `fixtures/sessions/…`: looked for in the folder `GJC_SHARED` names, else in
/// `shared` beside the workspace's root. `None` (and a line on stderr) when it is not here; under `GJC_CI=1` that fails the
/// test only when `GJC_SHARED` is set, so that a named folder cannot be lost silently.
#[must_use]
#[track_caller]
pub fn path(of: impl AsRef<Path>) -> Option<PathBuf> {
    let of = of.as_ref();
    let named = std::env::var_os("GJC_SHARED").map(PathBuf::from);
    let root = named.clone().unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let path = root.join(of);
    if path.exists() {
        return Some(path);
    }
    let ci = std::env::var("GJC_CI").is_ok_and(|v| v == "1");
    assert!(!(ci && named.is_some()), "GJC_SHARED names {}, where there is no {}", root.display(), of.display());
    eprintln!("left out: {} is not on this machine (GJC_SHARED names the folder that holds it)", of.display());
    None
}
