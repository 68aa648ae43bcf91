//! A setting that is a map: prices by model.

use gjc_settings::{Document, ModelPrice, Plain, Scope, Settings, find, merge, set};
use proptest::prelude::*;
use std::path::Path;

fn read(text: &str) -> Result<Settings, String> {
    let document = Document::parse(Path::new("c"), text.as_bytes(), Scope::User).map_err(|told| told.to_string())?;
    Ok(merge(Some(&document), None, &[]).settings)
}

#[test]
fn prices_are_dollars_for_a_million_tokens_by_model() {
    let text = "prices:\n  gpt-4.1: {input: 2, output: 8.25, cacheRead: 0.5}\n  \"z-ai/glm:한글\":\n    input: 0\n    output: 0.000001\n";
    let prices = read(text).unwrap().models.prices.0;
    let first = ModelPrice { input: 2_000_000, output: 8_250_000, cache_read: 500_000, cache_write: 2_000_000 };
    let second = ModelPrice { input: 0, output: 1, cache_read: 0, cache_write: 0 };
    assert_eq!(prices, [("gpt-4.1".to_owned(), first), ("z-ai/glm:한글".to_owned(), second)]);
}

#[test]
fn what_is_no_price_is_told_with_its_place() {
    for (text, sentence, place) in [
        ("prices: 3", "a number stands here", "1:9"),
        ("prices: {m: 3}", "the price of a model is a map", "1:13"),
        ("prices: {m: {input: 3}}", "a price needs input and output", "1:13"),
        ("prices: {m: {input: 3, output: many}}", "\"many\" is no price", "1:32"),
        ("prices: {m: {input: -1, output: 2}}", "\"-1\" is no price", "1:21"),
        ("prices: {m: {input: 1e3, output: 2}}", "\"1e3\" is no price", "1:21"),
        ("prices: {m: {input: 1., output: 2}}", "is no price", "1:21"),
        ("prices: {m: {input: 0.1234567, output: 2}}", "is no price", "1:21"),
        ("prices: {m: {input: 1000001, output: 2}}", "is no price", "1:21"),
        ("prices: {m: {input: 1, outputs: 2}}", "there is no part of a price \"outputs\"", "1:24"),
    ] {
        let told = read(text).unwrap_err();
        assert!(told.contains(sentence) && told.contains(&format!("c:{place}:")), "{text}\n{told}");
    }
}

#[test]
fn a_map_is_set_on_one_line_and_nothing_else_changes() {
    let path = Path::new("c");
    let before = "# mine\nretry:\n  attempts: 3 # three\n";
    let one = set(path, before, "prices", "{qwen3: {input: 0.1, output: 0.2}}").unwrap();
    assert_eq!(
        one,
        format!("{before}prices: {{qwen3: {{input: 0.1, output: 0.2, cacheRead: 0.1, cacheWrite: 0.1}}}}\n")
    );
    let two = set(path, &one, "prices", "{m: {input: 3, output: 15}}").unwrap();
    assert_eq!(read(&two).unwrap().models.prices.0.len(), 1);
    assert!(two.starts_with(before) && !two.contains("qwen3"), "{two}");
    // Over several lines it is a person's to edit.
    let by_hand = set(path, "prices:\n  m: {input: 3, output: 15}\n", "prices", "{}").unwrap_err().to_string();
    assert!(by_hand.contains("line 1") || by_hand.contains("line 2"), "{by_hand}");
    assert!(set(path, before, "prices", "{m: [").is_err());
}

#[test]
fn a_wait_is_a_time_or_off() {
    let wait = |text: &str| read(&format!("retry: {{waitForQuota: {text}}}")).map(|found| found.retry.wait_for_quota.0);
    assert_eq!(wait("off").unwrap(), None);
    assert_eq!(wait("\"off\"").unwrap(), None);
    assert_eq!(wait("2h").unwrap().map(|wait| wait.0), Some(7_200_000));
    for bad in ["soon", "1ms", "200h", "true", "0"] {
        assert!(wait(bad).unwrap_err().contains("(or: off)"), "{bad}");
    }
}

proptest! {
    #[test]
    fn prices_in_their_usual_form_are_read_as_the_same(
        prices in prop::collection::btree_map("[a-z가-힣/:. \"'#-]{1,12}", prop::array::uniform4(0u64..2_000_000_000), 0..4)
    ) {
        let decimal = |millionths: u64| Plain::Decimal(format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000));
        let names = ["input", "output", "cacheRead", "cacheWrite"];
        let one = |numbers: [u64; 4]| Plain::Map(names.map(str::to_owned).into_iter().zip(numbers.map(decimal)).collect());
        let plain = Plain::Map(prices.iter().map(|(model, numbers)| (model.clone(), one(*numbers))).collect());
        let found = read(&format!("prices: {}\n", plain.yaml())).unwrap().models.prices.0;
        prop_assert_eq!(found.len(), prices.len());
        for (model, price) in found {
            let ModelPrice { input, output, cache_read, cache_write } = price;
            prop_assert_eq!(&prices[&model], &[input, output, cache_read, cache_write]);
        }
        prop_assert!(find("prices").is_some());
    }
}
