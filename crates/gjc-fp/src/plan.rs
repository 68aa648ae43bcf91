//! The text of a plan.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a rule does at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Kill,
    Pause,
    Err(i32),
    Short(usize),
}

/// A plan that cannot be read. Its text is a sentence with the rule at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    rule: String,
    why: &'static str,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The failpoint rule `{}` cannot be read: {}.", self.rule, self.why)
    }
}

impl std::error::Error for PlanError {}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    at: At,
    /// Which of the matches the action is for, the first being 1.
    first: u64,
    last: u64,
    action: Action,
    matches: AtomicU64,
}

#[derive(Debug, PartialEq, Eq)]
enum At {
    Names(String),
    Nth(u64),
}

impl Plan {
    pub(crate) fn parse(text: &str) -> Result<Self, PlanError> {
        let rules = text.split(';').map(str::trim).filter(|rule| !rule.is_empty());
        let rules = rules.map(|rule| Rule::parse(rule).map_err(|why| PlanError { rule: rule.to_owned(), why }));
        Ok(Self { rules: rules.collect::<Result<_, _>>()? })
    }

    /// What is to be done at the point `name`, the `nth` passed. Every rule counts it, whether it decides or not.
    pub(crate) fn action(&self, name: &str, nth: u64) -> Option<Action> {
        let mut decided = None;
        for rule in &self.rules {
            let action = rule.action(name, nth);
            decided = decided.or(action);
        }
        decided
    }
}

impl Rule {
    fn parse(rule: &str) -> Result<Self, &'static str> {
        let (place, action) = rule.rsplit_once('=').ok_or("it needs `=` and an action, as in `log.append.*=kill`")?;
        let (place, action) = (place.trim(), Action::parse(action.trim())?);
        let (times, place) = match place.split_once(':') {
            Some((times, place)) => (Some(times), place),
            None => (None, place),
        };
        let (first, last) = times.map_or(Ok((1, u64::MAX)), parse_times)?;
        let at = match place.strip_prefix('@') {
            Some(_) if times.is_some() => return Err("`@` already says when; leave the count before `:` out"),
            Some(nth) => At::Nth(parse_count(nth).ok_or("after `@` comes a number from 1 on, as in `@137=kill`")?),
            None if place.is_empty() => return Err("the name of a point is missing before `=`"),
            None => At::Names(place.to_owned()),
        };
        Ok(Self { at, first, last, action, matches: AtomicU64::new(0) })
    }

    fn action(&self, name: &str, nth: u64) -> Option<Action> {
        let matches = match &self.at {
            At::Names(glob) => matches(glob, name),
            At::Nth(at) => *at == nth,
        };
        if !matches {
            return None;
        }
        let count = self.matches.fetch_add(1, Ordering::Relaxed) + 1;
        (self.first..=self.last).contains(&count).then_some(self.action)
    }
}

impl Action {
    fn parse(action: &str) -> Result<Self, &'static str> {
        let argument = |name: &str| action.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
        match action {
            "kill" => Ok(Self::Kill),
            "pause" => Ok(Self::Pause),
            _ => {
                if let Some(name) = argument("err") {
                    let known = "`err` knows EACCES, EAGAIN, EDQUOT, EINTR, EIO, ENOSPC and EROFS";
                    errno(name).map(Self::Err).ok_or(known)
                } else if let Some(bytes) = argument("short") {
                    bytes.parse().map(Self::Short).map_err(|_| "`short` needs a number of bytes, as in `short(7)`")
                } else {
                    Err("an action is `kill`, `pause`, `err(ENOSPC)` or `short(7)`")
                }
            }
        }
    }
}

fn parse_times(times: &str) -> Result<(u64, u64), &'static str> {
    let (first, last) = match times.split_once('-') {
        Some((first, last)) => (parse_count(first), parse_count(last)),
        None => (parse_count(times), Some(u64::MAX)),
    };
    let range = first.zip(last).filter(|(first, last)| first <= last);
    range.ok_or("before `:` comes a count from 1 on, as in `3:name=kill` or `1-2:name=kill`")
}

