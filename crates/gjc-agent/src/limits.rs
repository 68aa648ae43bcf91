//! What a session does at a provider's limits: it waits for the reset of a usage limit, once and where a person wants that, and
//! leaves its oldest pictures out of a request that has too many bytes.

use crate::actor::Actor;
use crate::admit::NotAdmitted;
use crate::request::{NoRequest, next_request};
use crate::turn::Once;
use gjc_context::too_large;
use gjc_entry::message::ImageData;
use gjc_entry::{Blobs, Body, Leaf, Own, Timestamp};
use gjc_llm::{ProviderError, Rendered};
use gjc_log::fs::Fs;
use gjc_protocol::EventBody;
use std::time::Duration;

/// How many bytes a server takes that has refused so many and does not say how many it takes. Half of it is enough for
/// everybody who has refused a request that was a little too large; and no known provider takes less than 20 MB.
pub(crate) fn likely_limit(refused: usize) -> usize {
    (refused / 2).min(16_000_000)
}

/// The shortest time between two words on how long a wait still takes.
const SOON: Duration = Duration::from_secs(10);

impl<F: Fs> Actor<F> {
    /// The next request as bytes.
    pub(crate) fn request(&mut self) -> Result<Rendered, NoRequest> {
        self.apply_changes();
        let rendered = next_request(&mut self.session, &self.config, &self.roles);
        self.tell_notes();
        rendered
    }

    /// Leaves the oldest pictures out of all requests from now on, so that one of `bytes` has at most `limit`. `false`, and
    /// nothing has happened, where pictures are not what makes it large.
    pub(crate) fn leave_pictures_out(&mut self, bytes: usize, limit: usize) -> Result<bool, NotAdmitted> {
        let blobs = self.session.blobs();
        let (log, _) = self.session.parts();
        // Only a source without an index fails here; the log of a writer has one.
        let found = too_large(log, Leaf::Current, bytes.saturating_sub(limit), |data| size(data, &*blobs));
        let left_out = found.unwrap_or_default();
        if left_out.is_empty() {
            return Ok(false);
        }
        let megabytes = (bytes + 500_000) / 1_000_000;
        self.session.admit_own(Body::Own(Own::Images(left_out)))?;
        self.events.emit(EventBody::Notice {
            text: format!(
                "the request was too large for the provider ({megabytes} MB); the oldest pictures are left out of the conversation from now on, and stay in the session"
            ),
        });
        Ok(true)
    }

    /// Waits for the reset of a usage limit, with a countdown; `false` when that is not wanted, not possible, or was done.
    pub(crate) async fn waits_for_quota(&mut self, error: &ProviderError, once: &mut Once) -> bool {
        let ProviderError::Quota { after: Some(after), why } = error else { return false };
        let Some(longest) = self.config.wait_for_quota else { return false };
        if *after > longest || once.waited {
            return false;
        }
        once.waited = true;
        let clock = self.config.env.clock.clone();
        let until = reset_at(clock.wall(), *after);
        loop {
            let left = until.as_millis().saturating_sub(clock.wall().as_millis());
            let Ok(left_ms @ 1..) = u64::try_from(left) else { return true };
            self.events.emit(EventBody::QuotaWait { until: until.to_string(), left_ms, why: why.clone() });
            let left = Duration::from_millis(left_ms);
            let (sleep, cancel) = (clock.sleep((left / 2).max(SOON).min(left)), self.cancel.clone());
            self.attend(async move {
                tokio::select! {
                    () = sleep => {}
                    () = cancel.cancelled() => {}
                }
            })
            .await;
            if self.cancel.is_cancelled() {
                return true;
            }
        }
    }

    /// When a usage limit is reset, where the provider has told.
    pub(crate) fn way_out(&self, error: &ProviderError) -> Option<String> {
        let ProviderError::Quota { after: Some(after), .. } = error else { return None };
        let until = reset_at(self.config.env.clock.wall(), *after);
        Some(format!("the limit is reset at {until}; retry.waitForQuota lets gjc wait for it"))
    }
}

/// Whole milliseconds, rounded up.
fn reset_at(now: Timestamp, after: Duration) -> Timestamp {
    let millis = i64::try_from(after.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_add(millis))
}

/// What a picture takes in a request: base64, the same on every wire. One that is not there takes nothing.
fn size(data: &ImageData, blobs: &dyn Blobs) -> usize {
    match data {
        ImageData::Inline(base64) => base64.len(),
        ImageData::Blob(blob) => blobs.get(blob).map_or(0, |bytes| bytes.len().div_ceil(3) * 4),
    }
}
