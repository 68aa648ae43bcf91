//! `cargo xtask bench`: commands beside each other, by time and peak memory.
//!
//! A new comparison is a function that answers a [`Group`], added to [`groups`]. The runs of a group are interleaved, so
//! that a noisy minute of the machine hits all rows alike; ratios are against the group's first row.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

mod log;
mod sessions;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::ci::Cache;
use crate::shell;
use crate::workspace::{self, Workspace};

/// What `cargo xtask bench` is told.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs of each row, after one that warms up
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only groups whose title holds this text
    #[arg(long, value_name = "TEXT")]
    group: Option<String>,
}

/// Rows that are compared with each other.
#[derive(Debug)]
struct Group {
    title: String,
    /// The first is the measure of the others.
    rows: Vec<Row>,
    /// What the rows need while they run: a server, a folder.
    stub: Option<StubServer>,
}

/// One command.
#[derive(Debug, Clone)]
struct Row {
    name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    /// Whether it prints what it took itself (`{"ns": …, "vm_hwm_kib": …}`): then its start does not count.
    reports: bool,
}

impl Row {
    fn new<A: Into<OsString>>(name: &str, program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = A>) -> Self {
        Self {
            name: name.to_owned(),
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            reports: false,
        }
    }
}

/// What the rows may need.
struct Bench {
    /// The release binary.
    gjc: PathBuf,
    /// The stub model server.
    stub: PathBuf,
    /// What makes session files.
    bulk: PathBuf,
    cache: Cache,
    path: OsString,
}

/// All comparisons. Add yours here.
fn groups(bench: &Bench, workspace: &Workspace, wanted: Option<&str>) -> Result<Vec<Group>> {
    let mut groups = vec![start_up(bench), print_turn(bench)?];
    // Their titles begin with these words; other wishes need not wait for files of a gigabyte.
    let asked = |word: &str| wanted.is_none_or(|text| text.starts_with(word));
    if asked("log") {
        groups.extend(log::groups(bench, workspace, &["log", "context"])?);
    }
    if asked("fork") {
        groups.extend(log::groups(bench, workspace, &["fork"])?);
    }
    if asked("store") {
        groups.extend(log::groups(bench, workspace, &["finding"])?);
    }
    if asked("sessions") {
        groups.extend(sessions::groups(bench, workspace)?);
    }
    Ok(groups)
}

/// The cheapest thing each program can do.
fn start_up(bench: &Bench) -> Group {
    let mut rows =
        vec![Row::new("/bin/true", "/bin/true", [""; 0]), Row::new("gjc --version", &bench.gjc, ["--version"])];
    if let Some(codex) = on_path(&bench.path, "codex") {
        rows.push(Row::new("codex --version", codex, ["--version"]));
    }
    let pi = bench.cache.pi_program();
    if let Some(node) = on_path(&bench.path, "node").filter(|_| pi.exists()) {
        rows.push(Row::new("pi --version", node, [pi.into_os_string(), "--version".into()]));
    }
    Group { title: "start-up".into(), rows, stub: None }
}

/// One prompt, one answer, one durable session, against a stub server on loopback.
fn print_turn(bench: &Bench) -> Result<Group> {
    let stub = StubServer::start(&bench.stub)?;
    let home = stub.home.path();
    let with_home = |mut row: Row| {
        row.environment = vec![
            ("HOME".into(), home.into()),
            ("GJC_CODING_AGENT_DIR".into(), home.join("gjc").into()),
            ("PI_CODING_AGENT_DIR".into(), home.join("pi").into()),
            ("PI_OFFLINE".into(), "1".into()),
            ("ANTHROPIC_API_KEY".into(), "none".into()),
        ];
        row
    };
    let gjc = |name: &str, more: &[&str]| {
        let model = ["-p", "hi", "--model", "anthropic/stub", "--provider-url"];
        let arguments = model.iter().copied().chain([stub.url.as_str()]).chain(more.iter().copied());
        with_home(Row::new(name, &bench.gjc, arguments))
    };
    let mut rows = vec![gjc("gjc -p", &[]), gjc("gjc -p --no-session", &["--no-session"])];
    let pi = bench.cache.pi_program();
    if let Some(node) = on_path(&bench.path, "node").filter(|_| pi.exists()) {
        let models = serde_json::json!({"providers": {"stub": {
            "baseUrl": stub.url, "api": "anthropic-messages", "apiKey": "none", "models": [{"id": "stub"}]
        }}});
        std::fs::create_dir_all(home.join("pi"))?;
        std::fs::write(home.join("pi/models.json"), models.to_string())?;
        let arguments: Vec<OsString> = std::iter::once(pi.into_os_string())
            .chain(["-p", "hi", "--provider", "stub", "--model", "stub"].map(Into::into))
            .collect();
        rows.push(with_home(Row::new("pi -p", node, arguments)));
    }
    Ok(Group { title: "print turn".into(), rows, stub: Some(stub) })
}

