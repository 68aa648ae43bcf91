//! Sockets of programs outside that would do for a command what the command may not: container engines, agents of keys, the
//! desktop's bus, terminals that type. Only looks whether they are there and could be used; connects to none.

use gjc_entry::Vars;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, FileType};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Sockets, or folders of sockets.
const SYSTEM: &[&str] = &[
    "/run/docker.sock",
    "/run/podman",
    "/run/containerd",
    "/run/crio",
    "/run/libvirt",
    "/run/lxd.socket",
    "/run/incus",
    "/run/snapd.socket",
    "/run/systemd/private",
    "/var/lib/lxd/unix.socket",
    "/var/lib/incus/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
    "/run/user",
    "/run/screen",
    // Terminal multiplexers, editors, agents, displays, databases: whatever a person runs.
    "/tmp",
    "/var/tmp",
];

/// Below the home folder.
const HOME: &[&str] =
    &[".colima", ".docker/desktop", ".docker/run", ".gnupg", ".lima", ".orbstack/run", ".rd", ".screen", ".ssh"];

/// Variables that name one, maybe with a scheme before the path and more behind it.
const VARS: &[&str] = &[
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "I3SOCK",
    "KITTY_LISTEN_ON",
    "NIRI_SOCKET",
    "PODMAN_HOST",
    "SSH_AUTH_SOCK",
    "SWAYSOCK",
    "TMUX",
    "VSCODE_IPC_HOOK_CLI",
    "XDG_RUNTIME_DIR",
];

/// How deep is looked, and at how many entries in all. What is too large to be looked through counts as a door.
const DEPTH: usize = 3;
const MOST: usize = 20_000;

/// The places that variables name.
pub(super) fn named(vars: &Vars) -> Vec<PathBuf> {
    VARS.iter().filter_map(|name| path_in(vars.get(name)?)).collect()
}

/// The path in `unix:path=/a/b,guid=…`, `unix:///a/b`, `/a/b,12,0` or `/a/b`.
fn path_in(value: &str) -> Option<PathBuf> {
    let path = &value[value.find('/')?..];
    let path = path.split([',', ';']).next()?;
    Some(PathBuf::from(format!("/{}", path.trim_start_matches('/'))))
}

/// The kernel's list of sockets: those of this network namespace, wherever they lie.
const SOCKETS: &str = "/proc/net/unix";

/// The paths in the kernel's list: seven fields, then the path as it was given to `bind`. One that does not begin at the root
/// cannot be found from here; those without a file (`@`) have their own rule in the kernel.
fn listed(table: &[u8]) -> BTreeSet<PathBuf> {
    let path = |line: &[u8]| {
        let mut rest = line;
        for _ in 0..7 {
            let field = rest.trim_ascii_start();
            rest = &field[memchr::memchr(b' ', field)?..];
        }
        rest.strip_prefix(b" ").filter(|path| path.starts_with(b"/")).map(|path| PathBuf::from(OsStr::from_bytes(path)))
    };
    table.split(|byte| *byte == b'\n').filter_map(path).collect()
}

/// Those that exist and that this process may connect to, in an order that does not change. What lies in `own` is the
/// commands' own and no door. The kernel names sockets wherever they are; the table finds those that it does not name: of
/// containers, and such as were bound by a relative path.
pub(super) fn reachable(home: &Path, named: &[PathBuf], own: &[PathBuf]) -> Vec<PathBuf> {
    let mut looked = Looked { own, found: BTreeSet::new(), left: MOST };
    let fixed = SYSTEM.iter().map(PathBuf::from).chain(HOME.iter().map(|below| home.join(below)));
    let listed = listed(&fs::read(SOCKETS).unwrap_or_default());
    for place in named.iter().cloned().chain(fixed).chain(listed) {
        // Links are followed here alone: what the table or a variable names may be one.
        if let Ok(about) = fs::metadata(&place) {
            looked.at(&place, about.file_type(), DEPTH);
        }
    }
    looked.found.into_iter().collect()
}

struct Looked<'o> {
    own: &'o [PathBuf],
    found: BTreeSet<PathBuf>,
    left: usize,
}

