//! Attempts from inside `bash`, each checked by its effect. Every attempt is made without a sandbox too, so that one that
//! could not have worked anyway proves nothing.

use crate::attempts::{answer, attempt};
use crate::rig::{Rig, dirs};
use crate::write::{mounted, passes_in_a_namespace};
use gjc_entry::Vars;
use gjc_process::{Network, NoLandlock, Support};
use gjc_tools::{Confinement, SECRETS, SandboxMode, SecretPlace, Shown, builtin};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// A person's home with a key in every place of the table, a workspace, and something outside.
struct Cage {
    rig: Rig,
    root: PathBuf,
    home: PathBuf,
    how: Confinement,
    vars: Vec<(String, String)>,
}

const KEY: &str = "sk-열쇠-0123456789";

impl Cage {
    /// `None`, and a word about it, where the kernel cannot hold a sandbox: then `require` must refuse.
    async fn new() -> Option<Self> {
        let cage = Self::anywhere();
        let lacks = cage.how.support.essential();
        if lacks.is_empty() {
            return Some(cage);
        }
        println!("no sandbox on this system: {lacks:?}; what is tested is that a required one refuses");
        let mut cage = cage;
        cage.how.mode = SandboxMode::Require;
        cage.refresh();
        assert!(cage.rig.bash("touch made").await.err().contains("the sandbox is required"));
        assert!(!cage.rig.cwd.join("made").exists());
        None
    }

    fn anywhere() -> Self {
        let rig = Rig::new();
        let root = rig.cwd.parent().unwrap().to_path_buf();
        let dirs = dirs(&root);
        let home = dirs.home.clone();
        for dir in [&dirs.agent, &dirs.temp, &home.join("project")] {
            fs::create_dir_all(dir).unwrap();
        }
        fs::write(rig.outside.join("남의 것"), "그대로").unwrap();
        let path = std::env::var("PATH").unwrap();
        let vars = [("PATH", path), ("HOME", home.display().to_string()), ("LANG", "C.UTF-8".into())];
        let mut cage = Self {
            how: Confinement::auto(&dirs),
            vars: vars.map(|(name, value)| (name.to_string(), value)).to_vec(),
            rig,
            root,
            home,
        };
        cage.refresh();
        cage
    }

    fn refresh(&mut self) {
        self.rig.tools = builtin(&Vars::new(self.vars.clone()), self.how.clone());
    }

    fn denied_network(mut self) -> Self {
        self.how.network = Network::Denied;
        self.refresh();
        self
    }

    /// The same world without a sandbox.
    async fn outside(&mut self, command: &str) -> String {
        let mode = std::mem::replace(&mut self.how.mode, SandboxMode::Off);
        self.refresh();
        let done = self.rig.bash(command).await;
        self.how.mode = mode;
        self.refresh();
        done.text
    }

    async fn try_it(&self, what: &str, with: &str) -> String {
        answer(&self.rig.bash(&attempt(what, with)).await.text).to_string()
    }

    async fn try_outside(&mut self, what: &str, with: &str) -> String {
        answer(&self.outside(&attempt(what, with)).await).to_string()
    }

    fn plant(&self, below: &str) -> PathBuf {
        let path = self.home.join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, KEY).unwrap();
        path
    }
}

