//! Sockets of programs outside that would do for a command what the command may not: container engines, agents of keys, the
//! desktop's bus, terminals that type. Only looks whether they are there and could be used; connects to none.

use gjc_entry::Vars;
use std::fs;
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
    "/tmp/.X11-unix",
];

/// Folders with one folder for each person: all of them are looked through, since what is another's cannot be used.
const OF_PEOPLE: &[(&str, &str)] = &[("/run/user", ""), ("/tmp", "tmux-"), ("/tmp", "ssh-"), ("/run/screen", "S-")];

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

/// How deep, and how many entries of a folder, are looked at.
const DEPTH: usize = 3;
const MOST: usize = 1024;

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

/// Those that exist and that this process may connect to, in an order that does not change.
pub(super) fn reachable(home: &Path, named: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let fixed = SYSTEM.iter().map(PathBuf::from).chain(HOME.iter().map(|below| home.join(below)));
    for place in fixed.chain(named.iter().cloned()) {
        look(&place, DEPTH, &mut found);
    }
    for (folder, prefix) in OF_PEOPLE {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(MOST) {
            if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
                look(&entry.path(), DEPTH, &mut found);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn look(place: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    // Links are followed at the top alone: what a variable or the table names may be one.
    let Ok(kind) = fs::metadata(place).map(|about| about.file_type()) else { return };
    if kind.is_socket() && gjc_process::may_write(place) {
        found.push(place.into());
    } else if kind.is_dir() && depth > 0 {
        for entry in fs::read_dir(place).into_iter().flatten().flatten().take(MOST) {
            if entry.file_type().is_ok_and(|kind| kind.is_socket() || kind.is_dir()) {
                look(&entry.path(), depth - 1, found);
            }
        }
    }
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
    fn a_socket_counts_while_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        fs::create_dir_all(home.join(".docker/run")).unwrap();
        let socket = home.join(".docker/run/docker.sock");
        fs::write(&socket, "a file is no door").unwrap();
        let mine = |found: Vec<PathBuf>| found.into_iter().filter(|path| path.starts_with(home)).collect::<Vec<_>>();
        assert!(mine(reachable(home, &[])).is_empty());
        fs::remove_file(&socket).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(mine(reachable(home, &[])), std::slice::from_ref(&socket));
        let agent = home.join("agent.1");
        let _agent = UnixListener::bind(&agent).unwrap();
        assert_eq!(mine(reachable(home, std::slice::from_ref(&agent))), [socket, agent]);
    }
}