fn parse_count(text: &str) -> Option<u64> {
    text.parse().ok().filter(|count| *count > 0)
}

fn errno(name: &str) -> Option<i32> {
    Some(match name {
        "EACCES" => libc::EACCES,
        "EAGAIN" => libc::EAGAIN,
        "EDQUOT" => libc::EDQUOT,
        "EINTR" => libc::EINTR,
        "EIO" => libc::EIO,
        "ENOSPC" => libc::ENOSPC,
        "EROFS" => libc::EROFS,
        _ => return None,
    })
}

/// Whether `name` fits `glob`, in which `*` stands for any text, also none.
fn matches(glob: &str, name: &str) -> bool {
    let Some((head, rest)) = glob.split_once('*') else { return glob == name };
    let Some(name) = name.strip_prefix(head) else { return false };
    // The earliest place for each middle part leaves the most for the later ones; the last part must end the name.
    let mut left = name;
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn globs() {
        for (glob, name) in
            [("a.b", "a.b"), ("a.*", "a.b"), ("*", ""), ("*", "a"), ("a*", "a"), ("*.b", "a.b"), ("a.*.c", "a.b.c")]
        {
            assert!(matches(glob, name), "{glob} {name}");
        }
        for (glob, name) in [("a*b*a", "abba"), ("*기*", "쓰기.뒤"), ("a**b", "ab"), ("*ab", "abab")] {
            assert!(matches(glob, name), "{glob} {name}");
        }
        for (glob, name) in [("a.b", "a.bc"), ("a.*", "b.a"), ("ab*bc", "abc"), ("*.b", "a.bc"), ("a*x*b", "ab")] {
            assert!(!matches(glob, name), "{glob} {name}");
        }
    }

    #[test]
    fn rules_are_read() {
        let plan = Plan::parse(" log.*=kill; @137=pause ;2:a=short(7);2-3:b = err(ENOSPC);").unwrap();
        let rules: Vec<_> = plan.rules.iter().map(|rule| (&rule.at, rule.first, rule.last, rule.action)).collect();
        let named = |name: &str| At::Names(name.to_owned());
        assert_eq!(
            rules,
            [
                (&named("log.*"), 1, u64::MAX, Action::Kill),
                (&At::Nth(137), 1, u64::MAX, Action::Pause),
                (&named("a"), 2, u64::MAX, Action::Short(7)),
                (&named("b"), 2, 3, Action::Err(libc::ENOSPC)),
            ]
        );
        assert!(Plan::parse("").unwrap().rules.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_a_sentence() {
        let error = |text| Plan::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("a=kill; log.sync"),
            "The failpoint rule `log.sync` cannot be read: it needs `=` and an action, as in `log.append.*=kill`."
        );
        for (text, why) in [
            ("a=die", "an action is"),
            ("a=err(ENOWAY)", "`err` knows"),
            ("a=err", "an action is"),
            ("a=short(x)", "number of bytes"),
            ("@0=kill", "number from 1"),
            ("@x=kill", "number from 1"),
            ("0:a=kill", "count from 1"),
            ("3-2:a=kill", "count from 1"),
            ("x:a=kill", "count from 1"),
            ("2:@3=kill", "already says when"),
            ("=kill", "name of a point"),
            ("2:=kill", "name of a point"),
        ] {
            assert!(error(text).contains(why), "{text}: {}", error(text));
        }
    }

    #[test]
    fn rules_count_for_themselves_and_the_first_decides() {
        let plan = Plan::parse("2:a=short(1);a=short(2);@4=short(3);2-2:b=short(4)").unwrap();
        let names = ["a", "a", "b", "b", "c", "b"];
        let actions: Vec<_> = (1..).zip(names).map(|(nth, name)| plan.action(name, nth)).collect();
        let short = |n| Some(Action::Short(n));
        assert_eq!(actions, [short(2), short(1), None, short(3), None, None]);
    }
}
