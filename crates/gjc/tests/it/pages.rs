//! What the pages say a person can type does what they say: each command of their console blocks is run as it stands there.
//!
//! A line of output holds when each of its parts between `…` is in the line that came; a line of `…` alone stands for any number of
//! lines. Ids are those of the run, and minutes are any.

use crate::kit::*;
use crate::start_refused::repo;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use testkit::harness::Home;

/// The sections of docs/sessions.md whose blocks are run, in this order, as one walk.
const SECTIONS: [&str; 2] = ["Start", "Worktrees"];
/// The beginning of a session's id on the pages.
const ID: &str = "01a22cb1-a2bc";
/// Divides the outputs of commands.
const END: &str = "-- the next command --";

struct Step {
    command: String,
    says: Vec<String>,
}

/// The commands of a section's console blocks with what they say.
fn steps(page: &str, section: &str) -> Vec<Step> {
    let heading = format!("## {section}");
    let lines = page.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.starts_with("## "));
    let (mut steps, mut within): (Vec<Step>, bool) = (Vec::new(), false);
    for line in lines {
        match (within, line) {
            (false, "```console") => within = true,
            (true, "```") => within = false,
            (true, line) => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step { command: command.into(), says: Vec::new() }),
                (None, Some(step)) => step.says.push(line.into()),
                (None, None) => panic!("a block begins with a command: {line}"),
            },
            (false, _) => {}
        }
    }
    assert!(!steps.is_empty(), "{heading} has no console block");
    steps
}

/// Whether a line is as the page says.
fn fits(said: &str, line: &str) -> bool {
    let said = minutes(said);
    let line = minutes(line);
    let parts: Vec<&str> = said.split('…').collect();
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    if parts.len() == 1 {
        return line == said;
    }
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in &parts[1..parts.len() - 1] {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// With `2026-11-30 13:42Z` as `[minute]`.
fn minutes(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    let form: Vec<char> = "dddd-dd-dd dd:ddZ".chars().collect();
    let is = |at: usize| {
        let here = chars.get(at..at + form.len());
        here.is_some_and(|here| {
            here.iter().zip(&form).all(|(c, f)| if *f == 'd' { c.is_ascii_digit() } else { c == f })
        })
    };
    match (0..chars.len()).find(|at| is(*at)) {
        Some(at) => chars[..at]
            .iter()
            .chain("[minute]".chars().collect::<Vec<_>>().iter())
            .chain(&chars[at + form.len()..])
            .collect(),
        None => line.into(),
    }
}

/// Whether the lines are those of the page.
fn all_fit(says: &[String], lines: &[&str]) -> bool {
    match (says.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((said, more)), _) if said == "…" => (0..=lines.len()).any(|skipped| all_fit(more, &lines[skipped..])),
        (Some((said, more)), Some((line, rest))) => fits(said, line) && all_fit(more, rest),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

#[test]
fn the_page_of_sessions_can_be_typed_as_it_stands() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sessions.md")).unwrap();
    let home = Home::new();
    let ann = root(&home).join("ann");
    fs::create_dir_all(ann.join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_gjc"), ann.join("bin/gjc")).unwrap();
    let answer = home.write("ann/answer.jsonl", "{\"content\":[{\"type\":\"text\",\"text\":\"It greets.\"}]}\n");
    home.write("ann/.gjc/agent/config.yml", format!("models:\n  default: scripted/{}\n", answer.display()));
    repo(&home, "ann/hello");
    let path = format!("{}:{}", ann.join("bin").display(), std::env::var("PATH").unwrap());
    let steps: Vec<Step> = SECTIONS.iter().flat_map(|section| steps(&page, section)).collect();
    let here = |text: &str, id: &str| text.replace("/home/ann", ann.to_str().unwrap()).replace(ID, id);
    // The first command makes the session that the page speaks of.
    let sessions = ann.join(".gjc/agent/sessions");
    let find = format!("ID=$(ls {}/*/ | grep jsonl | sed 's/.*_//' | cut -c1-{})", sessions.display(), ID.len());
    let mut script = String::from("cd ~/hello\n");
    for (n, step) in steps.iter().enumerate() {
        let command = step.command.replace(ID, "\"$ID\"");
        let _ = writeln!(script, "{command}\necho '{END}'");
        if n == 0 {
            let _ = writeln!(script, "{find}; echo \"$ID\"");
        }
    }
    let file = home.write("tmp/walk.sh", script);
    let out = home
        .run("sh")
        .args(["-c", &format!("exec sh '{}' 2>&1", file.display())])
        .env("HOME", &ann)
        .env("PATH", path)
        .env("GJC_CODING_AGENT_DIR", ann.join(".gjc/agent"))
        .cwd(&ann)
        .output();
    let said = out.out();
    let parts: Vec<&str> = said.split(&format!("{END}\n")).collect();
    assert_eq!(parts.len(), steps.len() + 1, "{out}");
    let (id, second) = parts[1].split_once('\n').unwrap();
    for (n, step) in steps.iter().enumerate() {
        let part = if n == 1 { second } else { parts[n] };
        let lines: Vec<&str> = part.lines().collect();
        let says: Vec<String> = step.says.iter().map(|line| here(line, id)).collect();
        assert!(all_fit(&says, &lines), "$ {}\nthe page:\n{}\nit says:\n{part}", step.command, says.join("\n"));
    }
}

#[test]
fn a_line_holds_where_its_parts_are_there() {
    assert!(
        fits("a … c", "a b c")
            && fits("…", "")
            && fits("a…", "a")
            && fits("x 2026-11-30 13:42Z y", "x 2030-01-01 00:00Z y")
    );
    assert!(!fits("a … c", "a b") && !fits("a", "ab") && !fits("a…b…c", "acb"));
    let says = ["a", "…", "z"].map(String::from);
    assert!(all_fit(&says, &["a", "z"]) && all_fit(&says, &["a", "b", "c", "z"]));
    assert!(!all_fit(&says, &["a", "z", "b"]) && !all_fit(&says, &["a"]));
}
