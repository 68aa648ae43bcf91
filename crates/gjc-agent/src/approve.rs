//! Whether a person lets a call run. Asked after the flow has decided, and before anything happens.
//!
//! A yes is for what was shown: the call runs with the input that was planned, its permits are for those bytes, and a file
//! that has changed since, or is another one, makes the tool refuse ([`gjc_tools::Preview::basis`]). The same holds where
//! the mode, or an earlier yes, has allowed a change because of where the file is.

use crate::act;
use crate::actor::Actor;
use crate::calls::{FAILED_INSIDE, NOT_RUN};
use gjc_entry::{ApprovalMode, Block, Label, OpId, Origin};
use gjc_flow::{Call, Digest, digest};
use gjc_log::fs::Fs;
use gjc_protocol::{Answer, Approval, Reach, Refusal, Remembers};
use gjc_tools::{Effects, Host, Output, Preview, Tool, ToolOutput};
use std::collections::HashSet;
use std::sync::Arc;

/// What a person has allowed for the rest of this process. It is stored nowhere: a session that goes on asks again.
#[derive(Debug, Default)]
pub(crate) struct Allowed {
    edits: bool,
    calls: HashSet<Digest>,
}

/// A call, as far as a person's leave for it matters.
struct Wish<'a> {
    call: &'a Call,
    preview: Preview,
    reach: Reach,
}

impl Wish<'_> {
    fn remembers(&self) -> Remembers {
        match (self.reach, &self.preview.command) {
            (Reach::Workspace, _) => Remembers::Edits,
            (Reach::Outside, Some(_)) => Remembers::Command,
            (Reach::Outside, None) => Remembers::Call,
        }
    }

    /// What is remembered of it, where that is not all edits. A command that is cut is not known letter for letter.
    fn key(&self) -> Digest {
        let said = match &self.preview.command {
            // What is said beside it (in the background) is a part of what was allowed.
            Some(command) if !self.preview.cut => {
                let beside = self.preview.text.as_deref().unwrap_or_default();
                format!("command\0{}\0{beside}\0{command}", self.call.tool)
            }
            _ => format!("call\0{}\0{}", self.call.tool, self.call.input.get()),
        };
        digest(said.as_bytes())
    }

    fn told(&self) -> Approval {
        let Preview { command, path, text, cut, .. } = &self.preview;
        Approval {
            tool: self.call.tool.clone(),
            reach: self.reach,
            command: command.clone(),
            path: path.as_ref().map(|path| path.display().to_string()),
            preview: text.clone(),
            cut: *cut,
            remembers: self.remembers(),
        }
    }
}

impl Allowed {
    fn has(&self, wish: &Wish<'_>) -> bool {
        (wish.reach == Reach::Workspace && self.edits) || self.calls.contains(&wish.key())
    }

    fn add(&mut self, wish: &Wish<'_>) {
        match wish.remembers() {
            Remembers::Edits => self.edits = true,
            _ => drop(self.calls.insert(wish.key())),
        }
    }
}

