//! Puts a session together from arguments and environment.

use crate::before::Before;
use crate::cli::{Mode, SessionArgs};
use crate::confinement::{Decided, decide};
use crate::failure::Failure;
use crate::history::Keeper;
use crate::instructions::Instructions;
use crate::opening::{create, resume};
use crate::prompt::PromptFiles;
use crate::providers::{Available, choose};
use crate::record::Recorder;
use crate::skills::Skills;
use crate::world::real_dir;
use crate::{hooks, out, settings};
use gjc_agent::{Choice, Config, Session, SessionHandle};
use gjc_entry::{ApprovalMode, Env, Level, Tier};
use gjc_flow::{Policy, Runtime};
use gjc_llm::{Backoff, Prices, Rates};
use gjc_log::Durability;
use gjc_log::fs::OsFs;
use gjc_process::OutputCap;
use gjc_protocol::Refusal;
use gjc_settings::{Approval, Effective, Origin, Settings};
use gjc_store::resolve;
use gjc_tools::{Bash, Confinement, Fetch, Limits, Reach, Tools};
use std::path::Path;
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
    // A model that is none leaves no empty script behind.
    let chosen = choose(env, &named, &effective).await?;
    let recorder = args.record.as_deref().map(|path| Recorder::open(env, path)).transpose()?;
    let Choice { provider, model, params } = chosen.recorded(recorder.as_ref());
    let plan = match before.plan.as_deref().or(settings.models.plan.as_ref().map(|name| name.0.as_str())) {
        Some(name) => planner(env, name, &effective, recorder.as_ref(), &mut notices).await,
        None => None,
    };
    let tier = before.tier.unwrap_or_else(|| settings.models.tier.word().into());
    let tier = Tier::of_family(&tier, &model.provider).unwrap_or_default();
    let Decided { confinement, held, notices: about_commands } = decide(env, &args.commands, settings, before.held)?;
    // A session that was given few tools does not come to more by being resumed.
    let kept = before.tools.filter(|_| args.tools.is_none());
    let tools = tools(env, &effective, confinement.clone(), kept)?;
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
