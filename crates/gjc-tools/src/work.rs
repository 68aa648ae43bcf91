//! What every tool needs on its way from a plan to an output.

use crate::{Output, ToolCtx, ToolOutput};
use gjc_entry::Label;
use gjc_flow::{Call, Digest, Permits, Redeemed, digest};
use gjc_protocol::Refusal;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::path::Path;

/// The join of what a call said it would read.
pub(crate) fn planned(call: &Call) -> Label {
    call.sources.iter().fold(Label::PUBLIC_TRUSTED, |label, source| label.join(source.label))
}

/// Redeems the permit of the next sink. Called right before the effect; what it gives is the proof that the effect takes.
pub(crate) fn leave(ctx: &ToolCtx, permits: &mut Permits, bytes: Digest) -> Result<Redeemed, Refusal> {
    let permit = permits.take_next().ok_or_else(|| {
        Refusal::new("no_permit", "nothing was done: this call has no permit").hint("plan the call again")
    })?;
    ctx.redeem.redeem(permit, bytes).map_err(|stale| Refusal::new("stale_permit", format!("nothing was done: {stale}")))
}

/// What a permit for a file is for: these bytes in this file. A link that leads elsewhere by the time of the effect makes it
/// another file, and the permit stale.
pub(crate) fn bytes_in(target: &Path, bytes: &[u8]) -> Digest {
    let mut both = target.as_os_str().as_encoded_bytes().to_vec();
    both.push(0);
    both.extend_from_slice(bytes);
    digest(&both)
}

/// Runs file work where it may block. The work joins into its label, at first the planned one, what it meets on the way: an
/// output that tells why it failed bears it too.
pub(crate) async fn blocking<F>(planned: Label, work: F) -> ToolOutput
where
    F: FnOnce(&mut Label) -> Result<ToolOutput, Refusal> + Send + 'static,
{
    let labelled = move || {
        let mut label = planned;
        work(&mut label).unwrap_or_else(|refusal| failed(label, &refusal))
    };
    tokio::task::spawn_blocking(labelled).await.unwrap_or_else(|error| {
        let broken = Refusal::new("internal", format!("the tool broke off: {error}"));
        failed(planned, &broken.hint("check what was done, then try again"))
    })
}

/// An output that tells why it failed.
pub(crate) fn failed(label: Label, refusal: &Refusal) -> ToolOutput {
    Output::from(label).text(refusal.to_string()).details(json!({ "error": refusal.code })).error().done()
}

/// The call was cancelled before anything was done.
pub(crate) fn cancelled() -> Refusal {
    Refusal::new("cancelled", "cancelled before anything was done")
}

/// SHA-256 as hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A count with its noun: `1 line`, `3 lines`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
