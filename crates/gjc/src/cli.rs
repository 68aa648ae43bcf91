//! What may be typed. The only source of help.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const MORE: &str = "\
Examples:
  gjc demo                                       the tour, without a network
  gjc -p \"What does this project do?\"            ask once
  git diff | gjc -p \"Review this change\"         with text on standard input
  gjc -p --resume 0197 \"And the tests?\"          go on with a session
  gjc -p --model openai/qwen3 --provider-url http://127.0.0.1:11434 \"Hello\"
                                                 a model of Ollama; llama.cpp, vLLM, … likewise
  gjc -p -c \"And the docs?\"                      go on with this folder's last session
  gjc -p --worktree=my-task \"Fix the tests\"      in a checkout of its own
  gjc sessions list                              what there is
  gjc sessions export 0197 page.html             a session as a page, to look at or to show
  gjc prompts                                    what you said here, what nobody answered first
  gjc doctor                                     what holds on this system
  gjc config list                                every setting: its value, and where that came from

Tools: read, write, edit, bash, grep, find, ls, ask, job. With -p they run without asking;
--approval read-only allows looking alone, auto-edit changing files of the workspace too.
Commands of bash run in a sandbox where the kernel has one: they write to the repository of the
working folder and to temporary files, and do not read keys of the home folder.

Environment:
  ANTHROPIC_API_KEY       the key for anthropic
  OPENAI_API_KEY          the key for openai and openai-responses; servers on this machine need none
                          (without them: gjc config key, or a command in the settings)
  OPENAI_BASE_URL         where these two are reached without --provider-url
  GJC_CODING_AGENT_DIR    where sessions and blobs live, instead of ~/.gjc/agent
  GJC_TMUX_COMMAND        the tmux of --tmux

Exit codes: 0 done, 1 failed, 2 misuse, 130 interrupted.";

/// A coding agent whose work survives anything.
#[derive(Debug, Parser)]
#[command(
    name = "gjc",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_long_help = MORE
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) export: ExportArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// A session as a page, without starting one.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Write a session file as one page of HTML, by default gjc-session-NAME.html here. No session is started.
    #[arg(long, num_args = 1..=2, value_names = ["FILE", "OUT"], conflicts_with_all = ["prompt", "print"])]
    pub(crate) export: Option<Vec<PathBuf>>,
    /// With --export: replace OUT whatever it is, unless it is a session.
    #[arg(long, requires = "export")]
    pub(crate) force: bool,
    /// What it is not: a copy. Taken, so that the way can be told.
    #[arg(long, requires = "export", hide = true)]
    pub(crate) copy: bool,
}

