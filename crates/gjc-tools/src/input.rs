//! Inputs of tools: read strictly, described compactly.

use gjc_protocol::Refusal;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What a tool tells of its input.
pub(crate) struct Form {
    /// The tool.
    pub(crate) tool: &'static str,
    /// A right call, as JSON.
    pub(crate) example: &'static str,
}

impl Form {
    /// Reads an input.
    pub(crate) fn parse<T: DeserializeOwned>(&self, input: &RawValue) -> Result<T, Refusal> {
        serde_json::from_str(input.get()).map_err(|error| {
            let Ok(fields) = serde_json::from_str::<Map<String, Value>>(input.get()) else {
                return self.wrong("the input must be a JSON object");
            };
            let why = sentence(&error);
            match culprit::<T>(&fields) {
                Some(field) if !why.contains(&format!("`{field}`")) => self.wrong(format!("`{field}`: {why}")),
                _ => self.wrong(why),
            }
        })
    }

    /// A refusal that shows the right form.
    pub(crate) fn wrong(&self, why: impl std::fmt::Display) -> Refusal {
        Refusal::new("wrong_input", format!("{}: {why}", self.tool)).hint(format!("call it like {}", self.example))
    }
}

/// The field that does not fit. serde does not name it, so each is tried alone; what is missing then comes last.
fn culprit<T: DeserializeOwned>(fields: &Map<String, Value>) -> Option<&str> {
    fields.iter().find_map(|(name, value)| {
        let alone = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        let error = serde_json::from_value::<T>(alone).err()?;
        (!error.to_string().starts_with("missing field")).then_some(name.as_str())
    })
}

fn sentence(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    text.replace("a nonzero u64", "a whole number from 1")
        .replace("a sequence", "a list")
        .replace("a boolean", "true or false")
}

/// The schema of an input: everything in place, nothing that tells a model nothing.
pub(crate) fn schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    if let Some(fields) = schema.as_object_mut() {
        compact(fields);
    }
    schema
}

/// Drops titles, number formats and `null`: an optional field is left out, not written as `null`.
fn compact(schema: &mut Map<String, Value>) {
    for noise in ["title", "format", "default"] {
        // A property of such a name would be an object.
        if schema.get(noise).is_some_and(|value| !value.is_object()) {
            schema.remove(noise);
        }
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|one| one != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    for value in schema.values_mut() {
        if let Value::Object(inner) = value {
            compact(inner);
        }
    }
}
