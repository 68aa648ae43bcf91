//! `docs/schemas` is written from the types: `GJC_UPDATE=1 cargo test -p gjc-protocol schemas`.

use std::path::Path;

#[test]
fn the_schemas_of_the_documentation_are_those_of_the_types() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let update = std::env::var_os("GJC_UPDATE").is_some();
    for (name, schema) in gjc_protocol::schemas() {
        let path = dir.join(name);
        let now = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if update {
            std::fs::write(&path, &now).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == now,
            "docs/schemas/{name} is not what the types say; run: GJC_UPDATE=1 cargo test -p gjc-protocol schemas"
        );
    }
}
