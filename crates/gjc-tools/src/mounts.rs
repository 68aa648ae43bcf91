//! Other names of a place: a folder that is mounted a second time is the same folder, hidden and guarded there as well. Reads
//! what the kernel lists; mounts nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

struct Mount {
    device: Vec<u8>,
    /// The folder of the file system that is shown.
    root: PathBuf,
    /// Where.
    at: PathBuf,
}

/// The mounts of a system.
pub(crate) struct Mounts(Vec<Mount>);

impl Mounts {
    /// From `/proc/self/mountinfo`; none where it cannot be read.
    pub(crate) fn now() -> Self {
        Self::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    /// From its text (proc_pid_mountinfo(5)).
    fn parse(text: &[u8]) -> Self {
        let mount = |line: &[u8]| {
            let mut fields = line.split(|byte| *byte == b' ').skip(2);
            let device = fields.next()?.to_vec();
            Some(Mount { device, root: unescaped(fields.next()?), at: unescaped(fields.next()?) })
        };
        Self(text.split(|byte| *byte == b'\n').filter_map(mount).collect())
    }

    /// All other names of a place, and of folders and files in it that are mounted elsewhere by themselves.
    pub(crate) fn aliases(&self, place: &Path) -> Vec<PathBuf> {
        let Some((device, inside)) = self.inside(place) else { return Vec::new() };
        self.0
            .iter()
            .filter(|mount| mount.device == device)
            .filter_map(|mount| match inside.strip_prefix(&mount.root) {
                Ok(below) if below.as_os_str().is_empty() => Some(mount.at.clone()),
                Ok(below) => Some(mount.at.join(below)),
                Err(_) => mount.root.starts_with(&inside).then(|| mount.at.clone()),
            })
            .filter(|alias| alias != place)
            .collect()
    }

    /// Whether `place` lies in `folder` (or is it), under whatever name.
    pub(crate) fn holds(&self, folder: &Path, place: &Path) -> bool {
        match (self.inside(folder), self.inside(place)) {
            (Some((device, folder)), Some((same, place))) => device == same && place.starts_with(folder),
            _ => false,
        }
    }

    /// Where a place lies in its file system, whatever of that is mounted where.
    fn inside(&self, place: &Path) -> Option<(&[u8], PathBuf)> {
        // The mount that is seen there: the deepest, of several the last.
        let seen = self.0.iter().filter(|mount| place.starts_with(&mount.at));
        let own = seen.max_by_key(|mount| mount.at.components().count())?;
        Some((&own.device, own.root.join(place.strip_prefix(&own.at).ok()?)))
    }
}

/// A path in which blanks and line ends stand as `\040` and the like.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match digits {
            Some(digits) if *first == b'\\' => {
                bytes.push(digits.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
21 1 8:1 / / rw - ext4 /dev/a rw
22 21 0:5 / /proc rw - proc proc rw
30 21 8:2 /@home /home rw - btrfs /dev/b rw
31 21 8:2 / /mnt/온\\040통 rw - btrfs /dev/b rw
32 21 8:2 /@home/u/.ssh /srv/keys rw - btrfs /dev/b rw
33 21 8:2 /@other /other rw - btrfs /dev/b rw
broken
";

    #[test]
    fn what_is_in_a_folder_is_so_under_every_name() {
        let mounts = Mounts::parse(TABLE.as_bytes());
        let holds = |folder: &str, place: &str| mounts.holds(Path::new(folder), Path::new(place));
        assert!(holds("/home/u/.ssh", "/srv/keys/id") && holds("/srv/keys", "/home/u/.ssh"));
        // A part of the folder that is mounted by itself: of its parents there none is the folder.
        assert!(holds("/home/u", "/srv/keys/한글") && holds("/home/u", "/mnt/온 통/@home/u/.ssh"));
        assert!(!holds("/home/u/.ssh", "/home/u") && !holds("/home/u", "/other/u") && !holds("/home/u", "/etc"));
        assert!(!Mounts::parse(b"").holds(Path::new("/a"), Path::new("/a/b")));
    }

    #[test]
    fn a_place_is_known_under_all_its_names() {
        let mounts = Mounts::parse(TABLE.as_bytes());
        let names = |place: &str| mounts.aliases(Path::new(place));
        assert_eq!(names("/home/u/.ssh"), [PathBuf::from("/mnt/온 통/@home/u/.ssh"), PathBuf::from("/srv/keys")]);
        assert_eq!(names("/home/u"), [PathBuf::from("/mnt/온 통/@home/u"), PathBuf::from("/srv/keys")]);
        assert_eq!(
            names("/home/u/.ssh/더"),
            [PathBuf::from("/mnt/온 통/@home/u/.ssh/더"), PathBuf::from("/srv/keys/더")]
        );
        assert!(names("/etc/x").is_empty());
        assert!(Mounts::parse(b"").aliases(Path::new("/x")).is_empty());
        for hostile in ["\\", "\\0", "\\999", "\\777", "x\\04", "1 2 3 4", "1 2 3 \\400 \\"] {
            let _ = Mounts::parse(hostile.as_bytes()).aliases(Path::new("/x"));
            let _ = unescaped(hostile.as_bytes());
        }
    }
}
