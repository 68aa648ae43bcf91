//! What a person may change of a session while it runs: model, thinking, tier of service. A change takes effect with the next
//! request, and is written to the session before it: at once while nothing runs, else between two requests.

use crate::actor::Actor;
use crate::config::Config;
use crate::request::settings;
use gjc_entry::{BoxFuture, ModelRef, Params, Thinking, Tier};
use gjc_llm::Provider;
use gjc_log::fs::Fs;
use gjc_protocol::{Mode, ModelInfo, Outcome, Refusal, Role, StepName};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A model, and who answers for it.
#[derive(Clone)]
pub struct Choice {
    /// Who answers.
    pub provider: Arc<dyn Provider>,
    /// Which model of theirs.
    pub model: ModelRef,
    /// Numbers of its requests.
    pub params: Params,
}

/// The models that may be chosen.
pub trait Models: Send + Sync {
    /// The model with a name (`PROVIDER/MODEL`). It may take a while: a key may come from a program.
    fn choose(&self, name: &str) -> BoxFuture<'static, Result<Choice, Refusal>>;
}

/// No model but the one that the session has.
#[derive(Debug, Clone, Copy)]
pub struct OneModel;

impl Models for OneModel {
    fn choose(&self, _: &str) -> BoxFuture<'static, Result<Choice, Refusal>> {
        let refusal = Refusal::new("unknown_model", "this session has one model");
        Box::pin(std::future::ready(Err(refusal)))
    }
}

/// The model for each role.
#[derive(Clone)]
pub(crate) struct Roles {
    default: Choice,
    plan: Option<Choice>,
}

impl Roles {
    /// Those that a session begins with.
    pub(crate) fn of(config: &Config) -> Self {
        let (provider, model, params) = (Arc::clone(&config.provider), config.model.clone(), config.params.clone());
        Self { default: Choice { provider, model, params }, plan: config.plan.clone() }
    }

    /// Who answers for a role: whoever was chosen for it, else the model of the conversation.
    pub(crate) fn model_for(&self, role: Role) -> &Choice {
        self.own(role).unwrap_or(&self.default)
    }

    /// The model that was chosen for a role.
    fn own(&self, role: Role) -> Option<&Choice> {
        match role {
            Role::Default => Some(&self.default),
            Role::Plan => self.plan.as_ref(),
        }
    }

    /// The model of plan mode as an entry names it, where it has one of its own.
    pub(crate) fn plan(&self) -> Option<(String, String)> {
        let model = &self.plan.as_ref()?.model;
        Some((model.provider.clone(), model.id.clone()))
    }

    fn set(&mut self, role: Role, choice: Choice) {
        match role {
            Role::Default => self.default = choice,
            Role::Plan => self.plan = Some(choice),
        }
    }
}

/// What is to be used from the next request on.
#[derive(Default)]
pub(crate) struct Changes {
    models: Vec<(Role, Choice)>,
    pub(crate) thinking: Option<Thinking>,
    pub(crate) tier: Option<Tier>,
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.models.is_empty() && self.thinking.is_none() && self.tier.is_none()
    }
}

/// A model that is being looked for, and who waits for it.
pub(crate) type Choosing = BoxFuture<'static, (Role, Result<Choice, Refusal>, oneshot::Sender<Outcome>)>;

impl<F: Fs> Actor<F> {
    /// Looks for a model; the answer comes when it was found.
    pub(crate) fn choose_model(&mut self, role: Role, name: &str, reply: oneshot::Sender<Outcome>) {
        let found = self.config.models.choose(name);
        let left = self.left.clone();
        self.choosing.push_back(Box::pin(async move {
            let found = tokio::select! {
                biased;
                () = left.cancelled() => Err(Refusal::new("switched", "another session is open now; its model is its own")),
                found = found => found,
            };
            (role, found, reply)
        }));
    }

    /// Takes a model that was found.
    pub(crate) fn chosen(&mut self, (role, found, reply): (Role, Result<Choice, Refusal>, oneshot::Sender<Outcome>)) {
        let outcome = match found {
            Ok(choice) => {
                let model = ModelInfo::from(choice.model.clone());
                self.changes.models.push((role, choice));
                self.changed(json!(model))
            }
            Err(refusal) => Outcome::Refused(refusal),
        };
        let _ = reply.send(outcome);
    }

