//! Puts a session together from arguments and environment.

use crate::before::Before;
use crate::cli::{Mode, SessionArgs};
use crate::confinement::{Decided, decide};
use crate::failure::Failure;
use crate::history::Keeper;
use crate::instructions::Instructions;
use crate::opening::{branch, create, fork, resume};
use crate::prompt::PromptFiles;
use crate::providers::{Available, choose};
use crate::record::Recorder;
use crate::skills::Skills;
use crate::which::{From as Begins, Which};
use crate::world::real_dir;
use crate::{breadcrumbs, hooks, out, settings, share};
use gjc_agent::{Choice, Config, Ready, Session, SessionHandle, Undo};
use gjc_entry::{ApprovalMode, EntryId, Env, Level, Tier};
use gjc_flow::{Policy, Runtime};
use gjc_llm::{Backoff, Prices, Rates};
use gjc_log::Durability;
use gjc_log::fs::OsFs;
use gjc_process::OutputCap;
use gjc_protocol::Refusal;
use gjc_settings::{Approval, Effective, Origin, Settings};
use gjc_tools::{Bash, Confinement, Fetch, Limits, Reach, Tools};
use gjc_workspace::Worktree;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tokio::task::JoinHandle;

/// Puts the sessions of a process together: the one that the arguments ask for, then those that it is left for.
#[derive(Clone)]
pub(crate) struct Composer {
    pub(crate) env: Env,
    pub(crate) args: Arc<SessionArgs>,
    /// Opened with the first session whose model there is: a model that is none leaves no file behind.
    recorder: Arc<OnceLock<Recorder>>,
    /// Held for as long as the process works there.
    _worktree: Option<Arc<Worktree>>,
}

/// Which session it is.
pub(crate) enum Start {
    /// The one that the arguments name, or a new one.
    Arguments(Which),
    /// A new one in a folder, which is a real path.
    New { cwd: PathBuf },
    /// The one of a file.
    File { path: PathBuf },
    /// A new one in a folder with everything of another up to an entry.
    Branch { source: PathBuf, upto: Option<EntryId>, cwd: PathBuf },
}

/// Starts the session that the arguments ask for, and says what a person should know of it. Its prompts go to the keeper
/// before they go to the session.
pub(crate) async fn begin(env: &Env, args: &SessionArgs) -> Result<(SessionHandle, JoinHandle<()>, Keeper), Failure> {
    let mut args = args.clone();
    if let Some(dir) = &mut args.session_dir {
        let absolute = std::path::absolute(&*dir)
            .map_err(|error| Failure::usage(format!("--session-dir cannot be used: {error}")))?;
        // As one path from wherever it was named; a folder that is not there yet has no other.
        *dir = std::fs::canonicalize(&absolute).unwrap_or(absolute);
    }
    let mut which = Which::of(env, &args).await?;
    // Now: a start that fails after this has made a worktree all the same.
    for notice in std::mem::take(&mut which.notices) {
        out::notice(&format!("gjc: {notice}"));
    }
    let worktree = which.worktree.take().map(Arc::new);
    let composer = Composer { env: env.clone(), args: Arc::new(args), recorder: Arc::default(), _worktree: worktree };
    let Ready { session, config, resumed, notices, .. } = composer.compose(Start::Arguments(which)).await?;
    for notice in notices {
        out::notice(&format!("gjc: {notice}"));
    }
    breadcrumbs::remember(env, &composer.args, &config.cwd, session.log().file_path());
    let keeper = match session.log().file_path() {
        Some(file) => Keeper::new(env, &session.id().to_string(), file, &config.cwd, resumed),
        None => Keeper::none(),
    };
    let (handle, actor) = gjc_agent::start_among(session, config, resumed, Arc::new(composer));
    Ok((handle, actor, keeper))
}

impl Composer {
    /// Where answers are recorded, if they are.
    fn recorder(&self) -> Result<Option<Recorder>, Failure> {
        let Some(path) = self.args.record.as_deref() else { return Ok(None) };
        if let Some(open) = self.recorder.get() {
            return Ok(Some(open.clone()));
        }
        let opened = Recorder::open(&self.env, path)?;
        Ok(Some(self.recorder.get_or_init(|| opened).clone()))
    }

