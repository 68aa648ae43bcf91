//! Help in the person's language: the texts of the commands and arguments, and the headings between them.

use super::table::Table;
use clap::builder::StyledStr;
use clap::{Arg, Command};

/// The form of a help page with our own heading of the usage.
const PAGE: &str = "{before-help}{about-with-newline}\n쓰는 법: {usage}\n\n{all-args}{after-help}";

/// A command whose help is in the language of the table.
pub(crate) fn translated(command: Command, table: &Table) -> Command {
    // `-h` and `--help` are added by building; their texts are ours from then on.
    let mut command = command;
    command.build();
    walk(command, table)
}

fn walk(mut command: Command, table: &Table) -> Command {
    let say = |text: Option<&StyledStr>| text.map(|text| lines(&text.to_string(), table));
    let (about, long) = (say(command.get_about()), say(command.get_long_about()));
    let after = say(command.get_after_long_help());
    command = command.help_template(PAGE).subcommand_help_heading("명령");
    if let Some(about) = about {
        command = command.about(about);
    }
    if let Some(long) = long {
        command = command.long_about(long);
    }
    if let Some(after) = after {
        command = command.after_long_help(after);
    }
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, |sub| walk(sub, table));
    }
    command.mut_args(|arg| argument(arg, table))
}

fn argument(arg: Arg, table: &Table) -> Arg {
    let say = |text: Option<&StyledStr>| text.map(|text| lines(&text.to_string(), table));
    let (help, long) = (say(arg.get_help()), say(arg.get_long_help()));
    let arg = if arg.is_positional() { arg.help_heading("인자") } else { arg.help_heading("옵션") };
    let arg = match help {
        Some(help) => arg.help(help),
        None => arg,
    };
    match long {
        Some(long) => arg.long_help(long),
        None => arg,
    }
}

/// What clap puts behind a text by itself.
pub(crate) fn finished(page: &str, table: &Table) -> String {
    // What a value means stands behind it: `- json: One event a line`.
    let meaning = |line: &str| match line.split_once(": ") {
        Some((value, meaning)) if value.trim_start().starts_with("- ") => {
            format!("{value}: {}", sentence(meaning.trim_start(), table))
        }
        _ => line.to_owned(),
    };
    let page: Vec<String> = page.split('\n').map(meaning).collect();
    page.join("\n")
        .replace("[default: ", "[기본값: ")
        .replace("[possible values: ", "[값: ")
        .replace("[aliases: ", "[다른 이름: ")
        .replace("Possible values:", "값:")
}

/// Each line is looked for by itself; the blanks at its beginning stay.
pub(crate) fn lines(text: &str, table: &Table) -> String {
    let line = |line: &str| {
        // The way out of a mistake in a file stands under it, behind `=`.
        let words = line.trim_start();
        let words = words.strip_prefix("= ").unwrap_or(words);
        format!("{}{}", &line[..line.len() - words.len()], sentence(words, table))
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// clap takes the full stop off some texts and leaves it on others.
fn sentence(words: &str, table: &Table) -> String {
    match (table.say(words), words.strip_suffix('.')) {
        (said, Some(bare)) if said == words => match table.say(bare) {
            said if said == bare => words.to_owned(),
            said => format!("{said}."),
        },
        (said, _) => said,
    }
}

/// Every line of every text that help shows.
#[cfg(test)]
pub(crate) fn texts(command: &Command) -> Vec<String> {
    let mut found = Vec::new();
    let mut take = |text: Option<&StyledStr>| {
        let text = text.map(ToString::to_string).unwrap_or_default();
        found.extend(text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()));
    };
    take(command.get_about());
    take(command.get_long_about());
    take(command.get_after_long_help());
    for arg in command.get_arguments() {
        take(arg.get_help());
        take(arg.get_long_help());
        for value in arg.get_possible_values() {
            take(value.get_help());
        }
    }
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        found.extend(texts(sub));
    }
    found
}
