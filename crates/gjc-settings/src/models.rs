//! Kinds of values that have to do with models: prices, a time or nothing.

use crate::value::{Plain, Value, Wrong, one_of, wrong_kind};
use crate::yaml::{Content, Node, Style, brief, parse};
use serde_json::{Value as Json, json};
use std::path::Path;

/// A value, or the word `off`, which is less than any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrOff<T>(pub Option<T>);

const OFF: &str = "off";

impl<T: Value> Value for OrOff<T> {
    fn wanted() -> String {
        format!("{OFF}, or {}", T::wanted())
    }

    fn schema() -> Json {
        json!({"anyOf": [{"const": OFF}, T::schema()]})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        match &node.content {
            Content::Scalar { text, style: Style::Plain | Style::Quoted } if text == OFF => Ok(Self(None)),
            _ => match T::read(node) {
                Ok(value) => Ok(Self(Some(value))),
                Err(wrong) => Err(wrong.or_off(OFF)),
            },
        }
    }

    fn write(&self) -> Plain {
        self.0.as_ref().map_or_else(|| Plain::Text(OFF.into()), T::write)
    }

    fn typed(word: &str) -> Node {
        T::typed(word)
    }
}

/// What a million tokens of one model cost, in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelPrice {
    /// Fresh input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to one.
    pub cache_write: u64,
}

/// Prices by model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PriceList(pub Vec<(String, ModelPrice)>);

const FORM: &str = "write a model's name, and below it, indented, lines such as input: 3 and output: 15";

/// The names within a price; the first two are needed.
const PARTS: [&str; 4] = ["input", "output", "cacheRead", "cacheWrite"];

impl Value for PriceList {
    fn wanted() -> String {
        "a map of models, each with input, output and, if they differ from input, cacheRead and cacheWrite".into()
    }

    fn schema() -> Json {
        let number = json!({"type": "number", "minimum": 0, "maximum": MOST / MILLION});
        let parts: serde_json::Map<String, Json> =
            PARTS.iter().map(|name| ((*name).to_owned(), number.clone())).collect();
        json!({"type": "object", "additionalProperties":
            {"type": "object", "additionalProperties": false, "required": PARTS[..2], "properties": parts}})
    }

    fn read(node: &Node) -> Result<Self, Wrong> {
        let Content::Map { pairs, .. } = &node.content else {
            let wrong = wrong_kind::<Self>(node);
            return Err(wrong.hint(FORM));
        };
        let price =
            |node: &Node| price(node).map_err(|wrong| Wrong { at: wrong.at.or(Some(node.bytes.start)), ..wrong });
        pairs.iter().map(|(key, node)| Ok((key.name.clone(), price(node)?))).collect::<Result<_, _>>().map(Self)
    }

    fn write(&self) -> Plain {
        let decimal = |(name, number): (&str, u64)| (name.to_owned(), Plain::Decimal(decimal(number)));
        let one = |price: &ModelPrice| {
            let numbers = [price.input, price.output, price.cache_read, price.cache_write];
            Plain::Map(PARTS.into_iter().zip(numbers).map(decimal).collect())
        };
        Plain::Map(self.0.iter().map(|(model, price)| (model.clone(), one(price))).collect())
    }

    /// As it would stand in a file, on one line.
    fn typed(word: &str) -> Node {
        let as_text =
            || Node { bytes: 0..word.len(), content: Content::Scalar { text: word.into(), style: Style::Quoted } };
        parse(Path::new("prices"), word).ok().flatten().unwrap_or_else(as_text)
    }
}

fn price(node: &Node) -> Result<ModelPrice, Wrong> {
    let Content::Map { pairs, .. } = &node.content else {
        return Err(Wrong::new("the price of a model is a map").hint(FORM));
    };
    let mut numbers = [None; PARTS.len()];
    for (key, node) in pairs {
        one_of("part of a price", &key.name, &PARTS).map_err(|wrong| Wrong { at: Some(key.bytes.start), ..wrong })?;
        let number = dollars(node).map_err(|wrong| Wrong { at: Some(node.bytes.start), ..wrong })?;
        for (part, slot) in PARTS.iter().zip(&mut numbers) {
            if *part == key.name {
                *slot = Some(number);
            }
        }
    }
    let [Some(input), Some(output), cache_read, cache_write] = numbers else {
        return Err(Wrong::new("a price needs input and output"));
    };
    // A cache is made of input: what is said of input alone holds for it too.
    Ok(ModelPrice { input, output, cache_read: cache_read.unwrap_or(input), cache_write: cache_write.unwrap_or(input) })
}

const MILLION: u64 = 1_000_000;
/// The highest price, in millionths of a dollar.
const MOST: u64 = 1_000_000 * MILLION;

/// Dollars with at most six decimals, as millionths.
fn dollars(node: &Node) -> Result<u64, Wrong> {
    let wrong = || {
        Wrong::new("this is no price")
            .hint("dollars for a million tokens, at most six decimals and a million of them: 0, 3, 0.25")
    };
    let Content::Scalar { text, style: Style::Plain } = &node.content else { return Err(wrong()) };
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| (1..=7).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 6 {
        return Err(Wrong { sentence: format!("\"{}\" is no price", brief(text)), ..wrong() });
    }
    let millionths = format!("{whole}{part:0<6}").parse().map_err(|_| wrong())?;
    if millionths <= MOST { Ok(millionths) } else { Err(wrong()) }
}

/// Without the zeros that say nothing.
fn decimal(millionths: u64) -> String {
    let number = format!("{}.{:06}", millionths / MILLION, millionths % MILLION);
    number.trim_end_matches('0').trim_end_matches('.').into()
}