impl<F: Fs> Actor<F> {
    /// Whether a call that the flow allows may run: what it is bound to, or what the model hears.
    /// Commands are answered while a person thinks.
    pub(crate) async fn approve(
        &mut self,
        op: &OpId,
        tool: &Arc<dyn Tool>,
        effects: Effects,
        call: &Call,
    ) -> Result<Option<Digest>, ToolOutput> {
        let mode = self.config.approval;
        if effects < Effects::Workspace || mode == ApprovalMode::Full {
            return Ok(None);
        }
        if mode == ApprovalMode::ReadOnly {
            return Err(told(&read_only(&call.tool, self.config.answers)));
        }
        let preview = self.preview(op, tool, call).await?;
        let within = effects == Effects::Workspace && preview.within;
        let wish = Wish { call, preview, reach: if within { Reach::Workspace } else { Reach::Outside } };
        if (within && mode == ApprovalMode::AutoEdit) || self.allowed.has(&wish) {
            return Ok(wish.preview.basis);
        }
        if !self.config.answers {
            return Err(told(&nobody(&wish, mode)));
        }
        let (asks, cancel) = (self.asks.clone(), self.cancel.clone());
        let (caller, op, asked) = (self.session.runtime().caller(self.session.id()), op.clone(), wish.told());
        let answer = self.attend(async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                answer = asks.approve(&caller, &op, asked) => answer,
            }
        });
        match answer.await {
            Some(Answer::Once) => Ok(wish.preview.basis),
            Some(Answer::Session) => {
                self.allowed.add(&wish);
                Ok(wish.preview.basis)
            }
            Some(Answer::Deny { words }) => Err(denied(words)),
            _ => Err(told(&Refusal::new("unanswered", "not run: nobody allowed it before the turn ended"))),
        }
    }

    /// What a person would see. Looking at files may take its time: never in the actor's own task.
    async fn preview(&mut self, op: &OpId, tool: &Arc<dyn Tool>, call: &Call) -> Result<Preview, ToolOutput> {
        let ctx = self.context(op.clone(), act::nowhere());
        let (tool, call, cancel) = (Arc::clone(tool), call.clone(), self.cancel.clone());
        let looking = tokio::task::spawn_blocking(move || tool.preview(&ctx, &call));
        let looked = self.attend(async move {
            tokio::select! {
                biased;
                looked = looking => Some(looked),
                () = cancel.cancelled() => None,
            }
        });
        match looked.await {
            Some(Ok(Ok(preview))) => Ok(preview),
            // It may tell of what a file holds, and has the label of that.
            Some(Ok(Err(output))) => Err(output),
            Some(Err(_)) => Err(said(vec![Block::text(FAILED_INSIDE, Origin::Host)])),
            None => Err(said(vec![Block::text(NOT_RUN, Origin::Host)])),
        }
    }
}

fn told(refusal: &Refusal) -> ToolOutput {
    said(vec![Block::text(refusal.to_string(), Origin::Host)])
}

/// What gjc itself, or a person, says in place of a result.
fn said(blocks: Vec<Block>) -> ToolOutput {
    blocks.into_iter().fold(Output::from(Label::PUBLIC_TRUSTED), Output::block).error().done()
}

fn read_only(tool: &str, answers: bool) -> Refusal {
    let hint = match answers {
        true => "say what should be done; a person can allow changes with --approval ask, auto-edit or full",
        // Where nobody is asked, asking allows nothing.
        false => {
            "say what should be done; a person can allow it with --approval full, changes of the project's files with auto-edit too"
        }
    };
    Refusal::new("read_only", format!("not run: this session is read-only, and {tool} changes things")).hint(hint)
}

/// Where it would have to be asked and nobody is there.
fn nobody(wish: &Wish<'_>, mode: ApprovalMode) -> Refusal {
    let (tool, mode) = (&wish.call.tool, mode.as_str());
    let sentence =
        format!("not run: in approval mode {mode} a person has to allow {tool}, and in this run nobody is asked");
    let hint = match wish.reach {
        Reach::Workspace => "say what should be done; a person can allow it with --approval auto-edit or full",
        Reach::Outside => "say what should be done; a person can allow it with --approval full",
    };
    Refusal::new("nobody_asked", sentence).hint(hint)
}

/// A person's no, and their words as their own.
fn denied(words: Option<String>) -> ToolOutput {
    let words = words.filter(|words| !words.trim().is_empty());
    let sentence = match &words {
        Some(_) => "not run: the person does not allow it, and says:",
        None => "not run: the person does not allow it; ask them what they want instead of trying another way",
    };
    let sentence = Block::text(sentence, Origin::Host);
    said([sentence].into_iter().chain(words.map(|words| Block::text(words, Origin::Ask))).collect())
}