/// All files below a folder with what they hold.
fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.push((entry.path(), Vec::new()));
            found.extend(tree(&entry.path()));
        } else {
            found.push((entry.path(), fs::read(entry.path()).unwrap_or_default()));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn nothing_outside_is_written_by_any_way() {
    let Some(mut cage) = Cage::new().await else { return };
    let outside = cage.rig.outside.clone();
    let theirs = outside.join("남의 것");
    std::os::unix::fs::symlink(&outside, cage.rig.cwd.join("link")).unwrap();
    std::os::unix::fs::symlink(&theirs, cage.rig.cwd.join("file-link")).unwrap();
    fs::hard_link(&theirs, cage.root.join("another name")).unwrap();
    let before = (tree(&outside), tree(&cage.home));
    let (o, h) = (outside.display(), cage.home.display());
    #[rustfmt::skip]
    let ways = [
        format!("echo x > '{o}/new'"),
        format!("echo x >> '{o}/남의 것'"),
        format!(": > '{o}/남의 것'"),
        "echo x > ../outside/new".into(),
        "echo x > link/new".into(),
        "echo x > file-link".into(),
        format!("rm -f '{o}/남의 것'"),
        format!("mv '{o}/남의 것' ."),
        format!("ln '{o}/남의 것' taken; echo x > taken"),
        format!("mkdir '{o}/dir'"),
        format!("ln -s /etc '{o}/sym'"),
        format!("mkfifo '{o}/pipe'"),
        "ln -s '../outside' l2; cp /etc/hostname l2/new".into(),
        format!("(sleep 0.1; echo x > '{o}/new') & wait"),
        format!("setsid sh -c \"echo x > '{o}/new'\"; sleep 0.1"),
        format!("cd '{o}' && echo x > new"),
        format!("echo x > \"/proc/self/root{o}/new\""),
        "echo x > \"/proc/self/cwd/../outside/new\"".into(),
        format!("echo x >> '{h}/.bashrc'; echo x >> '{h}/.profile'; mkdir -p '{h}/.ssh'; echo x > '{h}/.ssh/authorized_keys'"),
        format!("echo x > '{h}/project/new'"),
        format!("dd if=/dev/zero of='{o}/남의 것' bs=1 count=1 conv=notrunc"),
    ];
    for way in ways {
        cage.rig.bash(&way).await;
        assert_eq!((tree(&outside), tree(&cage.home)), before, "{way}");
    }
    for (what, with) in [
        ("truncate", theirs.display().to_string()),
        ("hard link", format!("{}|{}/taken-2", theirs.display(), cage.rig.cwd.display())),
        ("hard link", format!("/etc/hostname|{}/new", outside.display())),
    ] {
        assert!(cage.try_it(what, &with).await.starts_with("errno "), "{what}");
        assert_eq!((tree(&outside), tree(&cage.home)), before, "{what} {with}");
    }
    // Without the sandbox these do work.
    cage.outside(&format!("echo x > '{o}/new'; rm -f '{o}/남의 것'")).await;
    assert!(outside.join("new").exists() && !theirs.exists());
}

#[tokio::test]
async fn what_this_process_has_open_does_not_reach_a_command() {
    use std::os::fd::AsRawFd;
    let Some(cage) = Cage::new().await else { return };
    let theirs = cage.rig.outside.join("남의 것");
    let open = fs::File::options().append(true).open(&theirs).unwrap();
    // SAFETY: takes numbers, and a descriptor that is open; the copy is closed again below.
    let careless = unsafe { libc::fcntl(open.as_raw_fd(), libc::F_DUPFD, 50) };
    assert!(careless >= 50);
    let done = cage.rig.bash(&format!("echo x >&{careless}; ls /proc/self/fd")).await;
    // SAFETY: closes what was opened above, once.
    unsafe { libc::close(careless) };
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "그대로", "{}", done.text);
    assert!(!done.text.lines().any(|line| line == careless.to_string()), "{}", done.text);
}