/// How a session is run.
#[derive(Debug, Clone, Args)]
pub(crate) struct SessionArgs {
    /// What to say, behind files for the model to see (`@FILE`: text or a picture). Text on standard input is added (it is read to
    /// its end).
    #[arg(value_name = "@FILE|PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// Print one answer and exit.
    #[arg(short, long)]
    pub(crate) print: bool,
    /// How to speak: the answer as text, one event a line, or commands and events on standard input and output.
    #[arg(long, value_enum, default_value_t = Mode::Text)]
    pub(crate) mode: Mode,
    /// Say nothing but the answer and what went wrong: no notices, no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Go on with the session that this terminal had in this folder, else with the folder's newest; a new one where there is
    /// none.
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["resume", "fork"])]
    pub(crate) go_on: bool,
    /// Go on with a session: the beginning of its id, or its file. Without one, this folder's sessions are shown.
    #[arg(short, long, value_name = "ID|PATH", num_args = 0..=1)]
    pub(crate) resume: Option<Option<String>>,
    /// A new session of this folder that begins with all entries of another: the beginning of its id, or its file.
    #[arg(long, value_name = "ID|PATH", conflicts_with = "resume")]
    pub(crate) fork: Option<String>,
    /// The folder that holds the sessions, all in one, instead of one folder for each project below ~/.gjc/agent/sessions.
    #[arg(long, value_name = "DIR", conflicts_with = "no_session")]
    pub(crate) session_dir: Option<PathBuf>,
    /// Work in a git worktree of its own, beside the main checkout, on the branch NAME. Without NAME on no branch. It is made
    /// where there is none, and never removed.
    #[arg(short, long, value_name = "NAME", num_args = 0..=1)]
    pub(crate) worktree: Option<Option<String>>,
    /// Run in a session of tmux, which goes on when this terminal closes.
    #[arg(long)]
    pub(crate) tmux: bool,
    /// Keep the session in memory; nothing is stored, nor are the prompts kept.
    #[arg(long, conflicts_with_all = ["resume", "go_on"])]
    pub(crate) no_session: bool,
    /// Who answers: `anthropic/MODEL`, `openai/MODEL` (Chat Completions, which most servers speak), `openai-responses/MODEL`, or
    /// `scripted/FILE.jsonl`, which plays a script. By default the session's own model, in a new session that of the
    /// settings (models.default).
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// How long it may think before it answers; models that do not think ignore it. By default as the session did, in a new
    /// session not at all.
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) thinking: Option<ThinkingLevel>,
    /// Where the provider is reached, as in `http://127.0.0.1:11434` or `https://openrouter.ai/api/v1`. It is not part of the
    /// session: name it again with `--resume`.
    #[arg(long, value_name = "URL")]
    pub(crate) provider_url: Option<String>,
    /// The folder to work in.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Trust the project's settings (.gjc/config.yml) with their hooks, its instructions (AGENTS.md) and its skills
    /// (.gjc/skills) as they are now; any change of a file takes that away.
    #[arg(long)]
    pub(crate) trust_project: bool,
    /// A file whose text replaces the system prompt.
    #[arg(long, value_name = "FILE")]
    pub(crate) system_prompt: Option<PathBuf>,
    /// A file whose text follows the system prompt.
    #[arg(long, value_name = "FILE")]
    pub(crate) append_system_prompt: Option<PathBuf>,
    /// Write the model's answers to this file, as a script for `--model scripted/FILE.jsonl`: for a bug report. Keys and tokens
    /// are left out of it, everything else is in it. A script that is there goes on; another file is not touched.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Only these tools, separated by commas; an empty value gives none. By default those that the session had, in a new
    /// session those of the settings (tools).
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) tools: Option<Vec<String>>,
    /// What you are asked before it runs. By default `ask` in a terminal and `full` where nobody can be asked; a session that
    /// goes on gets looser by this option alone.
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) approval: Option<Approval>,
    #[command(flatten)]
    pub(crate) commands: SandboxArgs,
}

/// What a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approval {
    /// Whatever changes files or acts outside.
    Ask,
    /// Whatever acts outside of the workspace.
    AutoEdit,
    /// Nothing.
    Full,
    /// Nothing, and nothing is changed.
    ReadOnly,
}

impl From<Approval> for gjc_entry::ApprovalMode {
    fn from(mode: Approval) -> Self {
        match mode {
            Approval::Ask => Self::Ask,
            Approval::AutoEdit => Self::AutoEdit,
            Approval::Full => Self::Full,
            Approval::ReadOnly => Self::ReadOnly,
        }
    }
}

/// What commands may reach.
#[derive(Debug, Clone, Args)]
pub(crate) struct SandboxArgs {
    /// How commands are held: by what the kernel has, not at all, or by all of it or they do not run. gjc doctor tells what
    /// this system can hold. By default as the settings say (sandbox.mode), in a session that goes on no looser than before.
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) sandbox: Option<Sandbox>,
    /// A folder that commands may write to, beside the repository of the working folder; may be repeated. By default those of
    /// the settings (sandbox.write).
    #[arg(long, value_name = "DIR")]
    pub(crate) sandbox_write: Vec<PathBuf>,
    /// Whether commands in the sandbox reach the network, this machine's own ports included. By default as the settings say
    /// (sandbox.network), in a session that goes on no more than before.
    #[arg(long, value_enum, value_name = "ACCESS")]
    pub(crate) sandbox_network: Option<Access>,
}

