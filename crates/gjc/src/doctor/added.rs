//! What a person and a project have added: hooks and skills. Nothing is told where there are none.

use super::Finding;
use crate::hooks;
use crate::settings::Files;
use crate::skills::Skills;
use gjc_entry::Env;
use std::path::Path;

pub(super) fn findings(env: &Env, cwd: &Path) -> Vec<Finding> {
    // Settings that cannot be read have a finding of their own.
    let hooks = Files::read(env, cwd).ok().and_then(|files| hooks(env, &files, cwd));
    hooks.into_iter().chain(skills(env, cwd)).collect()
}

fn hooks(env: &Env, files: &Files, cwd: &Path) -> Option<Finding> {
    let (count, refused) = hooks::look(env, &files.effective(&[]).settings, cwd);
    Some(match refused {
        Some(why) => Finding::problem("hooks", why, "look at the file, then begin a session with --trust-project"),
        None if count == 0 => return None,
        None => Finding::ok("hooks", format!("programs that are run at events: {count}")),
    })
}

fn skills(env: &Env, cwd: &Path) -> Option<Finding> {
    let skills = Skills::read(&env.dirs.agent, cwd, false);
    match (skills.notices.first(), skills.count()) {
        (None, 0) => None,
        (None, count) => Some(Finding::ok("skills", format!("skills that a model is shown: {count}"))),
        (Some(first), _) => Some(Finding::note("skills", first, "a session that begins here tells all of them")),
    }
}