#[tokio::test]
async fn the_workspace_and_the_private_folder_are_free() {
    let Some(cage) = Cage::new().await else { return };
    let done = cage
        .rig
        .bash(
            "set -e; mkdir -p 가/나; echo 글 > 가/나/파일; mv 가/나/파일 가/; ln 가/파일 가/둘; ln -s 파일 가/셋; \
             rm -r 가/나; cat 가/셋; f=$(mktemp); echo x > $f; mv $f 가/넷; mkfifo p; echo > /dev/null; \
             cat <(echo 하나) | tee >(cat > /dev/null); echo 끝 > /dev/stdout; [ -w /dev/shm ]; echo \"$TMPDIR\"",
        )
        .await;
    let text = done.ok().to_string();
    assert!(text.starts_with("글\n") && text.contains("하나") && text.contains("끝\n"), "{text}");
    let private = PathBuf::from(text.lines().last().unwrap());
    assert!(private.starts_with(cage.root.join("temp")) && private.is_dir());
    assert_eq!(crate::rig::mode(&private), 0o700);
    assert_eq!(cage.rig.bash("echo $TMPDIR").await.ok().trim_end(), private.to_str().unwrap(), "one a session");
    drop(cage.rig);
    assert!(!private.exists(), "it goes with the session");
}

#[tokio::test]
async fn no_key_of_the_home_is_read_and_everything_else_is() {
    let Some(mut cage) = Cage::new().await else { return };
    let secrets: Vec<PathBuf> = SECRETS
        .iter()
        .filter_map(|place| match place {
            // A folder of keys; one that the table means as a file is a folder here, which hides no less.
            SecretPlace::Home(below) => Some(cage.plant(&format!("{below}/비밀"))),
            _ => None,
        })
        .collect();
    assert!(secrets.len() > 80);
    let free: Vec<_> =
        [".gitconfig", ".config/git/config", ".cargo/config.toml", ".local/bin/도구", "project/a", ".cache/x/y"]
            .map(|below| cage.plant(below))
            .to_vec();
    // A file for each way to it: by path, by a link that was there before, from the home folder up.
    std::os::unix::fs::symlink(cage.home.join(".ssh"), cage.rig.cwd.join("keys")).unwrap();
    let all = |paths: &[PathBuf]| {
        paths.iter().map(|path| format!("cat '{}' || echo; echo", path.display())).collect::<Vec<_>>().join("\n")
    };
    let inside = cage.rig.bash(&all(&secrets)).await.text;
    assert!(!inside.contains(KEY), "{inside}");
    for way in [
        "cat keys/비밀",
        "cd ~ && cat .aws/비밀",
        "cat /proc/self/root$HOME/.ssh/비밀",
        "cp -r ~/.ssh .; cat .ssh/비밀",
        "mv ~/.ssh . ; cat .ssh/비밀",
        "ln ~/.ssh/비밀 taken; cat taken",
        "tar c ~/.gnupg ~/.kube | tr -d '\\0'",
        "grep -r 열쇠 ~/.gjc ~/.docker ~/.mozilla",
        "find ~/.ssh -name '*' -exec cat {} +",
        "ls ~/.ssh",
    ] {
        let text = cage.rig.bash(way).await.text;
        assert!(!text.contains(KEY) && !text.lines().any(|line| line == "비밀"), "{way}: {text}");
    }
    let read = cage.rig.bash(&all(&free)).await;
    assert_eq!(read.ok().matches(KEY).count(), free.len(), "{}", read.text);
    assert_eq!(cage.outside(&all(&secrets)).await.matches(KEY).count(), secrets.len(), "readable without");
}

#[tokio::test]
async fn keys_that_come_later_are_not_read_either() {
    let Some(cage) = Cage::new().await else { return };
    fs::create_dir_all(cage.home.join(".config/other")).unwrap();
    let call = cage
        .rig
        .plan(
            "bash",
            &serde_json::json!({"command":
                "touch started; until [ -e go ]; do sleep 0.01; done; cat ~/.ssh/id ~/.config/gh/hosts.yml ~/.netrc ~/.new"}),
        )
        .unwrap();
    let permits = cage.rig.permits(&call);
    let planted = async {
        while !cage.rig.cwd.join("started").exists() {
            tokio::task::yield_now().await;
        }
        for below in [".ssh/id", ".config/gh/hosts.yml", ".netrc", ".new"] {
            cage.plant(below);
        }
        fs::write(cage.rig.cwd.join("go"), "").unwrap();
    };
    let (done, ()) = tokio::join!(cage.rig.run(call, permits), planted);
    assert!(!done.err().contains(KEY), "{}", done.text);
    let later = cage.rig.bash("cat ~/.ssh/id; cat ~/.new").await;
    assert_eq!(later.text.matches(KEY).count(), 1, "what is no key is there for the next command: {}", later.text);
}

