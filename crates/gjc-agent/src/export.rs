//! A person has the session written as a page. It is made from the file, beside the actor, which only begins it.

use crate::actor::Actor;
use crate::opener;
use gjc_entry::{Blobs, Clock, EntryId, Level, OpId};
use gjc_export::{Kept, Making, NotWritten, Replace, children, default_name, html, to_file};
use gjc_flow::{Call, LabelWatch, Permit, Redeem, SinkRef, Verdict, decide, digest};
use gjc_log::fs::Fs;
use gjc_log::{Reader, written};
use gjc_protocol::{Outcome, Refusal, export_argument, refuse_copies};
use serde_json::json;
use serde_json::value::RawValue;
use std::cell::Cell;
use std::io;
use std::path::PathBuf;
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
        let replace = if force { Replace::Any } else { Replace::Pages };
        let wanted = match &typed {
            Some(typed) => export_argument(typed).map(|said| (said.path.map(Into::into), said.open)),
            None => Ok((path, open)),
        };
        let prepared = wanted.and_then(|(path, open)| Ok((self.prepare_export(path, replace)?, open)));
        let (export, open) = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => {
                let _ = reply.send(Outcome::Refused(refusal));
                return;
            }
        };
        let lsn = self.session.want_written();
        let mut storage = self.session.log().storage();
        let (vars, page) = (self.config.env.vars.clone(), export.page.clone());
        tokio::spawn(async move {
            let made = match written(&mut storage, lsn).await {
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

    /// Everything that an export needs, and the leave for it.
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
        // What goes there is the page of this session, whatever its bytes will be: they are made after the leave for them.
        let what = digest(format!("{}\0{}", page.display(), self.session.id()).as_bytes());
        let call = Call {
            tool: "export".into(),
            input: RawValue::from_string("{}".into()).unwrap_or_default(),
            sources: Vec::new(),
            sinks: vec![SinkRef { what: page.display().to_string(), level: Level::Restricted, digest: what }],
        };
        let decision = decide(&self.config.policy, self.session.labels(), &call);
        if let Verdict::Block(why) = &decision.verdict {
            return Err(Refusal::new("blocked", why.clone()));
        }
        let leaf = self.session.leaf().unwrap_or(EntryId::Other("".into()));
        let op = OpId { session: self.session.id().clone(), entry: leaf, call: 0 };
        let permit = decision.permits(&op, self.session.labels()).take_next();
        Ok(Export {
            fs: Arc::clone(log.fs()),
            file: file.into(),
            page,
            replace,
            own: self.config.env.dirs.agent.clone(),
            blobs: self.session.blobs(),
            clock: Arc::clone(&self.config.env.clock),
            permit: permit.ok_or_else(|| Refusal::new("blocked", "nothing is exported: there is no leave for it"))?,
            what,
            labels: self.session.labels().watch(),
        })
    }
}

/// An export that may be made.
struct Export<F: Fs> {
    fs: Arc<F>,
    file: PathBuf,
    page: PathBuf,
    replace: Replace,
    own: PathBuf,
    blobs: Arc<dyn Blobs>,
    clock: Arc<dyn Clock>,
    permit: Permit,
    what: gjc_flow::Digest,
    labels: LabelWatch,
}

impl<F: Fs> Export<F> {
    fn make(self) -> Result<serde_json::Value, Refusal> {
        let Self { fs, file, page, replace, own, blobs, clock, permit, what, labels } = self;
        let loaded =
            Reader::open(&*fs, &file).map_err(|error| refusal("not_exported", error.to_string(), error.hint()))?;
        let children = children(&*fs, &file);
        let making = Making { blobs: &*blobs, children: &children, at: clock.wall(), mask: None, progress: &|_, _| {} };
        let stale = Cell::new(None);
        let kept = Kept { source: &file, own: Some(&own) };
        let wrote = to_file(&*fs, &page, replace, kept, |out| {
            html(&loaded, &making, out)?;
            // The name comes next: the last moment at which nobody has seen anything.
            labels.redeem(permit, what).map(drop).map_err(|why| {
                stale.set(Some(why));
                io::Error::other("its leave has passed")
            })
        });
        match (wrote, stale.into_inner()) {
            (Ok(bytes), _) => Ok(json!({ "page": page, "bytes": bytes })),
            (Err(_), Some(why)) => Err(Refusal::new("blocked", format!("nothing was exported: {why}"))),
            (Err(error), None) => {
                let code = if matches!(error, NotWritten::Io { .. }) { "not_exported" } else { "taken" };
                Err(refusal(code, error.to_string(), error.hint()))
            }
        }
    }
}

fn refusal(code: &str, sentence: String, hint: Option<&'static str>) -> Refusal {
    let refusal = Refusal::new(code, sentence);
    match hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}
