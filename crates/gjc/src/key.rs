//! A provider's key from a command of the person's: asked once, bounded, and never shown, whatever the command prints.

use crate::failure::Failure;
use crate::print::interrupted;
use gjc_entry::Env;
use gjc_llm::Secret;
use gjc_process::{Exit, OutputCap, Spawn};
use gjc_settings::{CommandLine, Origin};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long the command may take: a person may have to unlock something.
const LIMIT: Duration = Duration::from_secs(30);
/// No key is longer.
pub(crate) const LONGEST: usize = 8 * 1024;

/// The key that a command prints. It runs in the home folder, so that no relative path in it leads into a project.
pub(crate) async fn ask(env: &Env, provider: &str, command: &CommandLine, origin: &Origin) -> Result<Secret, Failure> {
    ask_within(LIMIT, env, provider, command, origin).await
}

async fn ask_within(
    limit: Duration,
    env: &Env,
    provider: &str,
    command: &CommandLine,
    origin: &Origin,
) -> Result<Secret, Failure> {
    let refused = |what: String| {
        Failure::new(format!("the keyCommand of {provider} ({origin}) {what}"))
            .hint("run it in a shell to see what it says; gjc shows nothing that it prints")
    };
    let mut spawn = Spawn::new("sh", &env.dirs.home);
    // What it says on standard error is talk; it would end up in the key.
    spawn.args = vec!["-c".into(), format!("exec 2>/dev/null\n{}", command.0).into()];
    spawn.env = env.vars.iter().map(|(name, value)| (name.into(), value.into())).collect();
    spawn.timeout = Some(limit);
    spawn.cap = OutputCap { keep_head: LONGEST + 1, keep_tail: 1 };
    let cancel = CancellationToken::new();
    let run = gjc_process::run(spawn, cancel.clone(), None);
    tokio::pin!(run);
    let ran = tokio::select! {
        // First, so that signals are heeded before the command begins.
        biased;
        // All that it started ends with it: nobody is asked for a password by what is left of an interrupted gjc.
        () = interrupted() => {
            cancel.cancel();
            run.await
        }
        ran = &mut run => ran,
    };
    let finished = ran.map_err(|error| refused(format!("could not be started: {error}")))?;
    match finished.exit {
        Exit::Code(0) => {}
        Exit::Code(code) => return Err(refused(format!("ended with exit code {code}"))),
        Exit::TimedOut => return Err(refused(format!("did not end within {limit:?}"))),
        Exit::Signal(signal) => return Err(refused(format!("was killed by signal {signal}"))),
        Exit::Cancelled => return Err(Failure::interrupted()),
    }
    let printed = std::str::from_utf8(&finished.output.head).unwrap_or_default();
    if finished.output.total_bytes > LONGEST as u64 {
        return Err(refused(format!("printed more than {LONGEST} bytes, which is no key")));
    }
    match sound(printed) {
        Some(key) => Ok(Secret::new(key)),
        None => Err(refused("printed no key: one word of letters, digits and signs is wanted".into())),
    }
}

/// What can be a key of a text: one word, without what stands around it.
pub(crate) fn sound(text: &str) -> Option<&str> {
    let word = text.trim();
    (!word.is_empty() && word.len() <= LONGEST && word.bytes().all(|byte| byte.is_ascii_graphic())).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gjc_entry::{Dirs, Vars};
    use std::sync::Arc;

    #[test]
    fn a_command_that_does_not_end_is_ended_and_what_it_printed_is_not_told() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().to_path_buf();
        let env = Env {
            clock: Arc::new(testkit::VirtualClock::default()),
            ids: Arc::new(testkit::SeededIds::new(1)),
            dirs: Dirs { agent: dir.clone(), home: dir.clone(), temp: dir },
            vars: Vars::new([("PATH".to_string(), std::env::var("PATH").unwrap())]),
        };
        let command = CommandLine("echo sk-비밀; sleep 300".into());
        let asked = ask_within(Duration::from_millis(300), &env, "anthropic", &command, &Origin::Default);
        let failure = crate::world::runtime().unwrap().block_on(asked).unwrap_err().to_string();
        assert!(failure.contains("did not end within 300ms") && !failure.contains("비밀"), "{failure}");
    }
}