#[tokio::test]
async fn keys_that_variables_move_are_hidden_and_so_is_where_links_lead() {
    let Some(mut cage) = Cage::new().await else { return };
    let kube = cage.plant("elsewhere/kube.yml");
    let netrc = cage.plant("dotfiles/netrc");
    std::os::unix::fs::symlink(&netrc, cage.home.join(".netrc")).unwrap();
    cage.vars.push(("KUBECONFIG".into(), kube.display().to_string()));
    cage.refresh();
    let done = cage.rig.bash("cat ~/elsewhere/kube.yml ~/dotfiles/netrc ~/.netrc").await;
    assert!(!done.err().contains(KEY), "{}", done.text);
    assert!(done.text.contains("in the sandbox commands write only below"), "{}", done.text);
}

#[tokio::test]
async fn gjc_s_own_folder_is_hidden_but_for_this_session_s_outputs() {
    let Some(mut cage) = Cage::new().await else { return };
    let other = cage.plant(".gjc/agent/sessions/b/other.jsonl");
    let artifacts = cage.home.join(".gjc/agent/sessions/b/this");
    fs::create_dir_all(&artifacts).unwrap();
    fs::write(artifacts.join("x.bash.log"), "출력").unwrap();
    cage.rig.artifacts = Some(artifacts.clone());
    let done = cage.rig.bash(&format!("cat '{}/x.bash.log'; cat '{}'", artifacts.display(), other.display())).await;
    assert!(done.err().contains("출력") && !done.text.contains(KEY), "{}", done.text);
    cage.rig.bash(&format!("echo x > '{}/x.bash.log'", artifacts.display())).await;
    assert_eq!(fs::read_to_string(artifacts.join("x.bash.log")).unwrap(), "출력", "read, not written");
}

#[tokio::test]
async fn without_a_network_nothing_arrives() {
    let Some(cage) = Cage::new().await else { return };
    let mut cage = cage.denied_network();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    let (t, u) = (tcp.local_addr().unwrap().to_string(), udp.local_addr().unwrap().to_string());
    for (what, with) in [("tcp", &t), ("udp", &u)] {
        assert_eq!(cage.try_it(what, with).await, format!("errno {}", libc::EACCES), "{what}");
    }
    let (host, port) = t.split_once(':').unwrap();
    cage.rig.bash(&format!("exec 3<>/dev/tcp/{host}/{port}; echo x >&3")).await.err();
    cage.rig.bash(&format!("(exec 3<>/dev/udp/{}; echo x >&3) &\nwait", u.replace(':', "/"))).await;
    assert_ne!(cage.try_it("resolve", "example.invalid").await, "done");
    assert!(tcp.accept().is_err() && udp.recv(&mut [0; 8]).is_err(), "something arrived");
    for (what, with) in [("tcp", &t), ("udp", &u)] {
        assert_eq!(cage.try_outside(what, with).await, "done", "{what}");
    }
    // A sandbox with the network has it.
    cage.how.network = Network::Allowed;
    cage.refresh();
    assert_eq!((cage.try_it("tcp", &t).await, cage.try_it("udp", &u).await), ("done".into(), "done".into()));
    assert_eq!(cage.try_it("routes", "").await, "done");
}

