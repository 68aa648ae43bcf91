//! Puts a session together from arguments and environment.

use crate::cli::{Mode, SessionArgs};
use crate::confinement::{Decided, decide};
use crate::failure::Failure;
use crate::history::Keeper;
use crate::instructions::Instructions;
use crate::prompt::PromptFiles;
use crate::providers::{Available, choose, name_of};
use crate::record::Recorder;
use crate::skills::Skills;
use crate::{hooks, out, settings};
use gjc_agent::{Choice, Config, Session, SessionHandle};
use gjc_context::{Approved, Folds, ToolDef};
use gjc_entry::{ApprovalMode, Blobs, DamageKind, Env, Header, Held, Leaf, Level, ModelRef, Thinking, Tier};
use gjc_flow::{Policy, Runtime};
use gjc_llm::{Backoff, Prices, Rates, scripted};
use gjc_log::fs::OsFs;
use gjc_log::{BlobStore, Durability, LogEnv, OpenError, Reader, Repaired, Writer};
use gjc_process::OutputCap;
use gjc_protocol::Refusal;
use gjc_settings::{Approval, Effective, Origin, Settings};
use gjc_store::{bucket_name, resolve};
use gjc_tools::{Bash, Confinement, Fetch, Limits, Reach};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// A session that is ready to start.
struct Composed {
    session: Session<OsFs>,
    config: Config,
    resumed: bool,
    /// What a person should know before it starts.
    notices: Vec<String>,
}

/// Starts the session that the arguments ask for, and says what a person should know of it. Its prompts go to the keeper
/// before they go to the session.
pub(crate) async fn begin(env: &Env, args: &SessionArgs) -> Result<(SessionHandle, JoinHandle<()>, Keeper), Failure> {
    let Composed { session, config, resumed, notices } = compose(env, args).await?;
    for notice in notices {
        out::notice(&format!("gjc: {notice}"));
    }
    let keeper = match session.log().file_path() {
        Some(file) => Keeper::new(env, &session.id().to_string(), file, &config.cwd, resumed),
        None => Keeper::none(),
    };
    let (handle, actor) = gjc_agent::start(session, config, resumed);
    Ok((handle, actor, keeper))
}

/// From arguments.
async fn compose(env: &Env, args: &SessionArgs) -> Result<Composed, Failure> {
    let here = match &args.cwd {
        Some(dir) => real_dir(dir)?,
        None => real_dir(Path::new("."))?,
    };
    // Whatever can be refused is refused before a session is opened: opening one for writing may mend its end.
    let path = args.resume.as_ref().map(|word| resolve(&OsFs, &env.dirs.sessions(), &here, word)).transpose()?;
    let files = PromptFiles::read(args)?;
    let before = match &path {
        Some(path) => Before::read(env, path)?,
        None => Before::default(),
    };
    // The settings are those of the project in which the session goes on.
    let project = before.cwd.as_deref().filter(|_| args.cwd.is_none()).and_then(|cwd| real_dir(cwd).ok());
    let (effective, has_project_settings, mut notices) =
        settings::of_session(env, args, project.as_deref().unwrap_or(&here))?;
    let effective = Arc::new(effective);
    let settings = &effective.settings;
    let named = match before.model {
        Some(had) if args.model.is_none() => had,
        _ => settings.models.default.0.clone(),
    };
    let recorder = args.record.as_deref().map(|path| Recorder::open(env, path)).transpose()?;
    let chosen = choose(env, &named, &effective).await?;
    let Choice { provider, model, params } = chosen.recorded(recorder.as_ref());
    let plan = match before.plan.as_deref().or(settings.models.plan.as_ref().map(|name| name.0.as_str())) {
        // A session goes on without it: its key may be on another machine.
        Some(name) => match choose(env, name, &effective).await {
            Ok(chosen) => Some(chosen.recorded(recorder.as_ref())),
            Err(failure) => {
                let sentence = failure.sentence();
                notices.push(format!(
                    "the model of plan mode, {name}, cannot be used: {sentence}; the session's own answers there"
                ));
                None
            }
        },
        None => None,
    };
    let tier = before.tier.unwrap_or_else(|| settings.models.tier.word().into());
    let tier = Tier::of_family(&tier, &model.provider).unwrap_or_default();
    let Decided { confinement, held, notices: about_commands } = decide(env, &args.commands, settings, before.held)?;
    let tools = gjc_tools::builtin_within(&env.vars, confinement.clone(), bash_limits(settings));
    let tools = if settings.fetch.enabled.0 { tools.with(Arc::new(Fetch::new(reach(settings)))) } else { tools };
    let tools = match before.tools {
        // A session that was given few tools does not come to more by being resumed.
        Some(had) if args.tools.is_none() => {
            let kept: Vec<String> = had.into_iter().filter(|name| tools.get(name).is_some()).collect();
            tools.only(&kept).map_err(Failure::misuse)?
        }
        _ => tools.only(&named_tools(&effective)?).map_err(Failure::misuse)?,
    };
    let approval = approval(args, settings, before.approval, &mut notices);
    let durability = match settings.session.durability {
        gjc_settings::Durability::Entry => Durability::Entry,
        gjc_settings::Durability::Turn => Durability::Turn,
        gjc_settings::Durability::None => Durability::None,
    };
    let (writer, cwd, resumed) = match &path {
        Some(path) => resume(env, path, durability, &here, args.cwd.is_some(), &mut notices).await?,
        None => (create(env, &here, !args.no_session, durability), here, false),
    };
    let instructions = Instructions::read(&env.dirs.agent, &cwd, args.trust_project);
    notices.extend(instructions.notices.iter().cloned());
    let skills = Skills::read(&env.dirs.agent, &cwd, args.trust_project);
    notices.extend(skills.notices.iter().cloned());
    let (hooks, more) = hooks::of_session(env, settings, &cwd, args.trust_project);
    notices.extend(more);
    if args.trust_project && !has_project_settings && !instructions.of_project && !skills.of_project {
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
        thinking: args.thinking.map(Into::into).or(before.thinking).unwrap_or_default(),
        tier,
        prices: prices(settings),
        plan,
        models: Arc::new(Available { env: env.clone(), effective: Arc::clone(&effective), recorder }),
        params,
        wait_for_quota: settings.retry.wait_for_quota.0.map(gjc_settings::Patience::duration),
        retry: Backoff { attempts: settings.retry.attempts.0, longest: settings.retry.longest_delay.duration() },
        tools,
        approval,
        answers: interactive(args),
        held: Some(held),
        policy: Policy::default(),
    };
    Ok(Composed { session, config, resumed, notices })
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
        Some(before) if before < wanted && args.approval.is_none() => {
            let (before_word, wanted) = (before.as_str(), wanted.as_str());
            notices.push(format!(
                "the session goes on in approval mode {before_word}, as it was; --approval {wanted} makes it looser"
            ));
            before
        }
        _ => wanted,
    }
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

