//! A session's part in a call.

use gjc_entry::{BoxFuture, Clock, Dirs, EntryId, Label, Level, OpId, SessionId, Timestamp, Vars};
use gjc_flow::{
    Call, Digest, LabelState, LabelWatch, Permit, Permits, Policy, Redeem, Redeemed, Runtime, Stale, decide,
};
use gjc_protocol::Refusal;
use gjc_tools::{
    Artifacts, Confinement, Host, Jobs, NoJobs, Nobody, Progress, SessionView, Surroundings, ToolCtx, Tools, builtin,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

struct Real;

impl Clock for Real {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn mono(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

struct View;

impl SessionView for View {
    fn label(&self) -> Label {
        Label::PUBLIC_TRUSTED
    }
}

/// Does something at the moment of commit, then redeems.
struct Hook {
    watch: LabelWatch,
    act: Box<dyn Fn() + Send + Sync>,
}

impl Redeem for Hook {
    fn redeem(&self, permit: Permit, bytes: Digest) -> Result<Redeemed, Stale> {
        (self.act)();
        self.watch.redeem(permit, bytes)
    }
}

/// A session in a temporary workspace `ws`, with `outside` beside it.
pub(crate) struct Rig {
    _dir: tempfile::TempDir,
    pub(crate) cwd: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) artifacts: Option<PathBuf>,
    pub(crate) cancel: CancellationToken,
    pub(crate) state: LabelState,
    pub(crate) tools: Tools,
    redeem: Arc<dyn Redeem>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) jobs: Arc<dyn Jobs>,
    to: mpsc::UnboundedSender<String>,
    pub(crate) progress: mpsc::UnboundedReceiver<String>,
}

/// What came of a call.
pub(crate) struct Done {
    pub(crate) text: String,
    pub(crate) details: Value,
    pub(crate) is_error: bool,
    pub(crate) label: Label,
    pub(crate) blocks: Vec<gjc_entry::Block>,
}

impl Done {
    /// The text of a call that worked.
    #[track_caller]
    pub(crate) fn ok(&self) -> &str {
        assert!(!self.is_error, "{}", self.text);
        &self.text
    }

    /// The text of a call that failed.
    #[track_caller]
    pub(crate) fn err(&self) -> &str {
        assert!(self.is_error, "{}", self.text);
        &self.text
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (cwd, outside) = (root.join("ws"), root.join("outside"));
        fs::create_dir(&cwd).unwrap();
        fs::create_dir(&outside).unwrap();
        let state = LabelState::new(Label::PUBLIC_TRUSTED, Level::Restricted).unwrap();
        let (to, progress) = mpsc::unbounded_channel();
        let vars = ["PATH", "HOME"].map(|name| (name.to_string(), std::env::var(name).unwrap_or_default()));
        let secret = ("TEST_API_KEY".to_string(), "sk-비밀".to_string());
        Self {
            artifacts: Some(root.join("artifacts")),
            _dir: dir,
            cwd,
            outside,
            cancel: CancellationToken::new(),
            redeem: Arc::new(state.watch()),
            host: Arc::new(Nobody),
            jobs: Arc::new(NoJobs),
            state,
            tools: builtin(&Vars::new(vars.into_iter().chain([secret])), Confinement::off(&dirs(&root))),
            to,
            progress,
        }
    }

    /// Does something whenever a permit is redeemed.
    pub(crate) fn at_commit(&mut self, act: impl Fn() + Send + Sync + 'static) {
        self.redeem = Arc::new(Hook { watch: self.state.watch(), act: Box::new(act) });
    }

    /// A file of the workspace.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.cwd.join(name);
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn op() -> OpId {
        OpId { session: SessionId::new("s").unwrap(), entry: EntryId::Short(0xab), call: 2 }
    }

    pub(crate) fn ctx(&self) -> ToolCtx {
        let around = Surroundings {
            cancel: self.cancel.clone(),
            session: Arc::new(View),
            redeem: Arc::clone(&self.redeem),
            host: Arc::clone(&self.host),
            clock: Arc::new(Real),
            home: self.outside.join("home"),
            cwd: self.cwd.clone(),
            own: self.outside.join("own"),
            artifacts: Artifacts::new(self.artifacts.clone()),
            progress: Progress::new(self.to.clone()),
            jobs: Arc::clone(&self.jobs),
        };
        ToolCtx::new(&Runtime::new(), Self::op(), around)
    }

    pub(crate) fn plan(&self, tool: &str, input: &Value) -> Result<Call, Refusal> {
        let input = RawValue::from_string(input.to_string()).unwrap();
        self.tools.get(tool).unwrap().plan(&self.ctx(), &input)
    }

    pub(crate) fn permits(&self, call: &Call) -> Permits {
        decide(&Policy::default(), &self.state, call).permits(&Self::op(), &self.state)
    }

    pub(crate) async fn run(&self, call: Call, permits: Permits) -> Done {
        let output = self.tools.get(&call.tool).unwrap().run(self.ctx(), call, permits).await;
        let label = output.content.label();
        let mut state = LabelState::new(Label::PUBLIC_TRUSTED, Level::Restricted).unwrap();
        let blocks = output.content.open(&mut state).unwrap();
        let text = blocks.iter().filter_map(gjc_entry::Block::as_text).collect();
        Done { text, details: output.details, is_error: output.is_error, label, blocks }
    }

    /// The whole way of a call.
    pub(crate) async fn call(&self, tool: &str, input: Value) -> Done {
        let call = self.plan(tool, &input).unwrap_or_else(|refusal| panic!("{refusal}"));
        let permits = self.permits(&call);
        self.run(call, permits).await
    }

    pub(crate) async fn read(&self, path: &str) -> Done {
        self.call("read", json!({ "path": path })).await
    }

    pub(crate) async fn write(&self, path: &str, content: &str) -> Done {
        self.call("write", json!({ "path": path, "content": content })).await
    }

    /// One replacement after another, in one call.
    pub(crate) async fn edit(&self, path: &str, edits: &[(&str, &str)]) -> Done {
        let edits: Vec<_> = edits.iter().map(|(old, new)| json!({ "old": old, "new": new })).collect();
        self.call("edit", json!({ "path": path, "edits": edits })).await
    }

    pub(crate) async fn bash(&self, command: &str) -> Done {
        self.call("bash", json!({ "command": command })).await
    }
}

/// The folders of a person below `root`.
pub(crate) fn dirs(root: &Path) -> Dirs {
    Dirs { agent: root.join("home/.gjc/agent"), home: root.join("home"), temp: root.join("temp") }
}

/// The names in a folder, sorted.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// SHA-256 as hexadecimal digits, by another way than the tools.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    gjc_flow::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