#[tokio::test]
async fn doors_to_programs_outside_are_closed() {
    let Some(mut cage) = Cage::new().await else { return };
    let socket = cage.home.join(".docker/run/docker.sock");
    let own = cage.rig.cwd.join("own.sock").display().to_string();
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let agent = cage.rig.outside.join("agent.1");
    let (engine, keys) = (UnixListener::bind(&socket).unwrap(), UnixListener::bind(&agent).unwrap());
    for listener in [&engine, &keys] {
        listener.set_nonblocking(true).unwrap();
    }
    cage.vars.push(("SSH_AUTH_SOCK".into(), agent.display().to_string()));
    cage.refresh();
    for path in [&socket, &agent] {
        let path = path.display().to_string();
        assert!(cage.try_it("connect", &path).await.starts_with("errno "));
    }
    assert_eq!(cage.try_it("pair", "").await, "done", "pairs lead nowhere else");
    assert!(engine.accept().is_err() && keys.accept().is_err(), "somebody came through");
    let env = cage.rig.bash("env").await;
    assert!(!env.ok().contains("SSH_AUTH_SOCK"));
    let path = agent.display().to_string();
    assert_eq!(cage.try_outside("connect", &path).await, "done");
    drop((engine, keys));
    fs::remove_file(&socket).unwrap();
    fs::remove_file(&agent).unwrap();
    // With no such door left, a program and its own parts may talk. (The machine of the test may have others.)
    if cage.try_it("pair", "").await == "done" && cage.how.support.covers_local_sockets() {
        assert_eq!(cage.try_it("own socket", &own).await, "done");
    }
}

#[tokio::test]
async fn this_process_is_out_of_reach() {
    let Some(mut cage) = Cage::new().await else { return };
    let me = std::process::id().to_string();
    let secret = Box::new(*b"sk-secre");
    let memory = format!("{me} {}", secret.as_ptr().addr());
    assert_eq!(cage.try_it("ptrace", &me).await, format!("errno {}", libc::EPERM));
    assert_eq!(cage.try_it("read memory", &memory).await, format!("errno {}", libc::EPERM));
    assert_eq!(cage.try_it("limit", &me).await, format!("errno {}", libc::EPERM));
    assert_eq!((cage.try_it("limit", "0").await, cage.try_outside("limit", &me).await), ("done".into(), "done".into()));
    let scoped = cage.how.support.landlock.is_ok_and(|version| version >= 6);
    if scoped {
        assert_eq!(cage.try_it("kill", &me).await, format!("errno {}", libc::EPERM));
        assert_eq!(cage.try_outside("kill", &me).await, "done");
    }
    for file in ["environ", "mem", "maps", "fd/0", "root/etc/hostname", "cwd/Cargo.toml"] {
        let read = format!("cat /proc/{me}/{file} >/dev/null || ls /proc/{me}/{file}/");
        assert!(cage.rig.bash(&read).await.is_error, "{file}");
    }
    assert!(!cage.outside(&format!("cat /proc/{me}/environ >/dev/null")).await.contains("denied"));
    // A debugger of one's own programs works.
    let child = "sleep 5 & child=$!; cat /proc/$child/environ >/dev/null && kill $child && echo reached";
    assert!(cage.rig.bash(child).await.text.contains("reached"));
}

#[tokio::test]
async fn ways_through_the_kernel_are_closed() {
    let Some(cage) = Cage::new().await else { return };
    let here = cage.rig.cwd.display().to_string();
    let file = cage.rig.file("파일", "x").display().to_string();
    let device = cage.rig.cwd.join("sda").display().to_string();
    for (what, with, errno) in [
        ("io_uring", "", libc::EPERM),
        ("keyctl", "", libc::EPERM),
        ("mount", &*here, libc::EPERM),
        ("user namespace", "", libc::EPERM),
        ("clone into a namespace", "", libc::EPERM),
        ("clone3", "", libc::ENOSYS),
        ("type into a terminal", "", libc::EPERM),
        ("attribute", &*file, libc::EOPNOTSUPP),
        ("packets", "", libc::EAFNOSUPPORT),
        ("host socket", "", libc::EAFNOSUPPORT),
        ("kernel crypto", "", libc::EAFNOSUPPORT),
        ("kernel events", "", libc::EPERM),
    ] {
        assert_eq!(cage.try_it(what, with).await, format!("errno {errno}"), "{what}");
    }
    assert!(cage.try_it("device", &device).await.starts_with("errno ") && !Path::new(&device).exists());
    for refused in [
        "unshare -Ur true",
        "echo 1 > /proc/sys/kernel/core_pattern",
        "cat /dev/mem",
        "exec 3<>/dev/ptmx",
        "ls /dev/pts",
        "ls /dev/vda && cat /dev/vda",
    ] {
        assert!(cage.rig.bash(refused).await.is_error, "{refused}");
    }
    let status = cage.rig.bash("grep -E 'NoNewPrivs|Seccomp:' /proc/self/status").await;
    assert!(status.ok().contains("NoNewPrivs:\t1") && status.text.contains("Seccomp:\t2"), "{}", status.text);
}

