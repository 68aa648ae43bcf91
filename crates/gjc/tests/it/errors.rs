//! What a person reads when something goes wrong, in both languages: many ways to go wrong, one page of what is said.

use crate::kit::*;
use std::fmt::Write;
use std::os::unix::fs::symlink;
use testkit::anthropic;
use testkit::harness::{Home, Output, Run};

/// Said by the system's C library, by a server, or by the parser of YAML in English letters that are no words of ours.
const OTHERS: &[&str] =
    &["(os error ", "claude-stub-1", "prompt is too long", "YAML이 아닙니다: ", "JSON 객체가 아닙니다: "];

/// A page of errors, and what of it is still English where it should be Korean.
struct Page {
    home: Home,
    text: String,
    english: Vec<String>,
    count: usize,
}

impl Page {
    fn new() -> Self {
        Self { home: Home::new(), text: String::new(), english: Vec::new(), count: 0 }
    }

    /// Runs it in both languages; it must fail in both alike.
    #[track_caller]
    fn fails(&mut self, what: &str, run: impl Fn(&Home) -> Run<'_>) {
        let [english, korean] = ["C.UTF-8", "ko_KR.UTF-8"].map(|lang| run(&self.home).env("LC_ALL", lang).output());
        self.take(what, &english, &korean);
    }

    #[track_caller]
    fn take(&mut self, what: &str, english: &Output, korean: &Output) {
        assert!(matches!(english.code(), Some(1 | 2)), "{what} does not fail: {english}");
        assert_eq!(english.code(), korean.code(), "{what}");
        self.count += 1;
        let code = english.code().unwrap();
        let _ = writeln!(self.text, "## {what} (exit {code})\n{}{}", english.err(), korean.err());
        self.english.extend(korean.err().lines().filter(|line| is_english(line)).map(|line| format!("{what}: {line}")));
    }

    /// Settings with a mistake.
    #[track_caller]
    fn mistake(&mut self, text: impl AsRef<[u8]>) {
        let what = format!(
            "settings: {}",
            String::from_utf8_lossy(text.as_ref()).escape_debug().to_string().chars().take(60).collect::<String>()
        );
        self.home.write("home/.gjc/agent/config.yml", text);
        self.fails(&what, |home| look(home, &["config", "list"]));
        std::fs::remove_file(self.home.agent_dir().join("config.yml")).unwrap();
    }

    /// A server that answers so.
    #[track_caller]
    fn refused(&mut self, status: u16, kind: &str, message: &str) {
        self.home.write("home/.gjc/agent/config.yml", "retry:\n  attempts: 0\n");
        let [english, korean] = ["C.UTF-8", "ko_KR.UTF-8"].map(|lang| {
            let stub = replies([anthropic::error(status, kind, message)]);
            ask(&self.home, &stub, "x").args(["--no-session"]).env("LC_ALL", lang).output()
        });
        self.take(&format!("the server answers {status} {kind}"), &english, &korean);
        std::fs::remove_file(self.home.agent_dir().join("config.yml")).unwrap();
    }
}

/// Three words of English in a row, outside of quotes, of commands of ours, and of what is quoted of a file.
fn is_english(line: &str) -> bool {
    let of_a_file = line.split_once(" | ").is_some_and(|(number, _)| number.trim().parse::<usize>().is_ok());
    if of_a_file || OTHERS.iter().any(|other| line.contains(other)) {
        return false;
    }
    let mut outside = String::new();
    let mut quoted = false;
    for c in line.chars() {
        quoted ^= matches!(c, '"' | '`');
        outside.push(if quoted { ',' } else { c });
    }
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    // A command that can be typed is the same in every language.
    let mut in_command = false;
    let mut words: Vec<&str> = outside.split(' ').collect();
    words.retain(|word| {
        in_command = word.ends_with("gjc") || (in_command && is_word(word));
        !in_command
    });
    words.windows(3).any(|three| three.iter().all(|word| is_word(word)))
}