impl Looked<'_> {
    fn at(&mut self, place: &Path, kind: FileType, depth: usize) {
        if self.own.iter().any(|own| place.starts_with(own)) {
            return;
        }
        if kind.is_socket() && gjc_process::may_write(place) {
            self.found.insert(place.into());
        } else if kind.is_dir() && depth > 0 {
            self.folder(place, fs::read_dir(place), depth);
        }
    }

    fn folder(&mut self, place: &Path, listed: io::Result<fs::ReadDir>, depth: usize) {
        // What may be entered but not listed may hold one whose name somebody knows.
        if listed.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) && may_enter(place) {
            self.found.insert(place.into());
        }
        for entry in listed.into_iter().flatten().flatten() {
            if self.left == 0 {
                self.found.insert(place.into());
                return;
            }
            self.left -= 1;
            if let Ok(kind) = entry.file_type() {
                self.at(&entry.path(), kind, depth - 1);
            }
        }
    }
}

fn may_enter(folder: &Path) -> bool {
    accessat(CWD, folder, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_path_is_found_in_every_form_of_address() {
        for (value, path) in [
            ("unix:path=/run/user/1/bus,guid=x", Some("/run/user/1/bus")),
            ("unix:///var/run/docker.sock", Some("/var/run/docker.sock")),
            ("/tmp/tmux-1/한글,12,0", Some("/tmp/tmux-1/한글")),
            ("/a/agent.1", Some("/a/agent.1")),
            ("tcp:1", None),
            ("", None),
        ] {
            assert_eq!(path_in(value), path.map(PathBuf::from), "{value}");
        }
    }

    #[test]
    fn paths_are_read_from_the_kernels_list() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/한글 소켓\n\
            0000000000000000: 00000002 00000000 00000000 0002 01    17  /two blanks\n\
            0000000000000000: 00000002 00000000 00000000 0002 01     9 /run/a\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12345 @abstract\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12345 relative\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 22222\n\n /x\n";
        let found: Vec<_> = listed(table.as_bytes()).into_iter().collect();
        assert_eq!(found, ["/run/a", "/run/한글 소켓"].map(PathBuf::from));
        assert!(listed(b"").is_empty() && listed(b"1 2 3 4 5 6 7").is_empty());
    }

    #[test]
    fn a_folder_that_can_be_entered_but_not_listed_counts() {
        let dir = tempfile::tempdir().unwrap();
        let ssh = dir.path().join(".ssh");
        fs::create_dir(&ssh).unwrap();
        // What the system would say to anybody but root.
        let found_with = |listed: io::Result<fs::ReadDir>| {
            let mut looked = Looked { own: &[], found: BTreeSet::new(), left: MOST };
            looked.folder(&ssh, listed, DEPTH);
            looked.found.contains(&ssh)
        };
        assert!(found_with(Err(ErrorKind::PermissionDenied.into())));
        assert!(!found_with(Err(ErrorKind::NotFound.into())) && !found_with(fs::read_dir(&ssh)), "no door");
    }

    #[test]
    fn a_socket_counts_while_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        fs::create_dir_all(home.join(".docker/run")).unwrap();
        let socket = home.join(".docker/run/docker.sock");
        fs::write(&socket, "a file is no door").unwrap();
        // The machine may have others; these are below a folder that only this test has.
        let mine = |named: &[PathBuf], own: &[PathBuf]| {
            reachable(home, named, own).into_iter().filter(|path| path.starts_with(home)).collect::<Vec<_>>()
        };
        assert!(mine(&[], &[]).is_empty());
        fs::remove_file(&socket).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(mine(&[], &[]), std::slice::from_ref(&socket));
        assert!(mine(&[], &[home.to_path_buf()]).is_empty(), "a command's own sockets are no doors");
        let agent = home.join("agent.1");
        let _agent = UnixListener::bind(&agent).unwrap();
        let far = home.join("어느/곳에나/아주/깊이/있는 소켓");
        fs::create_dir_all(far.parent().unwrap()).unwrap();
        let _far = UnixListener::bind(&far).unwrap();
        assert!(mine(&[], &[]).contains(&far), "in no place of the table, and deeper than is looked");
        let found = mine(std::slice::from_ref(&agent), &[]);
        assert!(found.contains(&socket) && found.contains(&agent), "{found:?}");
    }
}
