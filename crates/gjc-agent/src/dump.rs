//! The session as one text, for a face to copy or show.

use crate::actor::Actor;
use gjc_entry::Leaf;
use gjc_export::Live;
use gjc_log::fs::Fs;
use gjc_protocol::{Outcome, Refusal};
use serde_json::json;

impl<F: Fs> Actor<F> {
    /// What the next request would have, and every entry of the path. Changes nothing.
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
            Ok(()) => Outcome::Done { value: json!({ "text": String::from_utf8_lossy(&text) }) },
            Err(error) => Outcome::Refused(Refusal::new("no_dump", error.to_string())),
        }
    }
}