/// A new session of a folder; in memory unless `stored`.
pub(crate) fn create(env: &Env, cwd: &Path, stored: bool, durability: Durability) -> Writer<OsFs> {
    let (at, id) = (env.clock.wall(), env.ids.session());
    let header = Header::new(id, at, cwd.display().to_string());
    let path = env.dirs.sessions().join(bucket_name(cwd)).join(header.file_name());
    let log = log_env(env, stored.then(|| env.dirs.blobs()), durability);
    if stored { Writer::create(log, path, header) } else { Writer::in_memory(log, header) }
}

/// What a log is opened with; blobs stay in memory without a folder for them.
fn log_env(env: &Env, blobs: Option<PathBuf>, durability: Durability) -> LogEnv<OsFs> {
    let fs = Arc::new(OsFs);
    LogEnv {
        blobs: Arc::new(BlobStore::new(Arc::clone(&fs), blobs)),
        fs,
        clock: Arc::clone(&env.clock),
        ids: Arc::clone(&env.ids),
        durability,
        agent_dir: Some(env.dirs.agent.clone()),
    }
}

async fn resume(
    env: &Env,
    path: &Path,
    durability: Durability,
    here: &Path,
    cwd_given: bool,
    notices: &mut Vec<String>,
) -> Result<(Writer<OsFs>, PathBuf, bool), Failure> {
    let (writer, more) = open(env, path, durability).await?;
    notices.extend(more);
    let recorded = PathBuf::from(&writer.header().cwd);
    let cwd = if cwd_given || recorded.as_os_str().is_empty() {
        here.into()
    } else if let Ok(real) = real_dir(&recorded) {
        // Another program, or a folder that was moved and linked, may have left another way to it.
        real
    } else {
        notices.push(format!("the session's folder {} is gone; it goes on in {}", recorded.display(), here.display()));
        here.into()
    };
    Ok((writer, cwd, true))
}

