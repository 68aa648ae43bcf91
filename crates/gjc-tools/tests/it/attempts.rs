//! What a program in the sandbox tries, done by this test's own binary: a command runs it with `GJC_ATTEMPT` set.

use std::ffi::CString;
use std::io;
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};

/// The command that makes an attempt; it prints `done`, or `errno N`.
pub(crate) fn attempt(what: &str, with: &str) -> String {
    let exe = std::env::current_exe().unwrap();
    format!(
        "GJC_ATTEMPT='{what}' GJC_WITH='{with}' '{}' --exact attempts::an_attempt_that_a_command_makes --nocapture",
        exe.display()
    )
}

/// What an attempt printed.
pub(crate) fn answer(said: &str) -> &str {
    let line = said.lines().find_map(|line| line.split_once("ATTEMPT: "));
    line.unwrap_or_else(|| panic!("no attempt was made: {said}")).1
}

#[test]
fn an_attempt_that_a_command_makes() {
    let Ok(what) = std::env::var("GJC_ATTEMPT") else { return };
    let with = std::env::var("GJC_WITH").unwrap_or_default();
    let said = match make(&what, &with) {
        Ok(()) => "done".into(),
        Err(error) => error.raw_os_error().map_or_else(|| error.to_string(), |errno| format!("errno {errno}")),
    };
    println!("\nATTEMPT: {said}");
}

fn make(what: &str, with: &str) -> io::Result<()> {
    let number = || with.parse::<i64>().unwrap();
    let text = CString::new(with).unwrap();
    match what {
        "tcp" => TcpStream::connect(with).map(drop),
        "udp" => UdpSocket::bind("0.0.0.0:0")?.send_to(b"x", with).map(drop),
        "resolve" => (with, 80).to_socket_addrs().map(drop),
        "connect" => UnixStream::connect(with).map(drop),
        "pair" => UnixDatagram::pair().map(drop),
        "own socket" => {
            let here = std::os::unix::net::UnixListener::bind(with)?;
            UnixStream::connect(with)?;
            drop(here);
            Ok(())
        }
        // SAFETY: system calls with numbers, and pointers to texts that outlive them; at worst this process is harmed.
        _ => checked(unsafe {
            match what {
                "ptrace" => libc::ptrace(0x4206 /* PTRACE_SEIZE */, number() as i32, 0, 0),
                "kill" => libc::kill(number() as i32, 0).into(),
                "read memory" => {
                    let mut seen = [0u8; 8];
                    let (pid, address) = with.split_once(' ').unwrap();
                    let mine = libc::iovec { iov_base: seen.as_mut_ptr().cast(), iov_len: 8 };
                    let theirs = libc::iovec { iov_base: address.parse::<usize>().unwrap() as *mut _, iov_len: 8 };
                    libc::process_vm_readv(pid.parse().unwrap(), &raw const mine, 1, &raw const theirs, 1, 0) as i64
                }
                "io_uring" => {
                    let mut params = [0u8; 120];
                    libc::syscall(libc::SYS_io_uring_setup, 4, params.as_mut_ptr())
                }
                "limit" => {
                    let none = libc::rlimit { rlim_cur: 1 << 50, rlim_max: libc::RLIM_INFINITY };
                    libc::prlimit(number() as i32, libc::RLIMIT_FSIZE, &raw const none, std::ptr::null_mut()).into()
                }
                "keyctl" => libc::syscall(libc::SYS_keyctl, 0, -4, 0),
                "mount" => libc::mount(c"none".as_ptr(), text.as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null()).into(),
                "user namespace" => libc::unshare(libc::CLONE_NEWUSER).into(),
                "clone into a namespace" => {
                    let flags = i64::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
                    let pid = libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0);
                    if pid == 0 {
                        libc::_exit(0);
                    }
                    pid
                }
                "clone3" => libc::syscall(libc::SYS_clone3, 0, 0),
                "type into a terminal" => {
                    let terminal = libc::open(c"/dev/ptmx".as_ptr(), libc::O_RDWR | libc::O_NOCTTY);
                    libc::ioctl(terminal, libc::TIOCSTI, c"x".as_ptr()).into()
                }
                "attribute" => libc::setxattr(text.as_ptr(), c"user.x".as_ptr(), c"x".as_ptr().cast(), 1, 0).into(),
                "packets" => libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM, 0).into(),
                "host socket" => libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0).into(),
                "kernel crypto" => libc::socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0).into(),
                "kernel events" => libc::socket(libc::AF_NETLINK, libc::SOCK_DGRAM, 15).into(),
                "routes" => libc::socket(libc::AF_NETLINK, libc::SOCK_DGRAM, 0).into(),
                "device" => libc::mknod(text.as_ptr(), libc::S_IFBLK | 0o600, libc::makedev(7, 0)).into(),
                "hard link" => {
                    let (from, to) = with.split_once('|').unwrap();
                    let (from, to) = (CString::new(from).unwrap(), CString::new(to).unwrap());
                    libc::link(from.as_ptr(), to.as_ptr()).into()
                }
                "truncate" => libc::truncate(text.as_ptr(), 0).into(),
                other => panic!("nobody knows how to try {other}"),
            }
        }),
    }
}

fn checked(answer: i64) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
