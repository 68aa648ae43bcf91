//! What an answer costs, in US dollars. Prices are those of the providers for requests of the standard tier; a model that is not
//! known here costs nothing that could be told, and is never priced like another.
//!
//! All arithmetic is in whole [`MICRO`] units; a sum becomes a floating-point number once, at its end, so that the same tokens
//! always cost the same and the parts of a cost add up to its total.

use gjc_entry::message::{Cost, Usage};
use gjc_entry::{ModelRef, Tier};
use std::collections::BTreeMap;

/// Units of a price in one dollar for a million tokens: prices have at most six decimals.
pub const MICRO: u64 = 1_000_000;

/// What a million tokens cost, each in millionths of a dollar ([`MICRO`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Fresh input.
    pub input: u64,
    /// Output, thinking included.
    pub output: u64,
    /// Input that was read from a cache.
    pub cache_read: u64,
    /// Input that was written to one.
    pub cache_write: u64,
}

impl Rates {
    /// The cost of what was used.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Cost {
        let part = |tokens: u64, rate: u64| u128::from(tokens) * u128::from(rate);
        let parts = [
            part(usage.input, self.input),
            part(usage.output, self.output),
            part(usage.cache_read, self.cache_read),
            part(usage.cache_write, self.cache_write),
        ];
        let total = parts.into_iter().fold(0, u128::saturating_add);
        let [input, output, cache_read, cache_write] = parts.map(dollars);
        Cost { input, output, cache_read, cache_write, total: dollars(total) }
    }
}

/// Millionths of a dollar for a million tokens, times tokens. The quotient is the nearest number to the exact one as long as
/// the sum stays below 9,000 dollars, and next to it above.
fn dollars(units: u128) -> f64 {
    units as f64 / 1e12
}

/// The prices of the models: those that a person has set, then those that are known.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    own: BTreeMap<String, Rates>,
}

impl Prices {
    /// With prices of a person's own, by the model's name without its provider. They stand above the known ones, in every tier.
    #[must_use]
    pub fn with(own: impl IntoIterator<Item = (String, Rates)>) -> Self {
        Self { own: own.into_iter().collect() }
    }

    /// What an answer of a model costs; `None` where its price is not known.
    #[must_use]
    pub fn cost(&self, model: &ModelRef, tier: Tier, usage: &Usage) -> Option<Cost> {
        Some(self.rates(model, tier, usage)?.cost(usage))
    }

    fn rates(&self, model: &ModelRef, tier: Tier, usage: &Usage) -> Option<Rates> {
        if let Some(own) = self.own.get(&model.id).or_else(|| self.own.get(undated(&model.id)?)) {
            return Some(*own);
        }
        // Other tiers have other prices, and which of them was used is the server's choice.
        if !matches!(tier, Tier::Auto | Tier::Default) {
            return None;
        }
        let known = match model.provider.as_str() {
            "anthropic" => ANTHROPIC,
            "openai" => OPENAI,
            _ => return None,
        };
        let found = |id: &str| known.iter().find(|price| price.model == id);
        let price = found(&model.id).or_else(|| found(undated(&model.id)?))?;
        let prompt = [usage.input, usage.cache_read, usage.cache_write].into_iter().fold(0, u64::saturating_add);
        Some(match price.long {
            Some((above, rates)) if prompt > above => rates,
            _ => price.rates,
        })
    }
}

/// The name without the date of its release: `-20250929`, `-2025-08-07`.
fn undated(id: &str) -> Option<&str> {
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let (before, last) = id.rsplit_once('-')?;
    if digits(last, 8) {
        return Some(before);
    }
    let (before, month) = before.rsplit_once('-').filter(|_| digits(last, 2))?;
    let (before, year) = before.rsplit_once('-').filter(|_| digits(month, 2))?;
    digits(year, 4).then_some(before)
}

/// A known price.
struct Price {
    model: &'static str,
    rates: Rates,
    /// What all tokens of a request cost whose prompt, cached parts included, has more tokens than this.
    long: Option<(u64, Rates)>,
}

/// A price in thousandths of a dollar: input, output, cache read, cache write.
const fn price(model: &'static str, rates: [u64; 4]) -> Price {
    Price { model, rates: thousandths(rates), long: None }
}

impl Price {
    const fn above(self, prompt: u64, rates: [u64; 4]) -> Self {
        Self { long: Some((prompt, thousandths(rates))), ..self }
    }
}

