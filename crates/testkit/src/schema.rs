//! Whether a JSON value is what a JSON schema says: the part of the language that our own schemas use, and no keyword beside it.
//!
//! Stricter than the standard in one way: a field that no part of the schema describes is a mistake, since these schemas are
//! documentation. A schema that says nothing of an object's fields leaves them free.

use serde_json::Value;
use std::collections::BTreeSet;

/// Keywords without a say in what is valid.
const SAYING: &[&str] = &["$schema", "$defs", "title", "description", "default", "format", "examples"];

/// Fails the test when the value is not what the schema says.
#[track_caller]
pub fn assert_valid(schema: &Value, value: &Value) {
    if let Err(why) = check(schema, value) {
        panic!("{why}\n{value:#}");
    }
}

/// Whether a value is what a schema says.
///
/// # Errors
/// The place (a JSON pointer) and what is wrong there.
pub fn check(schema: &Value, value: &Value) -> Result<(), String> {
    at_place(schema, schema, value, "")
}

/// Fields that were described, or all of them.
enum Described {
    All,
    These(BTreeSet<String>),
}

impl Described {
    fn join(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::These(mine), Self::These(theirs)) => mine.extend(theirs),
            (_, Self::All) => *self = Self::All,
            (Self::All, Self::These(_)) => {}
        }
    }
}