#[test]
fn what_goes_wrong_is_told_in_both_languages() {
    let mut page = Page::new();
    for args in [
        &["--no-such"][..],
        &["sessions"],
        &["sessions", "verify"],
        &["sessions", "show", "없는 세션"],
        &["sessions", "lost"],
        &["context", "show", "없는 세션"],
        &["context", "request", "없는 세션"],
        &["prompts", "show", "99"],
        &["prompts", "forget", "99"],
        &["man", "없음"],
        &["config", "get", "retry.attemptz"],
        &["config", "get", "providers.openai.url"],
        &["config", "set", "retry.attempts", "viele"],
        &["config", "set", "retry.attempts", "99"],
        &["config", "set", "bash.timeout", "90"],
        &["config", "set", "tools", "read,rm"],
        &["config", "set", "tools", ""],
        &["config", "set", "sandbox.write", "cache"],
        &["config", "set", "models.default", "gpt"],
        &["config", "set", "providers.openai.url", "ftp://x"],
        &["config", "unset", "tool"],
        &["config", "key", "where", "anthropic"],
        &["config", "key", "where", "openai"],
        &["config", "key", "set", "openai"],
        &["config", "key", "set", "gemini"],
        &["--mode", "xml"],
        &[],
        &["-p"],
        &["-p", "x"],
        &["-p", "x", "--model", "openai/m"],
        &["-p", "x", "--model", "gpt"],
        &["-p", "x", "--model", "scripted/없는 대본.jsonl"],
        &["-p", "x", "--resume", "a", "--no-session"],
        &["-p", "x", "--cwd", "/없는 폴더"],
        &["-p", "x", "--thinking", "much"],
        &["-p", "x", "--provider-url", "아무데나"],
        &["-p", "x", "--provider-url", "http://u:p@127.0.0.1:9"],
        &["-p", "x", "--system-prompt", "없는 파일", "--provider-url", "http://127.0.0.1:9"],
        &["-p", "x", "--tools", "read,없는 도구", "--provider-url", "http://127.0.0.1:9"],
        &["-p", "x", "--sandbox-write", "없는 폴더", "--provider-url", "http://127.0.0.1:9"],
        &["-p", "x", "--sandbox", "maybe"],
        &["-p", "x", "--resume", "없는 세션", "--provider-url", "http://127.0.0.1:9"],
        &["--mode", "rpc", "x"],
    ] {
        page.fails(&format!("gjc {}", args.join(" ")), |home| look(home, args).stdin(""));
    }
    page.fails("OPENAI_BASE_URL", |home| {
        look(home, &["-p", "x", "--model", "openai/m"]).env("OPENAI_BASE_URL", "x").env("OPENAI_API_KEY", KEY)
    });
    for text in [
        &b"retry:\n  attemptz: 3\n"[..],
        "한글: 1\n".as_bytes(),
        b"retry: 5\n",
        b"retry:\n  attempts: many\n",
        b"retry:\n  attempts: 99\n",
        b"retry:\n  attempts:\n",
        b"retry: {attempts: 1}\nretry: {attempts: 2}\n",
        b"bash: {timeout: 90}\n",
        b"bash: {timeout: 90d}\n",
        b"bash: {keepHead: 1}\n",
        b"tools: read\n",
        b"tools: [read, bsh]\n",
        b"tools: [read, read]\n",
        b"session: {durability: turm}\n",
        b"sandbox: {mode: maybe, network: no, write: [cache]}\n",
        b"providers: {anthropic: {url: 'https://u:p@x'}}\n",
        b"providers: {anthropic: {keyCommand: ''}}\n",
        b"models: {default: gpt}\n",
        b"tools: &a [read]\n",
        b"tools: !!seq [read]\n",
        b"tools: [read\n",
        b"bash:\n\ttimeout: 1m\n",
        b"--- {}\n--- {}\n",
        b"tools: [\"\xff\"]\n",
    ] {
        page.mistake(text);
    }
    page.mistake(vec![b'#'; 300_000]);
    page.home.write("project/.git/HEAD", "");
    page.home.write("project/.gjc/config.yml", "providers: {openai: {url: 'http://x'}}\n");
    page.fails("a project names a server", |home| look(home, &["config", "list"]));
    std::fs::remove_dir_all(page.home.work().join(".gjc")).unwrap();
    symlink("/tmp", page.home.work().join(".gjc")).unwrap();
    page.fails("a project's folder is a link", |home| look(home, &["config", "list"]));
    std::fs::remove_file(page.home.work().join(".gjc")).unwrap();
    page.home.write("home/.gjc/agent/config.yml", "providers: {anthropic: {keyCommand: exit 3}}\n");
    page.fails("a command gives no key", |home| look(home, &["-p", "x"]));
    std::fs::remove_file(page.home.agent_dir().join("config.yml")).unwrap();
    for (status, kind, message) in [
        (400, "invalid_request_error", "x"),
        (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
        (401, "authentication_error", "invalid x-api-key"),
        (403, "permission_error", "x"),
        (404, "not_found_error", "model: claude-stub-1"),
        (429, "rate_limit_error", "x"),
        (500, "api_error", "x"),
        (529, "overloaded_error", "바쁨"),
    ] {
        page.refused(status, kind, message);
    }
    let no_session = page.home.write("project/글.txt", "not a session\n");
    page.fails("a file that is no session", |home| look(home, &["sessions", "show"]).arg(&no_session));
    page.fails("no home", |home| {
        look(home, &["sessions", "list"]).env_remove("HOME").env_remove("GJC_CODING_AGENT_DIR")
    });

    assert!(page.count >= 80, "{}", page.count);
    assert_eq!(page.english, Vec::<String>::new(), "English is left in what is said in Korean");
    steady(&page.home, || insta::assert_snapshot!(page.text));
}
