//! The folds that requests and faces need.

use crate::Fold;
use gjc_entry::{
    At, Body, DeliveryId, Entry, Kind, KindSet, Message, Own, RequestEnv, Scope, StartedJob, ToolResult, Usage,
};
use std::collections::HashSet;

/// The settings in force at a leaf.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The settings half of the request that would be sent next, as last written.
    pub env: Option<RequestEnv>,
    /// The model as the family's entries name it: provider and id.
    pub model: Option<(String, String)>,
    /// The thinking level as the family's entries name it.
    pub thinking: Option<String>,
}

impl Fold for Settings {
    const SCOPE: Scope = Scope::Path;
    const KINDS: KindSet = KindSet::of(&[Kind::OwnEnv, Kind::ModelChange, Kind::ThinkingLevelChange]);

    fn step(&mut self, _: At, entry: &Entry) {
        match &entry.body {
            Body::Own(Own::Env(env)) => self.env = Some(env.clone()),
            Body::ModelChange { provider, model, role } if role.as_deref().is_none_or(|role| role == "default") => {
                self.model = Some((provider.clone(), model.clone()));
            }
            Body::ThinkingLevelChange { level } => self.thinking.clone_from(level),
            _ => {}
        }
    }
}

/// What a session has cost, abandoned branches included.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Answers of a model.
    pub answers: u64,
    /// Their usage, summed.
    pub usage: Usage,
}

impl Fold for Totals {
    const SCOPE: Scope = Scope::Session;
    const KINDS: KindSet = KindSet::of(&[Kind::Message]);

    fn step(&mut self, _: At, entry: &Entry) {
        if let Body::Message(Message::Assistant(said)) = &entry.body {
            self.answers += 1;
            let (sum, one) = (&mut self.usage, &said.usage);
            sum.input = sum.input.saturating_add(one.input);
            sum.output = sum.output.saturating_add(one.output);
            sum.cache_read = sum.cache_read.saturating_add(one.cache_read);
            sum.cache_write = sum.cache_write.saturating_add(one.cache_write);
            sum.total_tokens = sum.total_tokens.saturating_add(one.total_tokens);
            sum.cost.input += one.cost.input;
            sum.cost.output += one.cost.output;
            sum.cost.cache_read += one.cost.cache_read;
            sum.cost.cache_write += one.cost.cache_write;
            sum.cost.total += one.cost.total;
        }
    }
}

/// The deliveries that were taken in, so that none is taken in twice.
#[derive(Debug, Clone, Default)]
pub struct Delivered(pub HashSet<DeliveryId>);

impl Fold for Delivered {
    const SCOPE: Scope = Scope::Session;
    const KINDS: KindSet = KindSet::of(&[Kind::OwnDelivered, Kind::CustomMessage]);

    fn step(&mut self, _: At, entry: &Entry) {
        match &entry.body {
            Body::Own(Own::Delivered(id)) => {
                self.0.insert(id.clone());
            }
            Body::CustomMessage { details: Some(details), .. } => {
                #[derive(serde::Deserialize)]
                struct Details {
                    gjc: Ours,
                }
                #[derive(serde::Deserialize)]
                struct Ours {
                    delivered: DeliveryId,
                }
                if let Ok(details) = serde_json::from_str::<Details>(details.get()) {
                    self.0.insert(details.gjc.delivered);
                }
            }
            _ => {}
        }
    }
}

/// The background jobs that were started, oldest first, abandoned branches included.
#[derive(Debug, Clone, Default)]
pub struct Jobs(pub Vec<StartedJob>);

impl Fold for Jobs {
    const SCOPE: Scope = Scope::Session;
    const KINDS: KindSet = KindSet::of(&[Kind::OwnJob]);

    fn step(&mut self, _: At, entry: &Entry) {
        if let Body::Own(Own::Job(job)) = &entry.body {
            self.0.push(job.clone());
        }
    }
}

/// The ends of jobs that the model saw because it asked for them: named by the results of `job`.
///
/// Such a result is followed by a `gjc.delivered`, which [`Delivered`] sees without reading all messages. Only where a crash
/// came between the two is this asked.
#[derive(Debug, Clone, Default)]
pub struct Seen(pub HashSet<DeliveryId>);

impl Seen {
    /// What one result names.
    #[must_use]
    pub fn in_result(tool: &str, details: &str) -> Vec<DeliveryId> {
        #[derive(serde::Deserialize)]
        struct Details {
            gjc: Ours,
        }
        #[derive(serde::Deserialize)]
        struct Ours {
            delivered: Vec<DeliveryId>,
        }
        let read = || serde_json::from_str::<Details>(details).ok();
        if tool == "job" { read().map(|details| details.gjc.delivered).unwrap_or_default() } else { Vec::new() }
    }
}

impl Fold for Seen {
    const SCOPE: Scope = Scope::Session;
    const KINDS: KindSet = KindSet::of(&[Kind::Message]);

    fn step(&mut self, _: At, entry: &Entry) {
        if let Body::Message(Message::ToolResult(ToolResult { tool, details: Some(details), .. })) = &entry.body {
            self.0.extend(Self::in_result(tool, details.get()));
        }
    }
}
