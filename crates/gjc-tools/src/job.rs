//! `job`: looks at background jobs, waits for them, ends them.

use crate::input::{Form, schema};
use crate::work::{cancelled, failed, planned};
use crate::{Effects, JobState, Output, Run, Shown, Tool, ToolCtx, ToolOutput, ToolSpec};
use async_trait::async_trait;
use gjc_entry::Label;
use gjc_flow::{Call, Permits, SourceRef};
use gjc_protocol::{JobStatus, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::time::Duration;

const FORM: Form = Form { tool: "job", example: r#"{"poll": ["job-1"]}, {"cancel": ["job-1"]} or {"list": true}"# };

/// How long a poll waits if settings do not say otherwise.
const WAIT: Duration = Duration::from_secs(30);
/// How long a cancelled job is waited for: its programs get two seconds to end by themselves, and are killed then.
const ENDING: Duration = Duration::from_secs(10);

/// Waits for the first of some background jobs to end, ends jobs, or lists them.
///
/// A poll that comes back while all of them still run is no failure. What it shows of an end is seen with that: it is not
/// delivered again. Details: `{jobs: [{id, tool, status}], gjc: {delivered}}`, where `delivered` names the ends that it shows.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    wait: Duration,
}

impl Default for Job {
    fn default() -> Self {
        Self { wait: WAIT }
    }
}

impl Job {
    /// One whose polls wait at most so long.
    #[must_use]
    pub fn waiting(wait: Duration) -> Self {
        Self { wait }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Ids to wait for, until the first of them ends; all that run if nothing is given.
    poll: Option<Vec<String>>,
    /// Ids to end.
    cancel: Option<Vec<String>>,
    /// Only list the jobs; not together with the others.
    list: Option<bool>,
}

/// What a call asks for.
enum Wanted {
    List,
    Act { poll: Option<Vec<String>>, cancel: Vec<String> },
}

fn parse(input: &RawValue) -> Result<Wanted, Refusal> {
    let Input { poll, cancel, list } = FORM.parse(input)?;
    let (poll, cancel) = (poll.map(unlike), unlike(cancel.unwrap_or_default()));
    if list == Some(true) {
        if poll.is_some_and(|ids| !ids.is_empty()) || !cancel.is_empty() {
            return Err(FORM.wrong("`list` cannot be combined with `poll` or `cancel`."));
        }
        return Ok(Wanted::List);
    }
    Ok(Wanted::Act { poll: poll.filter(|ids| !ids.is_empty()), cancel })
}

/// Each once.
fn unlike(ids: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for id in ids {
        if !kept.contains(&id) {
            kept.push(id);
        }
    }
    kept
}

#[async_trait]
impl Tool for Job {
    fn name(&self) -> &'static str {
        "job"
    }

    fn spec(&self, _: &Shown) -> Option<ToolSpec> {
        let wait = self.wait.as_secs_f64();
        Some(ToolSpec {
            description: format!(
                "Waits for background jobs, ends them, or lists them. A poll comes back when the first of its jobs has ended, and \
                 after {wait} seconds at the latest: that is an observation window and no failure, the job goes on. The end of a \
                 job is told to you without asking; poll only when you have nothing else to do. Cancel only what failed or went \
                 astray, never because it takes long."
            ),
            input: schema::<Input>(),
            effects: Effects::Session,
            run: Run::Serial,
        })
    }

    fn plan(&self, ctx: &ToolCtx, input: &RawValue) -> Result<Call, Refusal> {
        parse(input)?;
        // Which of them end meanwhile nobody knows: it may show any.
        let sources = ctx.jobs.list().into_iter();
        let sources = sources.map(|job| SourceRef { what: format!("{}: {}", job.id, job.what), label: job.label });
        let sources = sources.collect();
        Ok(Call { tool: self.name().into(), input: input.to_owned(), sources, sinks: Vec::new() })
    }

    async fn run(&self, ctx: ToolCtx, call: Call, _: Permits) -> ToolOutput {
        let done = match parse(&call.input) {
            Ok(Wanted::List) => Ok(list(&ctx)),
            Ok(Wanted::Act { poll, cancel }) => self.act(&ctx, poll, cancel).await,
            Err(refusal) => Err(refusal),
        };
        done.unwrap_or_else(|refusal| failed(planned(&call), &refusal))
    }
}

impl Job {
    async fn act(&self, ctx: &ToolCtx, poll: Option<Vec<String>>, cancel: Vec<String>) -> Result<ToolOutput, Refusal> {
        if ctx.cancel.is_cancelled() {
            return Err(cancelled());
        }
        let before = ctx.jobs.list();
        let mut told: Vec<String> = cancel.iter().map(|id| end(ctx, &before, id)).collect();
        let ending = running_of(&before, &cancel);
        for id in &ending {
            within(ctx, ENDING, std::slice::from_ref(id)).await;
        }
        let polled = match poll {
            Some(ids) => known(&before, ids, &mut told)?,
            // Who only ends jobs does not wait for others.
            None if !cancel.is_empty() => Vec::new(),
            None => before.iter().filter(|job| job.end.is_none()).map(|job| job.id.clone()).collect(),
        };
        if polled.is_empty() && cancel.is_empty() {
            return Ok(Output::from(Label::PUBLIC_TRUSTED).text("No running background jobs to wait for.").done());
        }
        if !polled.is_empty() {
            within(ctx, self.wait, &polled).await;
        }
        let shown = |job: &JobState| polled.contains(&job.id) || ending.contains(&job.id);
        let jobs: Vec<JobState> = ctx.jobs.list().into_iter().filter(shown).collect();
        Ok(output(told, &jobs))
    }
}

/// Asks one job to end; what the model hears of that.
fn end(ctx: &ToolCtx, jobs: &[JobState], id: &str) -> String {
    match jobs.iter().find(|job| job.id == id) {
        None => format!("Background job not found: {id}"),
        Some(job) if job.end.is_some() => format!("Background job {id} is already {}.", job.status().as_str()),
        Some(_) if ctx.jobs.cancel(id) => format!("Cancelled background job {id}."),
        Some(_) => format!("Background job {id} has just ended by itself."),
    }
}

fn running_of(jobs: &[JobState], ids: &[String]) -> Vec<String> {
    jobs.iter().filter(|job| job.end.is_none() && ids.contains(&job.id)).map(|job| job.id.clone()).collect()
}

/// The ids that there are; at least one must be. The others are told.
fn known(jobs: &[JobState], ids: Vec<String>, told: &mut Vec<String>) -> Result<Vec<String>, Refusal> {
    let (known, unknown): (Vec<_>, Vec<_>) = ids.into_iter().partition(|id| jobs.iter().any(|job| job.id == *id));
    if known.is_empty() {
        let there: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
        let there = if there.is_empty() { "none".into() } else { there.join(", ") };
        let refusal = Refusal::new("unknown_job", format!("No matching jobs found for IDs: {}", unknown.join(", ")));
        return Err(refusal.hint(format!("there are: {there}")));
    }
    told.extend(unknown.iter().map(|id| format!("Background job not found: {id}")));
    Ok(known)
}

/// Waits for the first end, for so long, or until the call is cancelled.
async fn within(ctx: &ToolCtx, most: Duration, ids: &[String]) {
    tokio::select! {
        () = ctx.jobs.first_end(ids) => {}
        () = ctx.clock.sleep(most) => {}
        () = ctx.cancel.cancelled() => {}
    }
}

fn list(ctx: &ToolCtx) -> ToolOutput {
    let jobs = ctx.jobs.list();
    let mut text: String = if jobs.is_empty() { "No background jobs.".into() } else { String::new() };
    for job in &jobs {
        text.push_str(&format!("- {} [{}] — {}: {}\n", job.id, job.tool, job.status().as_str(), job.what));
    }
    // Nothing of it comes from what the jobs said.
    Output::from(Label::PUBLIC_TRUSTED).text(text).details(json!({ "jobs": rows(&jobs) })).done()
}

fn output(told: Vec<String>, jobs: &[JobState]) -> ToolOutput {
    let label = jobs.iter().fold(Label::PUBLIC_TRUSTED, |label, job| label.join(job.label));
    let mut text = told.join("\n");
    let sections: [(&str, &dyn Fn(JobStatus) -> bool); 3] = [
        ("Cancelled", &|status| status == JobStatus::Cancelled),
        ("Completed", &|status| matches!(status, JobStatus::Completed | JobStatus::Failed)),
        ("Still Running", &|status| status == JobStatus::Running),
    ];
    for (title, belongs) in sections {
        let of: Vec<&JobState> = jobs.iter().filter(|job| belongs(job.status())).collect();
        if of.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
        }
        text.push_str(&format!("## {title} ({})\n", of.len()));
        for job in of {
            text.push_str(&format!("\n{}", job.section()));
        }
    }
    let ended = jobs.iter().filter(|job| job.end.is_some());
    let seen: Vec<String> = ended.map(|job| job.op.to_string()).collect();
    let mut details = json!({ "jobs": rows(jobs) });
    if !seen.is_empty() {
        details["gjc"] = json!({ "delivered": seen });
    }
    Output::from(label).text(text).details(details).done()
}

fn rows(jobs: &[JobState]) -> Vec<serde_json::Value> {
    let row = |job: &JobState| json!({ "id": job.id, "tool": job.tool, "status": job.status() });
    jobs.iter().map(row).collect()
}