/// How commands are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sandbox {
    /// By what the kernel has.
    Auto,
    /// Not at all.
    Off,
    /// By all of it, or they do not run.
    Require,
}

/// Whether something is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Access {
    /// As outside of the sandbox.
    Allowed,
    /// Not.
    Denied,
}

/// How long a model may think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThinkingLevel {
    /// No thinking.
    Off,
    /// The least that the model can do.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// As much as it can.
    Xhigh,
}

impl From<ThinkingLevel> for gjc_entry::Thinking {
    fn from(level: ThinkingLevel) -> Self {
        match level {
            ThinkingLevel::Off => Self::Off,
            ThinkingLevel::Minimal => Self::Minimal,
            ThinkingLevel::Low => Self::Low,
            ThinkingLevel::Medium => Self::Medium,
            ThinkingLevel::High => Self::High,
            ThinkingLevel::Xhigh => Self::Xhigh,
        }
    }
}

/// How a session speaks on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// The answer.
    Text,
    /// One event a line.
    Json,
    /// Commands in, replies and events out, one a line.
    Rpc,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Look at sessions.
    Sessions {
        #[command(subcommand)]
        command: Sessions,
    },
    /// What the model sees, and saw.
    Context {
        #[command(subcommand)]
        command: Context,
    },
    /// What you have said in this folder; what nobody answered first.
    Prompts(Prompts),
    /// What holds on this system, and what does not; exit code 1 on a problem.
    Doctor {
        /// The folder to work in.
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Settings: what counts and why; set one.
    Config {
        #[command(subcommand)]
        command: Config,
    },
    /// An offline tour on a scripted model: a real session, real tool calls, and what happened where.
    Demo {
        /// Where the tour puts its files; a new folder by default.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Print only the path of the session file.
        #[arg(long = "quiet")]
        keep_quiet: bool,
    },
    /// A script that lets a shell complete what you type.
    ///
    /// For bash: gjc completions bash > ~/.local/share/bash-completion/completions/gjc
    Completions {
        /// Which.
        shell: clap_complete::Shell,
    },
    /// A manual page.
    ///
    /// To read it: gjc man sessions | man -l -
    Man {
        /// The page of this command; of gjc itself by default.
        command: Vec<String>,
    },
    /// The names of all failpoints.
    #[cfg(feature = "failpoints")]
    #[command(name = "__failpoints", hide = true)]
    Failpoints,
}