#[tokio::test]
async fn what_is_required_and_cannot_be_had_is_refused() {
    for (landlock, seccomp) in
        [(Err(NoLandlock::NotBuilt), true), (Ok(2), true), (Ok(7), false), (Err(NoLandlock::Refused), false)]
    {
        let mut cage = Cage::anywhere();
        cage.how.support = Support { landlock, seccomp };
        cage.how.mode = SandboxMode::Require;
        cage.refresh();
        let done = cage.rig.bash("touch made").await;
        assert!(done.err().starts_with("bash does not run: the sandbox is required, and "), "{}", done.text);
        assert!(done.text.contains("hint: gjc doctor") && !cage.rig.cwd.join("made").exists());
        assert_eq!(cage.how.notices(&cage.rig.cwd).len(), 1);

        let shown = cage.rig.tools.defs(&Shown::default());
        let bash = shown.iter().find(|tool| tool.name == "bash").unwrap();
        assert_eq!(bash.description.contains("in a sandbox"), landlock.is_ok(), "the model is told what is so");

        // What there is, is told once, and commands run.
        cage.how.mode = SandboxMode::Auto;
        cage.refresh();
        assert!(!cage.how.notices(&cage.rig.cwd).is_empty());
        cage.rig.bash("touch made").await.ok();
        assert!(cage.rig.cwd.join("made").exists());
    }
    let cage = Cage::anywhere();
    assert!(Confinement { mode: SandboxMode::Off, ..cage.how.clone() }.notices(&cage.home).is_empty());
}

#[tokio::test]
async fn in_the_home_folder_commands_write_nowhere_but_to_temporary_files() {
    let Some(mut cage) = Cage::new().await else { return };
    cage.rig.cwd = cage.home.clone();
    let before = tree(&cage.home);
    assert!(cage.how.notices(&cage.home)[0].contains("is the home folder or holds it"));
    cage.rig.bash("echo x > file; echo x > ~/.bashrc; echo x > project/file").await.err();
    assert_eq!(tree(&cage.home), before);
    cage.rig.bash("echo x > $TMPDIR/file").await.ok();
    // What a person allows is allowed, and no more.
    cage.how.write = vec![cage.home.join("project")];
    cage.refresh();
    cage.rig.bash("echo x > project/file").await.ok();
    cage.rig.bash("echo x > other").await.err();
}

#[tokio::test]
async fn keys_inside_the_workspace_s_own_folder_stay_hidden() {
    let Some(mut cage) = Cage::new().await else { return };
    let key = cage.plant(".config/gh/hosts.yml");
    cage.plant(".config/app/설정");
    cage.rig.cwd = cage.home.join(".config");
    let done = cage.rig.bash("cat app/설정; echo new > app/설정; cat gh/hosts.yml; echo x > gh/hosts.yml").await;
    assert_eq!((done.text.matches(KEY).count(), fs::read_to_string(key).unwrap()), (1, KEY.into()), "{}", done.text);
    assert_eq!(fs::read_to_string(cage.home.join(".config/app/설정")).unwrap(), "new\n");
}

