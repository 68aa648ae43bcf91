use crate::rig::Rig;
use gjc_tools::Shown;
use serde_json::{Value, json};

#[tokio::test]
async fn a_wrong_input_is_told_the_field_and_the_right_form() {
    let rig = Rig::new();
    #[rustfmt::skip]
    let table = [
        ("read", json!([]), "the input must be a JSON object"),
        ("read", json!({}), "missing field `path`"),
        ("read", json!({"path": 1}), "`path`: invalid type: integer `1`, expected a string"),
        ("read", json!({"path": ""}), "`path` is empty"),
        ("read", json!({"path": "a\0b"}), "NUL"),
        ("read", json!({"path": "가", "offset": "3"}), "`offset`: invalid type: string \"3\", expected a whole number from 1"),
        ("read", json!({"path": "가", "offset": 0}), "`offset`: invalid value"),
        ("read", json!({"path": "가", "limit": -1}), "`limit`: invalid value"),
        ("read", json!({"file": "가"}), "unknown field `file`"),
        ("write", json!({"path": "가"}), "missing field `content`"),
        ("write", json!({"path": "가/", "content": ""}), "names a folder"),
        ("edit", json!({"path": "가", "edits": []}), "`edits` is empty"),
        ("edit", json!({"path": "가", "edits": "x"}), "`edits`: invalid type: string \"x\", expected a list"),
        ("edit", json!({"path": "가", "edits": [{"old": "x"}]}), "missing field `new`"),
        ("edit", json!({"path": "가", "edits": [{"old": "", "new": "x"}]}), "`old` of edit 1 is empty"),
        ("edit", json!({"path": "가", "edits": [{"old": "a\r\n", "new": "a\n"}]}), "edit 1 are the same"),
        ("edit", json!({"path": "가", "edits": [{"old": "a", "new": "b", "all": 1}]}), "`edits`: invalid type: integer `1`"),
        ("bash", json!({"command": " "}), "`command` is empty"),
        ("bash", json!({"command": "ls", "timeout_ms": 600_001}), "`timeout_ms` is more than 600000"),
        ("bash", json!({"command": "ls", "timeout": 1}), "unknown field `timeout`"),
        ("grep", json!({}), "missing field `pattern`"),
        ("grep", json!({"pattern": ""}), "`pattern` is empty"),
        ("grep", json!({"pattern": "가", "path": ""}), "`path` is empty"),
        ("grep", json!({"pattern": "가", "ignore_case": true}), "unknown field `ignore_case`"),
        ("grep", json!({"pattern": "가", "ignoreCase": "yes"}), "`ignoreCase`: invalid type: string \"yes\""),
        ("grep", json!({"pattern": "가", "context": -1}), "`context`: invalid value"),
        ("grep", json!({"pattern": "가", "context": 101}), "`context` is more than 100"),
        ("grep", json!({"pattern": "가", "limit": 0}), "`limit`: invalid value"),
        ("grep", json!({"pattern": "가", "glob": "[가"}), "`glob` is no glob: a [ is not closed"),
        ("find", json!({}), "missing field `pattern`"),
        ("find", json!({"pattern": ""}), "`pattern` is empty"),
        ("find", json!({"pattern": "{가"}), "`pattern` is no glob: a { is not closed"),
        ("find", json!({"pattern": "*", "path": "a\0b"}), "NUL"),
        ("find", json!({"pattern": "*", "limit": 1.5}), "`limit`: invalid type"),
        ("ls", json!({"path": 1}), "`path`: invalid type: integer `1`, expected a string"),
        ("ls", json!({"limit": 0}), "`limit`: invalid value"),
        ("ls", json!({"all": true}), "unknown field `all`"),
    ];
    for (tool, input, expected) in table {
        let refusal = rig.plan(tool, &input).unwrap_err();
        assert!(refusal.sentence.starts_with(&format!("{tool}: ")), "{refusal}");
        assert!(refusal.sentence.contains(expected), "{refusal}");
        let hint = refusal.hint.unwrap();
        let example = serde_json::from_str(hint.strip_prefix("call it like ").unwrap()).unwrap();
        rig.plan(tool, &example).unwrap();
    }
}