/// `testkit-stub`, running until it is dropped.
#[derive(Debug)]
struct StubServer {
    child: Child,
    url: String,
    home: tempfile::TempDir,
}

impl StubServer {
    fn start(program: &Path) -> Result<Self> {
        let mut child =
            Command::new(program).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("the stub server")?;
        let mut url = String::new();
        let out = child.stdout.take().context("the stub server's output")?;
        let mut out = BufReader::new(out);
        out.read_line(&mut url)?;
        child.stdout = Some(out.into_inner());
        Ok(Self { child, url: url.trim().to_owned(), home: tempfile::tempdir()? })
    }

    /// Ends it; the median of its own time for one request.
    fn own_time(mut self) -> Result<Duration> {
        // SAFETY: a plain system call on the process that this value started and has not waited for.
        unsafe { libc::kill(i32::try_from(self.child.id())?, libc::SIGTERM) };
        let mut said = String::new();
        self.child.stdout.take().context("the stub server's output")?.read_to_string(&mut said)?;
        self.child.wait()?;
        let said: serde_json::Value = serde_json::from_str(said.trim())?;
        let mut micros: Vec<u64> =
            said["own_us"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_u64).collect();
        micros.sort_unstable();
        Ok(Duration::from_micros(micros.get(micros.len() / 2).copied().unwrap_or(0)))
    }
}

impl Drop for StubServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the binary, measures the groups, prints a table for each.
///
/// # Errors
/// When the build or a row's command fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = workspace::load()?;
    let manifest = workspace.root.join("Cargo.toml");
    let build = ["build", "--release", "-p", "gjc", "-p", "testkit", "--bins", "--manifest-path"];
    shell::run(Command::new("cargo").args(build).arg(manifest))?;
    let cache = Cache::open()?;
    let release = workspace.target.join("release");
    let bench = Bench {
        gjc: release.join("gjc"),
        stub: release.join("testkit-stub"),
        bulk: release.join("testkit-bulk"),
        path: cache.path_variable()?,
        cache,
    };
    let wanted = |group: &Group| options.group.as_ref().is_none_or(|text| group.title.contains(text.as_str()));
    let groups: Vec<Group> = groups(&bench, &workspace, options.group.as_deref())?.into_iter().filter(wanted).collect();
    ensure!(!groups.is_empty(), "no group has that text in its title");
    for group in groups {
        let measured = measure(&group.rows, options.runs)?;
        print!("\n{} ({} runs each, interleaved)\n{}", group.title, options.runs, table(&measured));
        if let Some(stub) = group.stub {
            println!("of which the stub's own time, p50: {:.2} ms", stub.own_time()?.as_secs_f64() * 1e3);
        }
    }
    Ok(())
}

/// One run of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    wall: Duration,
    /// Peak resident set in KiB. Linux carries the launcher's own over `exec`, so nothing is below the row `/bin/true`.
    peak_kib: u64,
}

#[derive(Debug)]
struct Measured {
    name: String,
    samples: Vec<Sample>,
}

impl Measured {
    /// The nearest-rank percentile of the wall time.
    fn wall(&self, percent: usize) -> Duration {
        let mut walls: Vec<Duration> = self.samples.iter().map(|s| s.wall).collect();
        walls.sort();
        walls[(walls.len() * percent).div_ceil(100).saturating_sub(1)]
    }

    /// The greatest peak of all runs, KiB.
    fn peak_kib(&self) -> u64 {
        self.samples.iter().map(|s| s.peak_kib).max().unwrap_or(0)
    }
}

fn measure(rows: &[Row], runs: u32) -> Result<Vec<Measured>> {
    let mut measured: Vec<Measured> =
        rows.iter().map(|row| Measured { name: row.name.clone(), samples: Vec::new() }).collect();
    for round in 0..=runs {
        for (row, measured) in rows.iter().zip(&mut measured) {
            let sample = once(row).with_context(|| format!("`{}` could not be measured", row.name))?;
            // The first round fills the page cache.
            if round > 0 {
                measured.samples.push(sample);
            }
        }
    }
    Ok(measured)
}