#[tokio::test]
async fn git_goes_on_in_a_repository_and_in_a_worktree() {
    let Some(mut cage) = Cage::new().await else { return };
    fs::write(cage.home.join(".gitconfig"), "[user]\n\tname = 사람\n\temail = a@b.c\n[init]\n\tdefaultBranch = main\n")
        .unwrap();
    let main = cage.root.join("ws");
    cage.rig
        .bash("set -e; git init -q; echo 글 > 글; git add .; git commit -qm 처음; git status --short; git gc -q; git worktree add -q ./in; git log --oneline")
        .await
        .ok();
    cage.rig.bash("git worktree add -q ../beside").await.err();
    cage.outside("git worktree add -q ../beside").await;
    cage.rig.cwd = cage.root.join("beside");
    cage.refresh();
    cage.rig
        .bash("set -e; echo 더 >> 글; git commit -qam 둘째; git checkout -qb other; git stash list; git fetch -q . ")
        .await
        .ok();
    let log = cage.outside("git log --format=%s --all").await;
    assert!(log.starts_with("둘째\n처음\n"), "{log}");
    cage.rig.bash(&format!("echo x > '{}/글'", main.display())).await.err();
    assert_eq!(fs::read_to_string(main.join("글")).unwrap(), "글\n", "the other tree is not this one");
}

#[tokio::test]
async fn set_user_id_programs_gain_nothing() {
    let Some(cage) = Cage::new().await else { return };
    let done = cage.rig.bash("command -v sudo >/dev/null || { echo none; exit 1; }; sudo -n true </dev/null").await;
    // Where there is no sudo nothing is gained either; where there is one it ends by itself and says why.
    assert!(done.is_error && done.details["exit"].is_number(), "{}", done.text);
}

#[tokio::test]
async fn cargo_builds_with_what_has_been_downloaded() {
    let Some(mut cage) = Cage::new().await else { return };
    for (name, below) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let there =
            std::env::var(name).or_else(|_| std::env::var("HOME").map(|home| format!("{home}/{below}"))).unwrap();
        cage.vars.push((name.into(), there));
    }
    cage.refresh();
    fs::create_dir(cage.rig.cwd.join("src")).unwrap();
    // A crate that this workspace itself is built with.
    cage.rig.file("Cargo.toml", "[package]\nname = \"work\"\nedition = \"2024\"\n[dependencies]\nmemchr = \"2\"\n");
    cage.rig.file("src/main.rs", "fn main() { println!(\"자리 {:?}\", memchr::memchr(b'x', b\"abx\")); }\n");
    let done = cage.rig.bash("cargo run --offline --quiet").await;
    assert_eq!(done.ok(), "자리 Some(2)\n");
    assert!(cage.rig.cwd.join("target/debug/work").exists());
}

#[tokio::test]
async fn the_tools_of_a_developer_go_on() {
    let Some(cage) = Cage::new().await else { return };
    cage.rig.file("Makefile", "글:\n\techo 만들었다 > $@\n");
    // Whichever the machine has.
    for (tool, work) in [
        ("make", "make -s && cat 글 && rm 글"),
        (
            "python3",
            "python3 -c 'import multiprocessing as m; l = m.Lock(); l.acquire(); print(m.Pool(2).map(abs, [-1]))'",
        ),
        ("python3", "python3 -c 'import tempfile as t; print(t.NamedTemporaryFile().name)'"),
        ("node", "node -e 'console.log(require(\"child_process\").execSync(\"echo 하나\").toString())'"),
        (
            "tar",
            "mkdir a && echo x > a/b && tar cf a.tar a && tar xf a.tar && cp -a a c && chmod 700 c && touch c && rm -r a c a.tar",
        ),
        ("strace", "strace -qq -e trace=none true"),
    ] {
        let done = cage.rig.bash(&format!("command -v {tool} >/dev/null || exit 0\n{work}")).await;
        assert!(!done.is_error, "{work}: {}", done.text);
    }
}