    pub(crate) fn set_thinking(&mut self, level: Thinking) -> Outcome {
        self.changes.thinking = Some(level);
        self.changed(json!({ "level": level }))
    }

    pub(crate) fn set_tier(&mut self, tier: Tier) -> Outcome {
        self.changes.tier = Some(tier);
        self.changed(json!({ "tier": tier }))
    }

    fn changed(&mut self, value: serde_json::Value) -> Outcome {
        // What a request was made of that runs now must stand before its answer.
        if self.step != StepName::Idle {
            return Outcome::Done { value };
        }
        let before = (self.roles.clone(), self.config.clone());
        self.apply_changes();
        match settings(&mut self.session, &self.config, &self.roles) {
            Ok(_) => {
                self.session.want_durable();
                Outcome::Done { value }
            }
            Err(failure) => {
                // What is refused has changed nothing.
                (self.roles, self.config) = before;
                Outcome::Refused(Refusal::new("not_stored", failure.to_string()))
            }
        }
    }

    /// What was changed during the last request of a turn is written although none follows.
    pub(crate) fn keep_changes(&mut self) {
        if self.changes.is_empty() {
            return;
        }
        self.apply_changes();
        if let Err(failure) = settings(&mut self.session, &self.config, &self.roles) {
            self.fail("not_stored", failure.to_string(), None);
        }
    }

    /// Between two requests: what was changed counts from here on.
    pub(crate) fn apply_changes(&mut self) {
        let Changes { models, thinking, tier } = std::mem::take(&mut self.changes);
        models.into_iter().for_each(|(role, choice)| self.roles.set(role, choice));
        let role = self.role();
        let Choice { provider, model, params } = self.roles.model_for(role).clone();
        (self.config.provider, self.config.model, self.config.params) = (provider, model, params);
        self.config.thinking = thinking.unwrap_or(self.config.thinking);
        self.config.tier = tier.unwrap_or(self.config.tier);
    }

    /// Who will answer the next request, changes that wait included.
    pub(crate) fn next_model(&mut self) -> &ModelRef {
        let role = self.role();
        let chosen =
            |wanted: Role| self.changes.models.iter().rfind(|(role, _)| *role == wanted).map(|(_, choice)| choice);
        // Without one of its own a role has that of the conversation, also one that waits.
        let own = chosen(role).or_else(|| self.roles.own(role));
        let choice = own.or_else(|| chosen(Role::Default)).unwrap_or_else(|| self.roles.model_for(Role::Default));
        &choice.model
    }

    /// What the model is asked for now.
    fn role(&mut self) -> Role {
        match self.session.mode() {
            Mode::Plan => Role::Plan,
            Mode::None => Role::Default,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream::BoxStream;
    use gjc_context::{Checked, Request};
    use gjc_entry::Blobs;
    use gjc_llm::{ProviderError, Rendered, StreamEvent, Unsupported};
    use tokio_util::sync::CancellationToken;

    struct Nobody;

    impl Provider for Nobody {
        fn render(&self, _: &Checked<Request>, _: &dyn Blobs) -> Result<Rendered, Unsupported> {
            Err(Unsupported::Api("none".into()))
        }

        fn stream(&self, _: Rendered, _: CancellationToken) -> BoxStream<'static, Result<StreamEvent, ProviderError>> {
            Box::pin(futures_util::stream::empty())
        }

        fn api(&self) -> &'static str {
            "none"
        }

        fn renderer(&self) -> u16 {
            1
        }
    }

    fn choice(id: &str) -> Choice {
        let model = ModelRef { provider: "p".into(), id: id.into(), api: "none".into() };
        Choice { provider: Arc::new(Nobody), model, params: Params { max_tokens: 1 } }
    }

    #[test]
    fn a_role_without_a_model_of_its_own_has_that_of_the_conversation() {
        let mut roles = Roles { default: choice("a"), plan: None };
        let who = |roles: &Roles| [Role::Default, Role::Plan].map(|role| roles.model_for(role).model.id.clone());
        assert_eq!(who(&roles), ["a", "a"]);
        roles.set(Role::Plan, choice("b"));
        assert_eq!(who(&roles), ["a", "b"]);
        roles.set(Role::Default, choice("c"));
        assert_eq!(who(&roles), ["c", "b"]);
    }
}
