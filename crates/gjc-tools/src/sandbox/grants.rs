//! "All but these", for a kernel that only knows "these": the folders and files that together are everything below a folder
//! except what is denied. Only looks at names; follows no link.

use std::fs;
use std::path::{Path, PathBuf};

/// Grants that cover everything below `top` as it is now, except what is denied.
///
/// A folder that holds something denied (at any depth, there already or not yet) is never granted itself, only its other
/// entries one by one. So what appears in it later is granted to nobody: the list errs by hiding.
pub(super) fn all_but(top: &Path, denied: &[PathBuf]) -> Vec<PathBuf> {
    let mut grants = Vec::new();
    if !denied.iter().any(|secret| top.starts_with(secret)) {
        collect(top, &denied.iter().map(PathBuf::as_path).collect::<Vec<_>>(), &mut grants);
    }
    grants
}

/// `around`: the denied places that count here, none of them a folder above `path`.
fn collect(path: &Path, around: &[&Path], grants: &mut Vec<PathBuf>) {
    let within: Vec<&Path> = around.iter().copied().filter(|secret| secret.starts_with(path)).collect();
    if within.contains(&path) {
        return;
    }
    if within.is_empty() {
        grants.push(path.into());
        return;
    }
    // A folder that cannot be listed cannot be granted in parts.
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        // A link is granted where it leads, by that place's own name.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            collect(&entry.path(), &within, grants);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Every file and folder of a tree.
    fn walk(dir: &Path) -> Vec<PathBuf> {
        let mut found = vec![dir.to_path_buf()];
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                found.extend(walk(&entry.path()));
            } else {
                found.push(entry.path());
            }
        }
        found
    }

    fn path() -> impl Strategy<Value = PathBuf> {
        let name = prop::sample::select(vec!["a", "b", ".ssh", "한글", "config"]);
        prop::collection::vec(name, 1..4).prop_map(|parts| parts.iter().collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn each_file_is_granted_exactly_if_no_denied_place_holds_it(
            files in prop::collection::btree_set(path(), 0..12),
            denied in prop::collection::vec(path(), 0..4),
            later in prop::collection::btree_set(path(), 0..6),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let top = dir.path();
            let make = |files: &BTreeSet<PathBuf>| for file in files {
                let path = top.join(file);
                let _ = fs::create_dir_all(path.parent().unwrap());
                if !path.exists() { let _ = fs::write(&path, "x"); }
            };
            make(&files);
            let denied: Vec<_> = denied.iter().map(|path| top.join(path)).collect();
            let grants = all_but(top, &denied);
            let granted = |path: &Path| grants.iter().any(|grant| path.starts_with(grant));
            let secret = |path: &Path| denied.iter().any(|denied| path.starts_with(denied));
            for path in walk(top).iter().filter(|path| path.is_file()) {
                // A file at the place of a folder that was to hold something denied is hidden with it.
                let instead = denied.iter().any(|denied| denied.starts_with(path));
                prop_assert_eq!(granted(path), !secret(path) && !instead, "{:?} with {:?}", path, denied);
            }
            // Whatever comes later: a secret is never granted.
            make(&later);
            for path in walk(top) {
                prop_assert!(!(secret(&path) && granted(&path)), "{:?} with {:?}", path, denied);
            }
        }
    }

    #[test]
    fn links_are_not_granted_and_what_is_denied_need_not_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        fs::create_dir(top.join("열린")).unwrap();
        std::os::unix::fs::symlink("/", top.join("link")).unwrap();
        assert_eq!(all_but(top, &[top.join(".ssh")]), [top.join("열린")]);
        assert_eq!(all_but(top, &[]), [top]);
        assert!(all_but(top, &[top.to_path_buf()]).is_empty());
        assert!(all_but(&top.join("없다"), &[top.join("없다/것")]).is_empty());
    }
}