fn once(row: &Row) -> Result<Sample> {
    let mut command = Command::new(&row.program);
    command.args(&row.arguments).envs(row.environment.iter().map(|(k, v)| (k, v)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if row.reports {
        return reported(&shell::capture(&mut command)?);
    }
    let start = Instant::now();
    let child = command.spawn().with_context(|| format!("{} could not be started", row.program.display()))?;
    let (status, peak_kib) = wait(child)?;
    let wall = start.elapsed();
    if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
        bail!("it ended with status {status:#x} instead of success");
    }
    Ok(Sample { wall, peak_kib })
}

/// What a command says of itself.
fn reported(said: &str) -> Result<Sample> {
    #[derive(serde::Deserialize)]
    struct Line {
        ns: u64,
        vm_hwm_kib: u64,
    }
    let line: Line = serde_json::from_str(said).with_context(|| format!("it said {said:?}"))?;
    Ok(Sample { wall: Duration::from_nanos(line.ns), peak_kib: line.vm_hwm_kib })
}

/// Waits for the child and answers its raw status and peak resident set in KiB.
fn wait(child: Child) -> io::Result<(i32, u64)> {
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to live values of the right types, and `pid` is our own child that nobody else
        // reaps: `child` is owned here and is dropped without a wait.
        let reaped = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
        if reaped == pid {
            // SAFETY: zeroed, so every bit pattern is set, and filled by the call that succeeded.
            let usage = unsafe { usage.assume_init() };
            return Ok((status, u64::try_from(usage.ru_maxrss).unwrap_or(0)));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn table(rows: &[Measured]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let mut out = format!(
        "{:<width$} {:>10} {:>7} {:>10} {:>9} {:>7}\n",
        "command", "p50 ms", "ratio", "p99 ms", "peak MiB", "ratio"
    );
    for row in rows {
        let ms = |wall: Duration| wall.as_secs_f64() * 1e3;
        let (p50, p99, peak) = (ms(row.wall(50)), ms(row.wall(99)), mib(row.peak_kib()));
        // An append takes microseconds.
        let d = if p50 < 1.0 { 4 } else { 2 };
        let (by_time, by_peak) = (p50 / ms(first.wall(50)), peak / mib(first.peak_kib()));
        let _ =
            writeln!(out, "{:<width$} {p50:>10.d$} {by_time:>6.2}x {p99:>10.d$} {peak:>9.1} {by_peak:>6.1}x", row.name);
    }
    out
}

#[expect(clippy::cast_precision_loss, reason = "a peak is far below 2^52 KiB")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

fn on_path(path: &OsString, program: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder: PathBuf| Path::new(&folder).join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell_row(script: &str) -> Row {
        Row::new(script, "/bin/sh", ["-c", script])
    }

    #[test]
    fn memory_that_a_command_touches_is_seen() {
        let small = once(&shell_row("true")).unwrap();
        // dd fills one buffer of 64 MiB.
        let large = once(&shell_row("dd if=/dev/zero of=/dev/null bs=64M count=1")).unwrap();
        assert!(large.peak_kib > small.peak_kib + 50_000, "{small:?} {large:?}");
    }

    #[test]
    fn a_failing_command_is_no_measurement() {
        let error = measure(&[shell_row("exit 3")], 1).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "`exit 3` could not be measured: it ended with status 0x300 instead of success"
        );
    }

    #[test]
    fn a_command_may_report_its_own_time() {
        let mut row = shell_row(r#"echo '{"ns": 4500, "vm_hwm_kib": 2048, "found": {}}'"#);
        row.reports = true;
        assert_eq!(once(&row).unwrap(), Sample { wall: Duration::from_nanos(4500), peak_kib: 2048 });
        let mut silent = shell_row("true");
        silent.reports = true;
        assert!(format!("{:#}", once(&silent).unwrap_err()).starts_with("it said"));
    }

    #[test]
    fn each_row_has_its_runs_without_the_warm_up() {
        let measured = measure(&[shell_row("true"), shell_row(":")], 3).unwrap();
        assert_eq!(measured.iter().map(|m| m.samples.len()).collect::<Vec<_>>(), [3, 3]);
    }

    #[test]
    fn percentiles_are_nearest_rank_and_ratios_are_against_the_first_row() {
        let samples = |ms: &[u64], peak_kib| {
            ms.iter().map(|&ms| Sample { wall: Duration::from_millis(ms), peak_kib }).collect::<Vec<_>>()
        };
        let rows = [
            Measured { name: "밑바닥".into(), samples: samples(&[1, 2, 3, 4], 1024) },
            Measured { name: "other".into(), samples: samples(&[9, 4, 100, 2], 3072) },
        ];
        assert_eq!((rows[1].wall(50), rows[1].wall(99)), (Duration::from_millis(4), Duration::from_millis(100)));
        let table = table(&rows);
        let other = table.lines().last().unwrap().split_whitespace().collect::<Vec<_>>();
        assert_eq!(other, ["other", "4.00", "2.00x", "100.00", "3.0", "3.0x"]);
    }
}