    /// Decides everything that a session runs with, and opens it.
    ///
    /// What the options say of a session is said of the one that the process begins with, and of new ones. One that the process
    /// goes over to keeps its own model, and what guards a person is then the stricter of the two: it was somebody's decision
    /// for that session, and the options do not speak of it. No option trusts another project.
    pub(crate) async fn compose(&self, start: Start) -> Result<Ready<OsFs>, Failure> {
        let (env, args) = (&self.env, &*self.args);
        let over = matches!(start, Start::File { .. } | Start::Branch { .. });
        let trust_project = args.trust_project && matches!(start, Start::Arguments(_));
        // Whatever can be refused is refused before a session is opened: opening one for writing may mend its end.
        let (here, begins, cwd_given) = match start {
            Start::Arguments(which) => (which.here, which.from, which.stays_here),
            Start::New { cwd } => (real_dir(&cwd)?, Begins::Nothing, true),
            Start::File { path } => (real_dir(Path::new("."))?, Begins::File(path), false),
            Start::Branch { source, upto, cwd } => (real_dir(&cwd)?, Begins::BranchOf(source, upto), true),
        };
        let path = begins.file();
        let files = PromptFiles::read(args)?;
        let before = match path {
            Some(path) => Before::read(env, path)?,
            None => Before::default(),
        };
        // The settings are those of the project in which the session goes on.
        let project = before.cwd.as_deref().filter(|_| !cwd_given).map(real_dir);
        let project = match project {
            // At the start a person sees where they are; here another project's session would work on the files of this one.
            Some(Err(gone)) if over => return Err(folder_gone(path, &gone)),
            found => found.and_then(Result::ok),
        };
        let (effective, has_project_settings, mut notices) =
            settings::of_session(env, args, project.as_deref().unwrap_or(&here), trust_project)?;
        let effective = Arc::new(effective);
        let settings = &effective.settings;
        let named = match before.model {
            Some(had) if over || args.model.is_none() => had,
            _ => settings.models.default.0.clone(),
        };
        // A model that is none leaves no empty script behind.
        let chosen = choose(env, &named, &effective).await?;
        let recorder = self.recorder()?;
        let Choice { provider, model, params } = chosen.recorded(recorder.as_ref());
        let plan = match before.plan.as_deref().or(settings.models.plan.as_ref().map(|name| name.0.as_str())) {
            Some(name) => planner(env, name, &effective, recorder.as_ref(), &mut notices).await,
            None => None,
        };
        let tier = before.tier.unwrap_or_else(|| settings.models.tier.word().into());
        let tier = Tier::of_family(&tier, &model.provider).unwrap_or_default();
        let Decided { confinement, held, notices: about_commands } =
            decide(env, &args.commands, settings, before.held, over)?;
        // A session that was given few tools does not come to more by being resumed.
        let kept = match (before.tools, &args.tools) {
            (Some(had), Some(named)) if over => Some(had.into_iter().filter(|name| named.contains(name)).collect()),
            (had, named) => had.filter(|_| named.is_none()),
        };
        let tools = tools(env, &effective, confinement.clone(), kept)?;
        let named = args.thinking.map(Into::into);
        let thinking = if over { before.thinking.or(named) } else { named.or(before.thinking) }.unwrap_or_default();
        let approval = approval(args, settings, before.approval, over, &mut notices);
        let durability = match settings.session.durability {
            gjc_settings::Durability::Entry => Durability::Entry,
            gjc_settings::Durability::Turn => Durability::Turn,
            gjc_settings::Durability::None => Durability::None,
        };
        let all = args.session_dir.as_deref();
        let (writer, cwd, resumed) = match &begins {
            Begins::Nothing => (create(env, all, &here, !args.no_session, durability), here, false),
            Begins::File(path) => resume(env, all, path, durability, &here, cwd_given, &mut notices).await?,
            Begins::ForkOf(source) => fork(env, all, source, &here, durability, &mut notices).await?,
            Begins::BranchOf(source, upto) => {
                (branch(env, all, source, upto.as_ref(), &here, durability)?, here, upto.is_some())
            }
        };
        let instructions = Instructions::read(&env.dirs.agent, &cwd, trust_project);
        notices.extend(instructions.notices.iter().cloned());
        let skills = Skills::read(&env.dirs.agent, &cwd, trust_project);
        notices.extend(skills.notices.iter().cloned());
        let (hooks, more) = hooks::of_session(env, settings, &cwd, trust_project);
        notices.extend(more);
        if trust_project && !has_project_settings && !instructions.of_project && !skills.of_project {
            notices.push("the project has no settings, instructions or skills to trust".into());
        }
        if tools.get("bash").is_some() {
            notices.extend(about_commands);
            notices.extend(confinement.notices(&cwd));
        }
        let session = Session::new(writer, Runtime::new(), Arc::clone(&env.clock), Level::Restricted)
            .map_err(|above| Failure::new(above.to_string()))?;
        let config = Config {
            env: env.clone(),
            system: files.system(&cwd) + &instructions.section() + &skills.section(&tools.names()),
            system_label: instructions.label(),
            with_day: args.system_prompt.is_none(),
            effects: Vec::new(),
            shell: Bash::new(&env.vars, Confinement::off(&env.dirs)).within(bash_limits(settings)),
            max_jobs: settings.jobs.most.0 as usize,
            hooks,
            cwd,
            provider,
            model,
            thinking,
            tier,
            prices: prices(settings),
            plan,
            models: Arc::new(Available { env: env.clone(), effective: Arc::clone(&effective), recorder }),
            params,
            sharing: share::sharing(settings),
            wait_for_quota: settings.retry.wait_for_quota.0.map(gjc_settings::Patience::duration),
            retry: Backoff { attempts: settings.retry.attempts.0, longest: settings.retry.longest_delay.duration() },
            tools,
            approval,
            answers: interactive(args),
            held: Some(held),
            policy: Policy::default(),
        };
        Ok(Ready { session, config, resumed, notices, undo: Undo::default() })
    }
}