/// Opens a session file for writing, and says what was mended.
pub(crate) async fn open(
    env: &Env,
    path: &Path,
    durability: Durability,
) -> Result<(Writer<OsFs>, Vec<String>), Failure> {
    let (loaded, repaired) = match Writer::open_patiently(log_env(env, Some(env.dirs.blobs()), durability), path).await
    {
        Err(OpenError::Old { version, .. }) => return copy(env, path, version, durability),
        opened => opened?,
    };
    let mut notices: Vec<String> = loaded.value.lock_kind().notice().map(Into::into).into_iter().collect();
    match repaired {
        Repaired::Nothing => {}
        Repaired::Completed => {
            notices.push("the session's last line was whole but had no line feed; it got one".into());
        }
        Repaired::Cut { bytes, saved } => notices.push(format!(
            "the session ended in an unfinished line; its {bytes} bytes were moved to {}",
            saved.display()
        )),
    }
    if !loaded.damage.is_empty() {
        let places = match loaded.damage.len() {
            1 => "one place".into(),
            places => format!("{places} places"),
        };
        let cut = loaded.damage.iter().any(|damage| matches!(damage.kind, DamageKind::Orphan(_)));
        let rest = if cut {
            "what comes before the damage is in the file, but no longer in the conversation"
        } else {
            "everything else is there"
        };
        notices.push(format!("the session is damaged in {places}; {rest} (gjc sessions verify {})", path.display()));
    }
    Ok((loaded.value, notices))
}

/// A session of an old version goes on in a copy.
fn copy(env: &Env, path: &Path, version: u32, durability: Durability) -> Result<(Writer<OsFs>, Vec<String>), Failure> {
    let loaded = Reader::open(&OsFs, path)?;
    let old = loaded.value.header();
    let (at, id) = (env.clock.wall(), env.ids.session());
    let mut header = Header::new(id, at, old.cwd.clone());
    header.parent = Some(old.id.to_string());
    header.title.clone_from(&old.title);
    header.extra.clone_from(&old.extra);
    let file = env.dirs.sessions().join(bucket_name(Path::new(&old.cwd))).join(header.file_name());
    let (writer, left) =
        Writer::copy(log_env(env, Some(env.dirs.blobs()), durability), &loaded.value, file.clone(), header);
    let mut notices = vec![format!(
        "{} is of version {version}, which nothing can be added to; it goes on in a copy: {}",
        path.display(),
        file.display()
    )];
    if !left.is_empty() {
        notices.push(format!("{} damaged entries stayed behind (gjc sessions verify {})", left.len(), path.display()));
    }
    Ok((writer, notices))
}

/// What a session ran with when it was last used.
#[derive(Default)]
struct Before {
    /// The folder that it worked in.
    cwd: Option<PathBuf>,
    model: Option<String>,
    /// The model of plan mode, if one was chosen.
    plan: Option<String>,
    thinking: Option<Thinking>,
    /// As the family's entries name it.
    tier: Option<String>,
    tools: Option<Vec<String>>,
    approval: Option<ApprovalMode>,
    held: Option<Held>,
}

impl Before {
    /// From its last settings; nothing where it has none, or where their blobs are gone.
    fn read(env: &Env, path: &Path) -> Result<Self, Failure> {
        let reader = Reader::open_with(&OsFs, path, &env.dirs.agent)?.value;
        let cwd = Some(PathBuf::from(&reader.header().cwd)).filter(|cwd| !cwd.as_os_str().is_empty());
        let mut folds = Folds::default();
        let found = folds.get::<gjc_context::Settings>(&reader, Leaf::Current).cloned().unwrap_or_default();
        // What another program has chosen since counts, also where there are no settings of ours; but no script is played
        // because another program says so.
        let other = |model: &ModelRef| model.provider != scripted::API;
        let plan = found.planning().filter(other).map(|model| name_of(&model));
        let conversation = found.conversation().filter(|model| found.chosen.is_none() || other(model));
        let (thinking, tier) = (found.thinking.as_deref().and_then(Thinking::of), found.tier);
        let approval = folds.get::<Approved>(&reader, Leaf::Current).ok().and_then(|approved| approved.0);
        let Some(settings) = found.env else {
            return Ok(Self { cwd, plan, thinking, tier, approval, ..Self::default() });
        };
        let blobs = BlobStore::new(Arc::new(OsFs), Some(env.dirs.blobs()));
        let defs = blobs.get(&settings.tools).ok().and_then(|json| serde_json::from_slice::<Vec<ToolDef>>(&json).ok());
        Ok(Self {
            cwd,
            model: Some(name_of(&conversation.unwrap_or(settings.model))),
            plan,
            thinking: thinking.or(Some(settings.thinking)),
            tools: match settings.all_tools {
                shown if shown.is_empty() => defs.map(|defs| defs.into_iter().map(|def| def.name).collect()),
                all => Some(all),
            },
            approval,
            held: settings.held,
            tier: tier.or_else(|| Some(settings.tier.as_str().into())),
        })
    }
}

/// The real path of a folder.
pub(crate) fn real_dir(dir: &Path) -> Result<PathBuf, Failure> {
    match std::fs::canonicalize(dir) {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(real) => Err(Failure::usage(format!("{} is no folder", real.display()))),
        Err(error) => Err(Failure::usage(format!("the folder {} cannot be used: {error}", dir.display()))),
    }
}