/// What to list, or what to do with one.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Prompts {
    /// Only those that hold this text, in any case.
    pub(crate) query: Vec<String>,
    /// At most so many.
    #[arg(short, long, value_name = "N", default_value_t = 20)]
    pub(crate) number: usize,
    /// Those of all folders.
    #[arg(short, long)]
    pub(crate) all: bool,
    /// One JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<PromptsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PromptsCommand {
    /// One prompt as it was typed: gjc -p "$(gjc prompts show 7)" sends it again.
    Show {
        /// Its number in the list.
        id: i64,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Offer prompts without an answer no more; they stay in the history.
    Forget {
        /// Their numbers in the list.
        #[arg(value_name = "ID", required_unless_present = "all")]
        ids: Vec<i64>,
        /// All of this folder.
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// All sessions, newest first.
    List {
        /// The logs of subagents too.
        #[arg(long)]
        subagents: bool,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Sessions that hold all of these words, newest first, and where; exit code 1 if none does.
    ///
    /// Searched are titles, folders, what people and models said, names and paths of tool calls, and the beginnings of results.
    Search {
        /// The words, in any order and case; 한글 with or without particles.
        #[arg(required = true)]
        words: Vec<String>,
        /// Only sessions of this folder.
        #[arg(long)]
        here: bool,
        /// At most so many.
        #[arg(short, long, value_name = "N", default_value_t = 20)]
        number: usize,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// The messages of a session's active path, as the model sees them: behind a summary, what it kept. All of it: --full.
    Show {
        /// The beginning of its id, or its file.
        session: String,
        /// All of it as one text: settings, system prompt, tools, every entry of the path.
        #[arg(long, conflicts_with = "json")]
        full: bool,
        /// With --full: to the clipboard, by wl-copy, xclip, xsel or pbcopy, else by the terminal (OSC 52).
        #[arg(long, requires = "full")]
        copy: bool,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Write a session as one page of HTML, with all its branches; it loads nothing, and nothing of the session runs in it.
    Export {
        /// The beginning of its id, or its file.
        session: String,
        /// The page; by default gjc-session-NAME.html in this folder.
        out: Option<PathBuf>,
        /// Replace the file whatever it is, unless it is a session. An earlier page is replaced without it.
        #[arg(long)]
        force: bool,
        /// What it is not: a copy. Taken, so that the way can be told.
        #[arg(long, hide = true)]
        copy: bool,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Share a session's page as a secret gist, or with share.command: without keys, and only after a yes to what is shown.
    Share {
        /// The beginning of its id, or its file.
        session: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Read every line of a session and say what is damaged; exit code 1 if anything is.
    Verify {
        /// The beginning of its id, or its file.
        #[arg(required_unless_present = "all")]
        session: Option<String>,
        /// All sessions.
        #[arg(long, conflicts_with = "session")]
        all: bool,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Move sessions to the trash, with all that belongs to them.
    Delete {
        /// The beginning of an id, or a file.
        #[arg(required = true)]
        sessions: Vec<String>,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Put a session of the trash back where it was.
    Restore {
        /// The beginning of its id, or the name of its folder in the trash.
        session: String,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// What is in the trash, the newest first; empty it.
    #[command(args_conflicts_with_subcommands = true)]
    Trash {
        /// One JSON object.
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<TrashCommand>,
    },
    /// What the sessions take, by working folder, and what is kept beside them.
    Du {
        /// Each session too.
        #[arg(long)]
        sessions: bool,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrashCommand {
    /// Remove sessions from the trash for good.
    Empty {
        /// The beginning of an id, or the name of a folder in the trash; all of them by default.
        sessions: Vec<String>,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Context {
    /// The messages that are context at an entry.
    Show {
        /// The beginning of the session's id, or its file.
        session: String,
        /// The entry; the leaf by default
        #[arg(long, value_name = "ENTRY")]
        at: Option<String>,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// The exact bytes of the request that an answer answers, or that would be sent at an entry.
    Request {
        /// The beginning of the session's id, or its file.
        session: String,
        /// An answer: the request that it answers. Any other entry: the request that would follow it. By default the leaf.
        #[arg(long, value_name = "ENTRY")]
        at: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Every setting: its value, and where that came from.
    List {
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// One value.
    Get {
        /// Its name, as in `retry.attempts`.
        key: String,
        /// One JSON object: value, default, and where it came from.
        #[arg(long)]
        json: bool,
    },
    /// Set a value in your file; nothing else of it changes.
    Set {
        /// Its name, as in `bash.timeout`.
        key: String,
        /// Its value, as in `5m`; a list with commas.
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Take a value out of your file; nothing else of it changes.
    Unset {
        /// Its name, as in `bash.timeout`.
        key: String,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Keys of providers: where they come from, and the keyring of the kernel.
    Key {
        #[command(subcommand)]
        command: ConfigKey,
    },
    /// Where your file is.
    Path {
        /// One JSON object: also the project's file, and whether it is trusted.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigKey {
    /// Put a key into the kernel's keyring, where it stays until the machine's next start.
    ///
    /// The key is read from standard input, or typed without being shown. It is in no file.
    Set {
        /// Whose.
        provider: KeyOf,
    },
    /// Take a key out of the keyring.
    Forget {
        /// Whose.
        provider: KeyOf,
    },
    /// Where the key of a session would come from: variable, keyring, or command; exit code 1 where there is none.
    Where {
        /// Whose.
        provider: KeyOf,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// A provider that wants a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyOf {
    /// For `anthropic/MODEL`.
    Anthropic,
    /// For `openai/MODEL` and `openai-responses/MODEL`.
    Openai,
}

impl KeyOf {
    /// As in the settings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
        }
    }
}