/// Why a session is not gone over to whose folder is not there.
fn folder_gone(path: Option<&Path>, gone: &Failure) -> Failure {
    let path = path.unwrap_or(Path::new("")).display();
    Failure::new(format!("the session would work in a folder that is not there: {}", gone.sentence()))
        .hint(format!("begin in the folder that took its place: gjc --resume {path} --cwd DIR"))
}

/// Whether a person, or a program for them, is there while the session runs.
fn interactive(args: &SessionArgs) -> bool {
    args.mode == Mode::Rpc || (args.mode == Mode::Text && !args.print)
}

/// What a person is asked before it runs. A session that goes on does not come to a looser mode by a default or a setting:
/// what it was begun in was somebody's decision.
fn approval(
    args: &SessionArgs,
    settings: &Settings,
    before: Option<ApprovalMode>,
    over: bool,
    notices: &mut Vec<String>,
) -> ApprovalMode {
    let wanted = match settings.approval.mode {
        Some(Approval::ReadOnly) => ApprovalMode::ReadOnly,
        Some(Approval::Ask) => ApprovalMode::Ask,
        Some(Approval::AutoEdit) => ApprovalMode::AutoEdit,
        Some(Approval::Full) => ApprovalMode::Full,
        // A program that speaks RPC decides by itself whether it wants to be asked.
        None if args.mode == Mode::Text && !args.print => ApprovalMode::Ask,
        None => ApprovalMode::Full,
    };
    match before {
        Some(before) if before < wanted && (over || args.approval.is_none()) => {
            let (before_word, wanted) = (before.as_str(), wanted.as_str());
            notices.push(format!(
                "the session goes on in approval mode {before_word}, as it was; --approval {wanted} makes it looser"
            ));
            before
        }
        _ => wanted,
    }
}

/// The model of plan mode. A session goes on without it: its key may be on another machine.
async fn planner(
    env: &Env,
    name: &str,
    effective: &Effective,
    recorder: Option<&Recorder>,
    notices: &mut Vec<String>,
) -> Option<Choice> {
    match choose(env, name, effective).await {
        Ok(chosen) => Some(chosen.recorded(recorder)),
        Err(failure) => {
            let sentence = failure.sentence();
            notices.push(format!(
                "the model of plan mode, {name}, cannot be used: {sentence}; the session's own answers there"
            ));
            None
        }
    }
}

/// The tools of a session: those that it `kept`, or those of the settings.
fn tools(env: &Env, effective: &Effective, held: Confinement, kept: Option<Vec<String>>) -> Result<Tools, Failure> {
    let settings = &effective.settings;
    let tools = gjc_tools::builtin_within(&env.vars, held, bash_limits(settings));
    let tools = if settings.fetch.enabled.0 { tools.with(Arc::new(Fetch::new(reach(settings)))) } else { tools };
    let names = match kept {
        Some(kept) => kept.into_iter().filter(|name| tools.get(name).is_some()).collect(),
        None => named_tools(effective)?,
    };
    tools.only(&names).map_err(Failure::misuse)
}

/// The tools of a new session, by their names.
fn named_tools(effective: &Effective) -> Result<Vec<String>, Failure> {
    let settings = &effective.settings;
    let mut names = settings.tools.names.0.clone();
    let (fetch, enabled) = ("fetch".to_owned(), settings.fetch.enabled.0);
    if names.contains(&fetch) && !enabled {
        let off = Refusal::new("switched_off", "the tool fetch is switched off");
        return Err(Failure::misuse(off.hint("gjc config set fetch.enabled true")));
    }
    let nobody_chose = effective.get("tools").is_none_or(|layered| layered.origin == Origin::Default);
    if enabled && nobody_chose {
        names.push(fetch);
    }
    Ok(names)
}

/// What `fetch` may reach.
fn reach(settings: &Settings) -> Reach {
    Reach { allowed: settings.fetch.allow_hosts.0.clone(), timeout: settings.fetch.timeout.duration() }
}

/// How long commands may run, and how much of their output is shown.
fn bash_limits(settings: &Settings) -> Limits {
    let bash = &settings.bash;
    let size = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    Limits {
        timeout: bash.timeout.duration(),
        longest_timeout: bash.longest_timeout.duration(),
        shown: OutputCap { keep_head: size(bash.keep_head.0), keep_tail: size(bash.keep_tail.0) },
        poll: settings.jobs.poll_wait.duration(),
    }
}

/// What models cost, with the prices that a person has set.
fn prices(settings: &Settings) -> Prices {
    Prices::with(settings.models.prices.0.iter().map(|(model, price)| {
        let gjc_settings::ModelPrice { input, output, cache_read, cache_write } = *price;
        (model.clone(), Rates { input, output, cache_read, cache_write })
    }))
}
