//! A person has the session written as a page. It is made from the file, beside the actor, which only begins it.

use crate::actor::Actor;
use crate::opener;
use gjc_entry::{Blobs, Clock, EntryId, Label, Level, OpId, Skeleton, Source};
use gjc_export::{Kept, Making, NotWritten, Replace, children, default_name, html, to_file};
use gjc_flow::{Call, Digest, Digesting, LabelState, LabelWatch, Permit, Policy, Redeem, SinkRef, Verdict, decide};
use gjc_log::fs::Fs;
use gjc_log::{Loaded, Reader};
use gjc_protocol::{Outcome, Refusal, export_argument, refuse_copies};
use serde_json::json;
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;

impl<F: Fs> Actor<F> {
    /// Begins an export; the answer comes when the page is there.
    pub(crate) fn export(
        &mut self,
        path: Option<String>,
        force: bool,
        open: bool,
        typed: Option<String>,
        reply: oneshot::Sender<Outcome>,
    ) {
        let wanted = match &typed {
            Some(typed) => export_argument(typed).map(|said| (said.path.map(Into::into), said.open, said.force)),
            None => Ok((path, open, force)),
        };
        let prepared = wanted.and_then(|(path, open, force)| {
            let replace = if force { Replace::Any } else { Replace::Pages };
            Ok((self.prepare_export(path, replace)?, open))
        });
        let (export, open) = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => {
                let _ = reply.send(Outcome::Refused(refusal));
                return;
            }
        };
        let named = self.under_its_name();
        let (vars, page) = (self.config.env.vars.clone(), export.page.clone());
        tokio::spawn(async move {
            let made = match named.await {
                Ok(()) => tokio::task::spawn_blocking(move || export.make())
                    .await
                    .unwrap_or_else(|_| Err(Refusal::new("internal", "the export broke off; this is a fault of gjc"))),
                Err(why) => {
                    Err(Refusal::new("not_stored", format!("the session's last entries cannot be stored: {why}"))
                        .hint("make room, then export it again"))
                }
            };
            let outcome = match made {
                Ok(mut value) => {
                    if open {
                        let opened = opener::open(&vars, &page).await;
                        value["opened"] = opened.is_ok().into();
                        if let Err(why) = opened {
                            value["notOpened"] = why.into();
                        }
                    }
                    Outcome::Done { value }
                }
                Err(refusal) => Outcome::Refused(refusal),
            };
            let _ = reply.send(outcome);
        });
    }

    /// Everything that an export needs.
    fn prepare_export(&self, path: Option<String>, replace: Replace) -> Result<Export<F>, Refusal> {
        if let Some(refusal) = path.as_deref().and_then(refuse_copies) {
            return Err(refusal);
        }
        let log = self.session.log();
        let file = log.file_path().ok_or_else(|| {
            Refusal::new("in_memory", "this session lives in memory only, there is no file to export")
                .hint("use /dump to copy it as text, or begin without --no-session")
        })?;
        if !log.on_disk() {
            let why = "nothing is exported: the session has no answer yet, and is stored from the first one on";
            return Err(Refusal::new("nothing_stored", why).hint("ask something first"));
        }
        let page = self.config.cwd.join(path.map_or_else(|| default_name(file).into(), PathBuf::from));
        Ok(Export {
            fs: Arc::clone(log.fs()),
            file: file.into(),
            page,
            replace,
            own: self.config.env.dirs.agent.clone(),
            blobs: self.session.blobs(),
            clock: Arc::clone(&self.config.env.clock),
            policy: self.config.policy.clone(),
            labels: self.session.labels().watch(),
        })
    }
}

/// An export that can be made.
struct Export<F: Fs> {
    fs: Arc<F>,
    file: PathBuf,
    page: PathBuf,
    replace: Replace,
    own: PathBuf,
    blobs: Arc<dyn Blobs>,
    clock: Arc<dyn Clock>,
    policy: Policy,
    labels: LabelWatch,
}

