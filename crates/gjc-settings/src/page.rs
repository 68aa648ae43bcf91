//! What is made from the table for readers: the page of the documentation and the JSON schema for editors.

use crate::setting::{Guard, Setting};
use crate::value::Plain;
use crate::{LARGEST, SETTINGS};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;

/// `docs/settings.md`.
#[must_use]
pub fn page() -> String {
    let mut page = BEFORE.replace("LARGEST", &format!("{} KiB", LARGEST / 1024));
    for setting in SETTINGS {
        entry(&mut page, setting);
    }
    page
}

fn entry(page: &mut String, setting: &Setting) {
    let about: Vec<&str> = setting.about.iter().map(|line| line.trim()).collect();
    let default = match (setting.default)() {
        Plain::None => "none".into(),
        plain => format!("`{}`", plain.yaml()),
    };
    let flag = setting.flag.map(|flag| format!("; option: `{flag}`")).unwrap_or_default();
    let variable = setting.variable.map(|name| format!("; where no file says anything: `{name}`")).unwrap_or_default();
    let project = match setting.guard {
        Guard::Tighten { order, .. } => format!("may make it stricter ({order}); more only once it is trusted"),
        Guard::Trusted => "only once it is trusted".into(),
        Guard::Adds => "only once it is trusted, and beside yours: nothing of yours goes".into(),
        Guard::Never(why) => format!("never: {why}"),
    };
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "\n### `{}`\n\n{}\n\n- wanted: {}\n- default: {default}{flag}{variable}\n- a project: {project}\n",
        setting.key,
        about.join("\n"),
        (setting.wanted)(),
    );
}

/// The JSON schema of a file of settings, for editors.
#[must_use]
pub fn schema() -> Json {
    let mut root = object();
    for setting in SETTINGS {
        let mut at = &mut root;
        let mut parts = setting.key.split('.').peekable();
        while let Some(part) = parts.next() {
            let Some(properties) = at["properties"].as_object_mut() else { break };
            let fresh = if parts.peek().is_none() { leaf(setting) } else { object() };
            at = properties.entry(part).or_insert(fresh);
        }
    }
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("gjc settings");
    root
}

fn object() -> Json {
    json!({"type": ["object", "null"], "additionalProperties": false, "properties": Map::new()})
}

fn leaf(setting: &Setting) -> Json {
    let mut schema = (setting.schema)();
    let about: Vec<&str> = setting.about.iter().map(|line| line.trim()).collect();
    schema["description"] = json!(about.join(" "));
    match (setting.default)() {
        Plain::None => {}
        plain => schema["default"] = plain.json(),
    }
    schema
}

const BEFORE: &str = "\
# Settings

This page is made from the table of settings (`crates/gjc-settings/src/definition.rs`).

Settings are YAML. Yours are in `~/.gjc/agent/config.yml` (`gjc config path`), those of a project in `.gjc/config.yml` at the root
of its repository (the nearest folder above with `.git`, else the folder itself). A project's values stand above yours, options of
the command line above both.

```yaml
models:
  default: anthropic/claude-sonnet-4-5
session:
  durability: turn
tools: [read, write, edit, bash]
```

```sh
gjc config list                        # every setting: its value, and where that came from
gjc config get retry.attempts          # one value
gjc config set bash.timeout 5m         # sets one, and changes nothing else of your file
gjc config unset bash.timeout          # takes it out again
gjc config path                        # your file
gjc config key where anthropic         # where a key comes from; key set, key forget: the keyring
```

All but `key set` and `key forget` take `--json` ([schemas](schemas)); [schemas/config.json](schemas/config.json) is the schema of the file
itself, for editors.

## A file with a mistake

A name that does not exist, a value of the wrong kind, a name that stands twice: each is told with file, line, column, the line
itself, and what was probably meant. Nothing of such a file counts: whatever would run a session (`gjc -p`, `--mode json`,
`--mode rpc`) and `gjc config list`, `get` and `set` stop with exit code 2 before anything is opened. `set` may be what mends it. What
only looks at sessions (`gjc sessions`, `gjc context`, `gjc prompts`), the tour and `gjc config path` read no settings and go on.

Of YAML settings need little: maps, lists, scalars. Anchors, aliases, merges, tags, directives, a second document and nesting deeper
than 16 are refused, and so is a file of more than LARGEST.

A line that names a key, token or password is shown in no error.

## A project you have cloned

Anybody may have written a project's file. Until you trust it, it can only make stricter what guards you; what is looser than your own
value is left out, and you are told. Some settings no project may have at all: a file with one is an error. `.gjc` and its file
must be no symbolic links.

`gjc --trust-project -p …` trusts the file with its [hooks](hooks.md), the project's instruction files (`AGENTS.md`, `CLAUDE.md`),
its [skills](skills.md), and the files of the project that hooks name, as they are in that moment, byte for byte, at their real
paths. Any change takes the trust of that file away, until the same bytes stand there again. What is trusted is kept in
`~/.gjc/agent/trust`, one file a project, and in `instructions`, `skills` and `hooks` in it, one for each file; delete one to
take the trust back. Instructions with characters that nobody sees (overrides of direction, spaces without width, tags) are not
trusted before these are gone: the notice names line and character.

## `gjc config set` and `unset`

Comments, order, quotes and line ends of your file stay; the value is checked first, the file is replaced in one step, and only if nobody
else has changed it meanwhile. A value over several lines, or within a map in braces, is not edited: you are told the line.
A list is written with commas: `gjc config set tools read,bash`. `unset` takes the lines of one value out, and a map's name with its last
value where no comment stands between them.

## All settings
";
