//! Passwords in addresses: `postgres://me:secret@host/db`, whatever the password is made of.

use super::MASKED;

/// Longer ones are no addresses.
const LONGEST: usize = 2048;

/// A text without them and how many there were, where there were any.
pub(super) fn out(text: &str) -> Option<(String, usize)> {
    let (mut without, mut from, mut at, mut count) = (String::new(), 0, 0, 0);
    while let Some(found) = text[at..].find("://") {
        let start = at + found;
        at = start + 3;
        let Some(end) = password_end(&text[at..]) else { continue };
        without.push_str(&text[from..start]);
        without.push_str(MASKED);
        at += end;
        from = at;
        count += 1;
    }
    without.push_str(&text[from..]);
    (count > 0).then_some((without, count))
}

/// Where the host begins in what stands behind `://`, when a password stands before it.
fn password_end(rest: &str) -> Option<usize> {
    let stops = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
    let colon = rest.find(|c: char| stops(c) || matches!(c, '/' | '@' | ':' | '[' | '\\'))?;
    if !rest[colon..].starts_with(':') {
        return None;
    }
    let mut rest = super::window(&rest[colon + 1..], LONGEST);
    rest = &rest[..rest.find(stops).unwrap_or(rest.len())];
    // A line break in a string of JSON.
    rest = &rest[..[r"\n", r"\r", r"\t"].iter().filter_map(|escape| rest.find(escape)).min().unwrap_or(rest.len())];
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let last = rest.rmatch_indices('@').map(|(at, _)| at).find(|at| *at > 0 && is_host(&rest[at + 1..]));
    let end = match authority.rfind('@') {
        // `me:p@ss@host/db/a@b`: what looks like a host is the host, however many signs follow.
        Some(at) if at > 0 && is_host(&authority[at + 1..]) => {
            let host = &authority[at + 1..];
            let is_known = host.contains(['.', ':']) || host.starts_with("localhost");
            if is_known { Some(at) } else { last }
        }
        Some(at) => last.or((at > 0).then_some(at)),
        // `host:80/a@b`, `host:$PORT/a@b`.
        None if authority.bytes().all(|byte| byte.is_ascii_digit()) || authority.starts_with(['$', '{', '%']) => None,
        None => last,
    };
    Some(colon + 1 + end? + 1)
}

fn is_host(text: &str) -> bool {
    let host = &text[..text.find(['/', '?', '#', ':', ',', ';', ')', ']', '}', '\\']).unwrap_or(text.len())];
    !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '$'))
        || text.starts_with(['[', '$', '{'])
}
