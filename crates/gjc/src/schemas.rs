//! `docs/schemas` holds the schema of every `--json` output: `GJC_UPDATE=1 cargo test -p gjc schemas`.

use crate::config::{ConfigListJson, ConfigPathJson, ConfigSetJson, ConfigUnsetJson, SettingJson};
use crate::context::ContextJson;
use crate::doctor::DoctorJson;
use crate::du::UsageJson;
use crate::export::ExportJson;
use crate::finding::{ListJson, SearchJson};
use crate::key_commands::KeyWhereJson;
use crate::prompts::{PromptJson, PromptsJson};
use crate::sessions::{ShowJson, VerifyJson};
use crate::share::SharedJson;
use crate::trash::{DeletedJson, EmptiedJson, RestoredJson, TrashJson};
use schemars::schema_for;
use std::path::Path;

#[test]
fn the_schemas_of_the_documentation_are_those_of_the_outputs() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let update = std::env::var_os("GJC_UPDATE").is_some();
    for (name, schema) in [
        ("sessions-list.json", schema_for!(ListJson)),
        ("sessions-search.json", schema_for!(SearchJson)),
        ("sessions-show.json", schema_for!(ShowJson)),
        ("sessions-export.json", schema_for!(ExportJson)),
        ("sessions-share.json", schema_for!(SharedJson)),
        ("sessions-verify.json", schema_for!(VerifyJson)),
        ("sessions-delete.json", schema_for!(DeletedJson)),
        ("sessions-restore.json", schema_for!(RestoredJson)),
        ("sessions-trash.json", schema_for!(TrashJson)),
        ("sessions-trash-empty.json", schema_for!(EmptiedJson)),
        ("sessions-du.json", schema_for!(UsageJson)),
        ("context-show.json", schema_for!(ContextJson)),
        ("config-list.json", schema_for!(ConfigListJson)),
        ("config-get.json", schema_for!(SettingJson)),
        ("config-set.json", schema_for!(ConfigSetJson)),
        ("config-unset.json", schema_for!(ConfigUnsetJson)),
        ("config-key-where.json", schema_for!(KeyWhereJson)),
        ("config-path.json", schema_for!(ConfigPathJson)),
        ("doctor.json", schema_for!(DoctorJson)),
        ("prompts.json", schema_for!(PromptsJson)),
        ("prompts-show.json", schema_for!(PromptJson)),
    ] {
        let path = dir.join(name);
        let now = format!("{}\n", serde_json::to_string_pretty(&schema).expect("a schema is JSON"));
        if update {
            std::fs::write(&path, &now).expect("docs/schemas can be written");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == now,
            "docs/schemas/{name} is not what the types say; run: GJC_UPDATE=1 cargo test -p gjc schemas"
        );
    }
}