impl<F: Fs> Export<F> {
    fn make(self) -> Result<serde_json::Value, Refusal> {
        let Self { fs, file, page, replace, own, blobs, clock, policy, labels } = self;
        let loaded =
            Reader::open(&*fs, &file).map_err(|error| refusal("not_exported", error.to_string(), error.hint()))?;
        let children = children(&*fs, &file);
        let making = Making { blobs: &*blobs, children: &children, at: clock.wall(), mask: None, progress: &|_, _| {} };
        let kept = Kept { source: &file, own: Some(&own) };
        let bytes = write_page(&*fs, (&page, replace, kept), &loaded, &making, &policy, Some(&labels))?;
        Ok(json!({ "page": page, "bytes": bytes }))
    }
}

/// Writes a session's page as a file, if its very bytes may go there. What is decided on is the label of the loaded session,
/// of which the page is made, and of the live one where there is one. Answers the page's length.
///
/// # Errors
/// It may not be written, or cannot; nothing has changed then.
pub fn write_page<F: Fs>(
    fs: &F,
    (page, replace, kept): (&Path, Replace, Kept<'_>),
    loaded: &Loaded<Reader<F>>,
    making: &Making<'_>,
    policy: &Policy,
    live: Option<&LabelWatch>,
) -> Result<u64, Refusal> {
    let label = loaded.value.skeleton().map_or(Label::PUBLIC_TRUSTED, Skeleton::label);
    let label = live.map_or(label, |live| label.join(live.now().0));
    let labels = LabelState::new(label, Level::Restricted)
        .map_err(|above| Refusal::new("blocked", format!("nothing was exported: {above}")))?;
    let watch = labels.watch();
    let blocked = RefCell::new(None);
    let wrote = to_file(fs, page, replace, kept, |out| {
        let mut out = Digesting::new(out);
        html(loaded, making, &mut out)?;
        let bytes = out.digest();
        // The name comes next: the last moment at which nobody has seen anything.
        leave(policy, &labels, &loaded.value, page, bytes)
            .and_then(|permit| live.unwrap_or(&watch).redeem(permit, bytes).map(drop).map_err(|why| why.to_string()))
            .map_err(|why| {
                blocked.replace(Some(why));
                io::Error::other("there is no leave for it")
            })
    });
    match (wrote, blocked.into_inner()) {
        (Ok(bytes), _) => Ok(bytes),
        (Err(_), Some(why)) => Err(Refusal::new("blocked", format!("nothing was exported: {why}"))),
        (Err(error), None) => {
            let code = if matches!(error, NotWritten::Io { .. }) { "not_exported" } else { "taken" };
            Err(refusal(code, error.to_string(), error.hint()))
        }
    }
}

/// Leave to write a page with this digest, or why there is none.
fn leave<F: Fs>(
    policy: &Policy,
    labels: &LabelState,
    session: &Reader<F>,
    page: &Path,
    digest: Digest,
) -> Result<Permit, String> {
    let call = Call {
        tool: "export".into(),
        input: RawValue::from_string("{}".into()).unwrap_or_default(),
        sources: Vec::new(),
        // A person's own file, which only they may read.
        sinks: vec![SinkRef { what: page.display().to_string(), level: Level::Restricted, digest }],
    };
    let decision = decide(policy, labels, &call);
    if let Verdict::Block(why) = &decision.verdict {
        return Err(why.clone());
    }
    let leaf = session.skeleton().and_then(|tree| Some(tree.id(tree.leaf()?)));
    let entry = leaf.unwrap_or(EntryId::Other("".into()));
    let op = OpId { session: session.header().id.clone(), entry, call: 0 };
    decision.permits(&op, labels).take_next().ok_or_else(|| "there is no leave for it".to_owned())
}

fn refusal(code: &str, sentence: String, hint: Option<&'static str>) -> Refusal {
    let refusal = Refusal::new(code, sentence);
    match hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}