const fn thousandths([input, output, cache_read, cache_write]: [u64; 4]) -> Rates {
    const ONE: u64 = MICRO / 1_000;
    Rates { input: input * ONE, output: output * ONE, cache_read: cache_read * ONE, cache_write: cache_write * ONE }
}

/// <https://platform.claude.com/docs/en/about-claude/pricing>, as of November 2026. Cache writes are those that live for five
/// minutes, the only ones that are asked for here.
const ANTHROPIC: &[Price] = &[
    price("claude-fable-5-1", [10_000, 50_000, 250, 12_500]),
    price("claude-fable-5", [10_000, 50_000, 1_000, 12_500]),
    price("claude-opus-5-5", [4_000, 20_000, 200, 5_000]),
    price("claude-opus-5", [5_000, 25_000, 500, 6_250]),
    price("claude-opus-4-8", [5_000, 25_000, 500, 6_250]),
    price("claude-opus-4-7", [5_000, 25_000, 500, 6_250]),
    price("claude-opus-4-6", [5_000, 25_000, 500, 6_250]),
    price("claude-opus-4-5", [5_000, 25_000, 500, 6_250]),
    price("claude-opus-4-1", [15_000, 75_000, 1_500, 18_750]),
    price("claude-opus-4-0", [15_000, 75_000, 1_500, 18_750]),
    price("claude-opus-4", [15_000, 75_000, 1_500, 18_750]),
    price("claude-sonnet-5-5", [2_000, 10_000, 100, 2_500]),
    price("claude-sonnet-5", [2_000, 10_000, 200, 2_500]),
    price("claude-sonnet-4-6", [3_000, 15_000, 300, 3_750]),
    price("claude-sonnet-4-5", [3_000, 15_000, 300, 3_750]),
    price("claude-sonnet-4-0", [3_000, 15_000, 300, 3_750]),
    price("claude-sonnet-4", [3_000, 15_000, 300, 3_750]),
    price("claude-haiku-5-5", [100, 500, 10, 125]).above(100_000, [500, 2_500, 50, 625]),
    price("claude-haiku-4-5", [1_000, 5_000, 100, 1_250]),
    price("claude-3-5-haiku", [800, 4_000, 80, 1_000]),
];

/// <https://developers.openai.com/api/docs/pricing>, standard tier, as of November 2026. Where the page has no price for a cache
/// write it costs what input costs.
const OPENAI: &[Price] = &[
    price("gpt-6.1-sol", [2_000, 10_000, 100, 2_500]).above(LONG, [4_000, 15_000, 200, 5_000]),
    price("gpt-6-astra", [10_000, 50_000, 1_000, 12_500]).above(LONG, [20_000, 75_000, 2_000, 25_000]),
    price("gpt-6-sol", [2_000, 10_000, 200, 2_500]).above(LONG, [4_000, 15_000, 400, 5_000]),
    price("gpt-6-luna", [100, 500, 10, 125]).above(LONG, [200, 750, 20, 250]),
    price("gpt-5.3-codex", [1_750, 14_000, 175, 1_750]),
    price("gpt-5.2", [1_750, 14_000, 175, 1_750]),
    price("gpt-5.2-codex", [1_750, 14_000, 175, 1_750]),
    price("gpt-5.1", [1_250, 10_000, 125, 1_250]),
    price("gpt-5.1-codex", [1_250, 10_000, 125, 1_250]),
    price("gpt-5", [1_250, 10_000, 125, 1_250]),
    price("gpt-5-codex", [1_250, 10_000, 125, 1_250]),
    price("gpt-5-mini", [250, 2_000, 25, 250]),
    price("gpt-5-nano", [50, 400, 5, 50]),
    price("gpt-4.1", [2_000, 8_000, 500, 2_000]),
    price("gpt-4.1-mini", [400, 1_600, 100, 400]),
    price("gpt-4.1-nano", [100, 400, 25, 100]),
    price("gpt-4o", [2_500, 10_000, 1_250, 2_500]),
    price("gpt-4o-mini", [150, 600, 75, 150]),
    price("o4-mini", [1_100, 4_400, 275, 1_100]),
    price("o3", [2_000, 8_000, 500, 2_000]),
    price("o3-mini", [1_100, 4_400, 550, 1_100]),
];

