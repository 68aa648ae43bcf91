//! The commands of a live session that let its text out: `dump` to its own person, `share` to others.

use crate::actor::Actor;
use crate::share::{Shareable, changed, parse_token};
use gjc_entry::Leaf;
use gjc_export::Live;
use gjc_flow::Digest;
use gjc_log::fs::Fs;
use gjc_protocol::{Outcome, Refusal};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

impl<F: Fs> Actor<F> {
    /// What the next request would have, and every entry of the path, for the session's own person, who may see all of it:
    /// the text and the session's label. Changes nothing.
    pub(crate) fn dump(&mut self) -> Outcome {
        let shown = self.session.shown(self.config.answers);
        let (tools, config) = (self.config.tools.defs(&shown), &self.config);
        let live = Live {
            system: &config.system_prompt(&config.env.clock.wall().day()),
            tools: &tools,
            model: &config.model,
            thinking: config.thinking,
            tier: config.tier,
        };
        let mut text = Vec::new();
        match gjc_export::text(self.session.log(), Leaf::Current, Some(live), &mut text) {
            Ok(()) => {
                let label = self.session.labels().label();
                let label = json!({ "level": label.level.to_string(), "trusted": label.trusted });
                Outcome::Done { value: json!({ "text": String::from_utf8_lossy(&text), "label": label }) }
            }
            Err(error) => Outcome::Refused(Refusal::new("no_dump", error.to_string())),
        }
    }

    /// Shows what would be shared, or shares what was shown. The work is done beside the actor.
    pub(crate) fn share(&mut self, confirm: Option<&str>, reply: oneshot::Sender<Outcome>) {
        match self.begin_share(confirm) {
            Ok(work) => {
                tokio::spawn(async move {
                    let outcome = work.await;
                    let _ = reply.send(outcome.map_or_else(Outcome::Refused, |value| Outcome::Done { value }));
                });
            }
            Err(refusal) => drop(reply.send(Outcome::Refused(refusal))),
        }
    }

    fn begin_share(
        &mut self,
        confirm: Option<&str>,
    ) -> Result<impl Future<Output = Result<serde_json::Value, Refusal>> + Send + use<F>, Refusal> {
        let log = self.session.log();
        let file = log.file_path().ok_or_else(|| {
            Refusal::new("in_memory", "this session lives in memory only, there is no file to share")
                .hint("use /dump to copy it as text, or begin without --no-session")
        })?;
        if !log.on_disk() {
            let why = "nothing is shared: the session has no answer yet, and is stored from the first one on";
            return Err(Refusal::new("nothing_stored", why).hint("ask something first"));
        }
        let said_yes = confirm.map(|token| parse_token(token).ok_or_else(changed)).transpose()?;
        let (sharing, policy, config) = (self.config.sharing.clone(), self.config.policy.clone(), &self.config);
        let page = said_yes.map_or(Digest::default(), |(_, digest)| digest);
        // Decided on the bytes that a person has seen; of a mere look nothing leaves.
        let about = (self.session.id(), self.session.leaf());
        let permit = sharing.leave(&config.policy, self.session.labels(), about, page)?;
        let at = said_yes.map_or_else(|| config.env.clock.wall(), |(at, _)| at);
        let (fs, file, env) = (Arc::clone(log.fs()), file.to_owned(), config.env.clone());
        let (blobs, labels) = (self.session.blobs(), self.session.labels().watch());
        let named = self.under_its_name();
        Ok(async move {
            named.await.map_err(|why| {
                Refusal::new("not_stored", format!("the session's last entries cannot be stored: {why}"))
                    .hint("make room, then share it again")
            })?;
            let (vars, to) = (env.vars.clone(), (sharing.clone(), policy));
            let made =
                tokio::task::spawn_blocking(move || Shareable::of(&*fs, &file, &*blobs, &vars, at, (&to.0, &to.1)))
                    .await;
            let page =
                made.unwrap_or_else(|_| Err(Refusal::new("internal", "the page broke off; this is a fault of gjc")))?;
            let mut value = page.preview(sharing.place());
            if said_yes.is_some() {
                let address = sharing.send(page, permit, &labels, &env, CancellationToken::new()).await?;
                value["shared"] = true.into();
                value["address"] = address.into();
            } else {
                value["shared"] = false.into();
            }
            Ok(value)
        })
    }
}
