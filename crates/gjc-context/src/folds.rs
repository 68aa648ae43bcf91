//! The folds that requests and faces need.

use crate::Fold;
use gjc_entry::{
    At, Body, DeliveryId, Entry, Kind, KindSet, Message, ModelRef, Own, RequestEnv, Scope, StartedJob, ToolResult,
    Usage,
};
use std::collections::HashSet;

/// The settings in force at a leaf.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The settings half of the request that would be sent next, as last written.
    pub env: Option<RequestEnv>,
    /// The model as the family's entries name it: provider and id.
    pub model: Option<(String, String)>,
    /// The same, where it stands behind the settings that were last written: nobody has been asked with it yet.
    pub chosen: Option<(String, String)>,
    /// The model of plan mode, as the family's entries name it.
    pub plan: Option<(String, String)>,
    /// The models that were asked, each once: the family's entries know no wires.
    models: Vec<ModelRef>,
    /// The thinking level as the family's entries name it.
    pub thinking: Option<String>,
    /// The service tier as the family's entries name it.
    pub tier: Option<String>,
}

impl Fold for Settings {
    const SCOPE: Scope = Scope::Path;
    const KINDS: KindSet =
        KindSet::of(&[Kind::OwnEnv, Kind::ModelChange, Kind::ThinkingLevelChange, Kind::ServiceTierChange]);

    fn step(&mut self, _: At, entry: &Entry) {
        match &entry.body {
            Body::Own(Own::Env(env)) => {
                if !self.models.contains(&env.model) {
                    self.models.push(env.model.clone());
                }
                (self.env, self.chosen) = (Some(env.clone()), None);
            }
            Body::ModelChange { provider, model, role } if role.as_deref().is_none_or(|role| role == "default") => {
                self.model = Some((provider.clone(), model.clone()));
                self.chosen.clone_from(&self.model);
            }
            Body::ModelChange { provider, model, role } if role.as_deref() == Some("plan") => {
                self.plan = Some((provider.clone(), model.clone()));
            }
            Body::ThinkingLevelChange { level } => self.thinking.clone_from(level),
            Body::ServiceTierChange { tier } => self.tier = Some(tier.clone().unwrap_or_else(|| "auto".into())),
            _ => {}
        }
    }
}

impl Settings {
    /// Who answers in the conversation, but for plan mode: what was chosen since the last request, else who was asked last.
    /// `None` where nothing of ours was written yet.
    #[must_use]
    pub fn conversation(&self) -> Option<ModelRef> {
        let asked = &self.env.as_ref()?.model;
        let planned = self.plan.as_ref().is_some_and(|plan| is(asked, plan));
        match self.chosen.as_ref().or(self.model.as_ref().filter(|_| planned)) {
            Some(named) => Some(self.known(named)),
            None => Some(asked.clone()),
        }
    }

    /// Who answers in plan mode, if that was chosen.
    #[must_use]
    pub fn planning(&self) -> Option<ModelRef> {
        self.plan.as_ref().map(|plan| self.known(plan))
    }

    /// A model of the family's entries, with its wire: that on which it was asked, else that of its provider; empty where
    /// neither was ever asked.
    fn known(&self, named: &(String, String)) -> ModelRef {
        let asked = |fits: &dyn Fn(&ModelRef) -> bool| self.models.iter().rfind(|model| fits(model));
        let known = asked(&|model| is(model, named)).or_else(|| asked(&|model| model.provider == named.0));
        let api = known.map(|model| model.api.clone()).unwrap_or_default();
        ModelRef { provider: named.0.clone(), id: named.1.clone(), api }
    }
}

fn is(model: &ModelRef, (provider, id): &(String, String)) -> bool {
    model.provider == *provider && model.id == *id
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