/// Longer prompts cost more with OpenAI's models that take them.
const LONG: u64 = 272_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn model(provider: &str, id: &str) -> ModelRef {
        ModelRef { provider: provider.into(), id: id.into(), api: "any".into() }
    }

    fn usage(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
        Usage { input, output, cache_read, cache_write, ..Usage::default() }
    }

    fn total(provider: &str, id: &str, tier: Tier, usage: &Usage) -> Option<f64> {
        Prices::default().cost(&model(provider, id), tier, usage).map(|cost| cost.total)
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let cost = Prices::default()
            .cost(&model("anthropic", "claude-sonnet-4-5"), Tier::Auto, &usage(1_000_000, 2_000, 10_000, 100))
            .unwrap();
        let expected = Cost { input: 3.0, output: 0.03, cache_read: 0.003, cache_write: 0.000_375, total: 3.033_375 };
        assert_eq!(cost, expected);
    }

    #[test]
    fn a_model_is_known_by_its_name_and_by_its_name_with_a_date() {
        let one = usage(1_000_000, 0, 0, 0);
        let of = |provider, id| total(provider, id, Tier::Default, &one);
        assert_eq!(of("anthropic", "claude-sonnet-4-5-20250929"), Some(3.0));
        assert_eq!(of("anthropic", "claude-opus-4-20250514"), Some(15.0));
        assert_eq!(of("openai", "gpt-5-2025-08-07"), Some(1.25));
        assert_eq!(of("openai", "gpt-4o-mini-2024-07-18"), Some(0.15));
        for (provider, id) in [
            ("anthropic", "claude-sonnet-4-5-preview"),
            ("anthropic", "claude-sonnet-9"),
            ("anthropic", "gpt-5"),
            ("openai", "gpt-5-pro"),
            ("openai", "gpt-5-2025-08"),
            ("openai", "gpt-5-12345678x"),
            ("openai", "openai/gpt-5"),
            ("openai", "한글-20250929"),
            ("openai", ""),
            ("openai", "-"),
            ("scripted", "gpt-5"),
        ] {
            assert_eq!(of(provider, id), None, "{provider}/{id} has no price: it is never that of another");
        }
    }

    #[test]
    fn a_long_prompt_has_its_own_price_for_all_tokens() {
        let of = |usage: &Usage| total("anthropic", "claude-haiku-5-5", Tier::Auto, usage).unwrap();
        assert_eq!(of(&usage(50_000, 1_000, 50_000, 0)), 0.006);
        assert_eq!(of(&usage(50_001, 1_000, 50_000, 0)), 0.030_000_5);
    }

    #[test]
    fn other_tiers_are_not_priced_like_the_standard_one() {
        let one = usage(1, 1, 1, 1);
        for tier in [Tier::Flex, Tier::Priority, Tier::Scale] {
            assert_eq!(total("openai", "gpt-5", tier, &one), None);
        }
        let own = Rates { input: 1, output: 2, cache_read: 3, cache_write: 4 };
        let prices = Prices::with([("gpt-5".to_owned(), own), ("qwen3".to_owned(), own)]);
        let cost = |id, tier| prices.cost(&model("openai", id), tier, &usage(MICRO, 0, 0, MICRO)).unwrap().total;
        assert_eq!(cost("gpt-5", Tier::Flex), 0.000_005, "a person's own price holds in each");
        assert_eq!((cost("qwen3", Tier::Auto), cost("qwen3-20260101", Tier::Auto)), (0.000_005, 0.000_005));
    }

    #[test]
    fn no_model_stands_in_a_table_twice() {
        for table in [ANTHROPIC, OPENAI] {
            for (nth, price) in table.iter().enumerate() {
                assert!(table[..nth].iter().all(|other| other.model != price.model), "{}", price.model);
                assert!(price.rates.cache_read <= price.rates.input && price.rates.input < price.rates.output);
            }
        }
    }

    proptest! {
        #[test]
        fn the_parts_of_a_cost_add_up_whatever_a_server_counts(
            tokens in prop::array::uniform4(prop_oneof![0u64..10_000_000, Just(u64::MAX)])
        ) {
            let [input, output, read, write] = tokens;
            let cost = ANTHROPIC[0].rates.cost(&usage(input, output, read, write));
            let sum = cost.input + cost.output + cost.cache_read + cost.cache_write;
            prop_assert!(cost.total.is_finite() && (cost.total - sum).abs() <= sum * 1e-12, "{cost:?}");
        }
    }
}