#[test]
fn what_models_see_of_the_tools() {
    let rig = Rig::new();
    let expected = json!({
        "read": {
            "type": "object", "additionalProperties": false, "required": ["path"],
            "properties": {
                "path": {
                    "type": "string",
                    "description": "A file or folder, absolute or from the working folder; or an output that was too \
                                    long, as `artifact://3`.",
                },
                "offset": {"type": "integer", "minimum": 1, "description": "The first line to show, from 1."},
                "limit": {"type": "integer", "minimum": 1, "description": "How many lines to show; 2000 if left out."},
            },
        },
        "write": {
            "type": "object", "additionalProperties": false, "required": ["path", "content"],
            "properties": {
                "path": {"type": "string", "description": "The file, absolute or from the working folder."},
                "content": {"type": "string", "description": "All of its new content."},
            },
        },
        "edit": {
            "type": "object", "additionalProperties": false, "required": ["path", "edits"],
            "properties": {
                "path": {"type": "string", "description": "The file, absolute or from the working folder."},
                "edits": {
                    "type": "array", "minItems": 1, "description": "The replacements; they must not overlap.",
                    "items": {
                        "type": "object", "additionalProperties": false, "required": ["old", "new"],
                        "properties": {
                            "old": {
                                "type": "string",
                                "description": "The text as it stands in the file, with as many lines as make it unique.",
                            },
                            "new": {"type": "string", "description": "The text in its place."},
                            "all": {"type": "boolean", "description": "Replace every occurrence."},
                        },
                    },
                },
            },
        },
        "bash": {
            "type": "object", "additionalProperties": false, "required": ["command"],
            "properties": {
                "command": {"type": "string", "description": "The command; several lines are a script."},
                "timeout_ms": {
                    "type": "integer", "minimum": 1,
                    "description": "After so many milliseconds it is ended; 120000 if left out, 600000 at most. In the \
                                    background: no limit if left out.",
                },
                "background": {
                    "type": "boolean",
                    "description": "Runs it as a job in the background: the call returns at once, and its end is told \
                                    to you when it comes.",
                },
            },
        },
        "grep": {
            "type": "object", "additionalProperties": false, "required": ["pattern"],
            "properties": {
                "pattern": {"type": "string", "description": "A regular expression (Rust syntax), asked of each line."},
                "path": {
                    "type": "string",
                    "description": "A file, or the folder to search in; the working folder if left out.",
                },
                "glob": {
                    "type": "string",
                    "description": "Search only files that this glob finds: \"*.rs\", \"src/**/*.ts\", \"!*.lock\".",
                },
                "ignoreCase": {"type": "boolean", "description": "Whatever the case."},
                "literal": {
                    "type": "boolean", "description": "Take the pattern as a text, not as a regular expression.",
                },
                "context": {
                    "type": "integer", "minimum": 0,
                    "description": "How many lines to show before and after each match.",
                },
                "filesOnly": {
                    "type": "boolean", "description": "Show only which files match, and in how many lines.",
                },
                "limit": {
                    "type": "integer", "minimum": 1,
                    "description": "How many matching lines (or files) to show; 100 if left out.",
                },
            },
        },
        "find": {
            "type": "object", "additionalProperties": false, "required": ["pattern"],
            "properties": {
                "pattern": {
                    "type": "string",
                    "description": "A glob: \"*.rs\" is about names at any depth, \"src/**/*.rs\" about paths from the \
                                    searched folder, \"tests/\" about folders.",
                },
                "path": {"type": "string", "description": "The folder to search in; the working folder if left out."},
                "limit": {"type": "integer", "minimum": 1, "description": "How many names to show; 1000 if left out."},
            },
        },
        "ls": {
            "type": "object", "additionalProperties": false,
            "properties": {
                "path": {"type": "string", "description": "The folder; the working folder if left out."},
                "limit": {"type": "integer", "minimum": 1, "description": "How many names to show; 500 if left out."},
            },
        },
        "job": {
            "type": "object", "additionalProperties": false,
            "properties": {
                "poll": {
                    "type": "array", "items": {"type": "string"},
                    "description": "Ids to wait for, until the first of them ends; all that run if nothing is given.",
                },
                "cancel": {"type": "array", "items": {"type": "string"}, "description": "Ids to end."},
                "list": {"type": "boolean", "description": "Only list the jobs; not together with the others."},
            },
        },
    });
    let defs = rig.tools.defs(&Shown::default());
    assert_eq!(
        defs.iter().map(|def| &*def.name).collect::<Vec<_>>(),
        ["read", "write", "edit", "bash", "grep", "find", "ls", "job"]
    );
    for def in &defs {
        let schema: Value = serde_json::from_str(def.input.get()).unwrap();
        assert_eq!(schema, expected[&*def.name], "{schema:#}");
    }
    let again = rig.tools.defs(&Shown::default());
    assert!(
        defs.iter().zip(&again).all(|(one, other)| one.input.get() == other.input.get()),
        "the same bytes each time"
    );
}