/// One value, with all schemas that speak of it known.
fn at_place(root: &Value, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    let described = apply(root, schema, value, place)?;
    match (described, value) {
        (Described::These(names), Value::Object(fields)) => match fields.keys().find(|name| !names.contains(*name)) {
            Some(name) => Err(format!("{place}/{name}: the schema does not describe it")),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn apply(root: &Value, schema: &Value, value: &Value, place: &str) -> Result<Described, String> {
    let schema = match schema {
        Value::Bool(true) => return Ok(Described::All),
        Value::Object(schema) => schema,
        other => return Err(format!("{place}: {other} is no schema")),
    };
    let mut described = Described::These(BTreeSet::new());
    let mut says_fields = false;
    let wrong = |what: String| Err(format!("{place}: {what}"));
    for (keyword, said) in schema {
        match keyword.as_str() {
            known if SAYING.contains(&known) => {}
            "$ref" => {
                says_fields = true;
                described.join(apply(root, resolve(root, said)?, value, place)?);
            }
            "type" => {
                let wanted: Vec<&str> = match said {
                    Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
                    kind => kind.as_str().into_iter().collect(),
                };
                if !wanted.iter().any(|kind| is(kind, value)) {
                    return wrong(format!("{said} is wanted"));
                }
            }
            "const" if said != value => return wrong(format!("{said} is wanted")),
            "enum" if !said.as_array().is_some_and(|all| all.contains(value)) => {
                return wrong(format!("one of {said} is wanted"));
            }
            "const" | "enum" => {}
            "minimum" if value.as_f64() < said.as_f64() && value.is_number() => {
                return wrong(format!("at least {said}"));
            }
            "maximum" if value.as_f64() > said.as_f64() => return wrong(format!("at most {said}")),
            "minimum" | "maximum" => {}
            "minLength"
                if value.as_str().is_some_and(|text| (text.chars().count() as u64) < said.as_u64().unwrap_or(0)) =>
            {
                return wrong(format!("at least {said} characters"));
            }
            "minLength" => {}
            "pattern" => {
                let pattern = said.as_str().and_then(|said| regex::Regex::new(said).ok());
                let pattern = pattern.ok_or_else(|| format!("{place}: {said} is no pattern"))?;
                if value.as_str().is_some_and(|text| !pattern.is_match(text)) {
                    return wrong(format!("{said} does not match"));
                }
            }
            "properties" => {
                says_fields = true;
                for (name, schema) in said.as_object().into_iter().flatten() {
                    if let Some(field) = value.get(name) {
                        at_place(root, schema, field, &format!("{place}/{name}"))?;
                        described.join(Described::These([name.clone()].into()));
                    }
                }
            }
            "required" if value.is_object() => {
                let names = said.as_array().into_iter().flatten().filter_map(Value::as_str);
                if let Some(lacks) = names.into_iter().find(|name| value.get(name).is_none()) {
                    return wrong(format!("{lacks} is missing"));
                }
            }
            "required" => {}
            "additionalProperties" => {
                says_fields = true;
                let own = schema.get("properties").and_then(Value::as_object);
                for (name, field) in value.as_object().into_iter().flatten() {
                    if own.is_none_or(|own| !own.contains_key(name)) {
                        if said == &Value::Bool(false) {
                            return wrong(format!("{name} is not allowed"));
                        }
                        at_place(root, said, field, &format!("{place}/{name}"))?;
                        described.join(Described::These([name.clone()].into()));
                    }
                }
            }
            "items" => {
                for (nth, item) in value.as_array().into_iter().flatten().enumerate() {
                    at_place(root, said, item, &format!("{place}/{nth}"))?;
                }
            }
            "uniqueItems" => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                if items.iter().enumerate().any(|(nth, item)| items[..nth].contains(item)) {
                    return wrong("an item stands there twice".into());
                }
            }
            "oneOf" | "anyOf" => {
                says_fields = true;
                let tried: Vec<_> =
                    said.as_array().into_iter().flatten().map(|one| apply(root, one, value, place)).collect();
                let (fit, others): (Vec<_>, Vec<_>) = tried.into_iter().partition(Result::is_ok);
                match fit.len() {
                    0 => {
                        let whys: Vec<String> = others.into_iter().filter_map(Result::err).collect();
                        return wrong(format!("none of {keyword} fits: {}", whys.join("; ")));
                    }
                    more if more > 1 && keyword == "oneOf" => return wrong(format!("{more} of oneOf fit")),
                    _ => fit.into_iter().flatten().for_each(|fields| described.join(fields)),
                }
            }
            unknown => return Err(format!("{place}: the keyword {unknown} is not understood here")),
        }
    }
    // Nothing is said of its fields: they are free.
    Ok(if says_fields { described } else { Described::All })
}

fn resolve<'s>(root: &'s Value, reference: &Value) -> Result<&'s Value, String> {
    let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
    pointer.and_then(|pointer| root.pointer(pointer)).ok_or_else(|| format!("{reference} leads nowhere"))
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_fits_fits_and_each_mistake_is_found() {
        let schema = json!({
            "$defs": {"Who": {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}}, "required": ["name"]}},
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 0, "maximum": 9},
                "who": {"anyOf": [{"$ref": "#/$defs/Who"}, {"type": "null"}]},
                "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": true},
                "free": {"type": "object"},
                "map": {"type": "object", "additionalProperties": {"type": "boolean"}}
            },
            "oneOf": [
                {"properties": {"kind": {"const": "x"}}, "required": ["kind"]},
                {"properties": {"kind": {"const": "y"}, "extra": true}, "required": ["kind"]}
            ],
            "required": ["n"]
        });
        for fits in [
            json!({"n": 0, "kind": "x"}),
            json!({"n": 9, "kind": "y", "extra": {"any": 1}, "who": {"name": "한"}, "tags": ["a", "b"]}),
            json!({"n": 1, "kind": "x", "who": null, "free": {"any": [1]}, "map": {"p": true}}),
        ] {
            assert_eq!(check(&schema, &fits), Ok(()), "{fits}");
        }
        for (wrong, why) in [
            (json!([]), ""),
            (json!({"kind": "x"}), "n is missing"),
            (json!({"n": -1, "kind": "x"}), "/n: at least 0"),
            (json!({"n": 10, "kind": "x"}), "/n: at most 9"),
            (json!({"n": 1.5, "kind": "x"}), "integer"),
            (json!({"n": 1, "kind": "z"}), "none of oneOf fits"),
            (json!({"n": 1, "kind": "x", "extra": 1}), "/extra: the schema does not describe it"),
            (json!({"n": 1, "kind": "x", "who": {"name": ""}}), "at least 1 characters"),
            (json!({"n": 1, "kind": "x", "who": {"name": "a", "age": 3}}), "/who/age: the schema does not describe it"),
            (json!({"n": 1, "kind": "x", "tags": ["a", "a"]}), "twice"),
            (json!({"n": 1, "kind": "x", "tags": ["c"]}), "/tags/0: one of"),
            (json!({"n": 1, "kind": "x", "map": {"p": 1}}), "/map/p"),
        ] {
            let told = check(&schema, &wrong).unwrap_err();
            assert!(told.contains(why), "{wrong}: {told}");
        }
        assert!(check(&json!({"if": true}), &json!(1)).unwrap_err().contains("not understood"));
        assert!(check(&json!({"$ref": "#/$defs/No"}), &json!(1)).unwrap_err().contains("leads nowhere"));
    }
}
