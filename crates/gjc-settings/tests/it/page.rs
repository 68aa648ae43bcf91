//! The page and the schema are what the table says: `GJC_UPDATE=1 cargo test -p gjc-settings page`.

use gjc_settings::{SETTINGS, page, schema};
use std::path::Path;

#[test]
fn page_and_schema_are_those_of_the_table() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let schema = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    for (name, now) in [("settings.md", page()), ("schemas/config.json", schema)] {
        let path = docs.join(name);
        if std::env::var_os("GJC_UPDATE").is_some() {
            std::fs::write(&path, &now).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == now,
            "docs/{name} is not what the table says; run: GJC_UPDATE=1 cargo test -p gjc-settings page"
        );
    }
}

#[test]
fn every_setting_is_found_by_its_name_and_has_its_place_in_the_schema() {
    let schema = schema();
    for setting in SETTINGS {
        assert_eq!(gjc_settings::find(setting.key).unwrap().key, setting.key);
        let pointer = format!("/properties/{}", setting.key.replace('.', "/properties/"));
        let leaf = schema.pointer(&pointer).unwrap_or_else(|| panic!("{pointer}"));
        assert!(leaf["description"].as_str().is_some_and(|text| text.ends_with('.')), "{pointer}");
        let below = format!("{}.", setting.key);
        assert!(SETTINGS.iter().all(|other| !other.key.starts_with(&below)), "{} is a value and a map", setting.key);
    }
}