#[tokio::test]
async fn the_own_folder_is_never_written_whoever_works_in_it() {
    let Some(mut cage) = Cage::new().await else { return };
    let agent = cage.how.dirs.agent.clone();
    fs::create_dir_all(agent.join("skills/글")).unwrap();
    fs::write(agent.join("config.yml"), "tools: [read]\n").unwrap();
    fs::write(agent.join("skills/글/SKILL.md"), "읽어도 된다").unwrap();
    let before = tree(&agent);
    let ways = [
        "echo x > config.yml".to_string(),
        "echo x >> SKILL.md; mkdir new; touch here".into(),
        format!("echo x > '{}/config.yml'; mv '{0}/config.yml' '{0}/moved'", agent.display()),
        format!("rm -rf '{}'; mv '{}' gone", agent.display(), cage.home.join(".gjc").display()),
    ];
    for cwd in [agent.clone(), agent.join("skills/글"), cage.home.join("project"), cage.home.clone()] {
        // Also with the home folder, and the own folder itself, allowed by name.
        for allowed in [Vec::new(), vec![cage.home.clone()], vec![agent.clone()]] {
            (cage.rig.cwd, cage.how.write) = (cwd.clone(), allowed.clone());
            cage.refresh();
            for way in &ways {
                let done = cage.rig.bash(way).await;
                assert_eq!(tree(&agent), before, "{way} in {} with {allowed:?}: {}", cwd.display(), done.text);
            }
        }
    }
    // What a person works on there is read, and what is beside the own folder in an allowed one is written.
    (cage.rig.cwd, cage.how.write) = (agent.join("skills/글"), Vec::new());
    cage.refresh();
    assert_eq!(cage.rig.bash("cat SKILL.md").await.ok(), "읽어도 된다");
    let notices = cage.how.notices(&cage.rig.cwd);
    assert!(notices.iter().any(|notice| notice.contains("keeps for itself")), "{notices:?}");
    (cage.rig.cwd, cage.how.write) = (cage.home.join("project"), vec![cage.home.clone()]);
    cage.refresh();
    cage.rig.bash("echo x > 하나 && echo x > ../project/둘").await.ok();
    // Without the sandbox the ways do work.
    cage.rig.cwd.clone_from(&agent);
    cage.outside(&ways[0]).await;
    assert_ne!(tree(&agent), before);
}

#[tokio::test]
async fn the_own_folder_is_not_written_under_another_name() {
    let Some(cage) = Cage::new().await else { return };
    let agent = cage.how.dirs.agent.clone();
    fs::create_dir_all(agent.join("skills")).unwrap();
    if !mounted(&agent, &cage.rig.cwd.join("다른 이름")) {
        passes_in_a_namespace("sandbox::the_own_folder_is_not_written_under_another_name");
        return;
    }
    mounted(&agent.join("skills"), &cage.rig.cwd.join("part"));
    let before = tree(&agent);
    cage.rig.bash("echo x > '다른 이름/config.yml'; echo x > part/x; mkdir part/dir; touch '다른 이름/skills/y'").await;
    assert_eq!(tree(&agent), before);
    cage.rig.bash("mkdir -p deep && echo x > deep/y && cat deep/y").await;
}

#[tokio::test]
async fn a_socket_in_a_place_that_nobody_listed_closes_local_sockets() {
    let Some(cage) = Cage::new().await else { return };
    if cage.how.support.covers_local_sockets() {
        println!("this kernel decides about sockets by their paths");
    }
    let far = cage.home.join("어느/곳에나/아주/깊이/있는");
    fs::create_dir_all(&far).unwrap();
    let _listener = UnixListener::bind(far.join("s")).unwrap();
    let said = cage.try_it("connect", far.join("s").to_str().unwrap()).await;
    assert!(said.starts_with("errno "), "{said}");
}
