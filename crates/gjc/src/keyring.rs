//! Keys of providers in the keyring of the Linux kernel: in memory that is never written to a disk, for one person, until the
//! machine's next start. One look is one system call; nothing is asked over a bus, and nothing waits.
//!
//! A key belongs to an agent folder, so that two of them never share one. The sandbox of commands lets none of these calls through.

use crate::failure::Failure;
use gjc_entry::Env;
use gjc_llm::Secret;
use linux_keyutils::{Key, KeyError, KeyPermissionsBuilder, KeyRing, KeyRingIdentifier, Permission};

/// Keeps a key, in the place of one that is there.
pub(crate) fn keep(env: &Env, provider: &str, key: &str) -> Result<(), Failure> {
    let kept = ring().and_then(|ring| {
        let kept = ring.add_key(&name(env, provider), key)?;
        // What starts later may have a session of its own, which possesses nothing of this one: the person's own processes may read.
        let perms = KeyPermissionsBuilder::builder().posessor(Permission::ALL).user(Permission::ALL).build();
        kept.set_perms(perms)
    });
    kept.map_err(|error| refused("the key cannot be kept in the keyring", error))
}

/// The key that is kept; `None` without one, and where there is no keyring.
pub(crate) fn find(env: &Env, provider: &str) -> Option<Secret> {
    let bytes = held(env, provider).ok()??.read_to_vec().ok()?;
    Some(Secret::new(std::str::from_utf8(&bytes).ok()?))
}

/// Forgets it; `false` where none was kept.
pub(crate) fn forget(env: &Env, provider: &str) -> Result<bool, Failure> {
    let forgotten = held(env, provider).and_then(|key| key.map(|key| key.invalidate()).transpose());
    forgotten.map(|done| done.is_some()).map_err(|error| refused("the keyring cannot be asked", error))
}

fn held(env: &Env, provider: &str) -> Result<Option<Key>, KeyError> {
    match ring()?.search(&name(env, provider)) {
        Ok(key) => Ok(Some(key)),
        Err(KeyError::KeyDoesNotExist | KeyError::KeyExpired | KeyError::KeyRevoked) => Ok(None),
        Err(error) => Err(error),
    }
}

fn ring() -> Result<KeyRing, KeyError> {
    KeyRing::from_special_id(KeyRingIdentifier::User, true)
}

fn name(env: &Env, provider: &str) -> String {
    format!("gjc:{provider}:{}", env.dirs.agent.display())
}

fn refused(what: &str, error: KeyError) -> Failure {
    let why = match error {
        KeyError::QuotaExceeded => "it is full".into(),
        KeyError::AccessDenied | KeyError::PermissionDenied => "this system does not allow it".into(),
        KeyError::OperationNotSupported | KeyError::Unknown(libc::ENOSYS) => "this kernel has none".into(),
        error => error.to_string(),
    };
    Failure::new(format!("{what}: {why}"))
        .hint("set the variable of the provider, or its keyCommand (gjc config key where PROVIDER names both)")
}
