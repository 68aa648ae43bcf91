//! Which provider a model's name means, where it is reached, and with which key. No key leaves this module but into a
//! [`Secret`].

use crate::failure::Failure;
use gjc_entry::{Env, ModelRef};
use gjc_llm::anthropic::Anthropic;
use gjc_llm::openai::OpenAi;
use gjc_llm::openai_responses::OpenAiResponses;
use gjc_llm::scripted::ScriptedModel;
use gjc_llm::{HttpConfig, Provider, Secret, anthropic, openai, openai_responses, scripted};
use std::path::Path;
use std::sync::Arc;

/// Who answers when nobody was named.
pub(crate) const DEFAULT_MODEL: &str = "anthropic/claude-sonnet-4-5";

/// Variables that hold keys of gjc itself.
pub(crate) const KEYS: &[&str] = &[ANTHROPIC_KEY, OPENAI_KEY];

const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// A model, and who answers for it.
pub(crate) struct Chosen {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) model: ModelRef,
    /// The most tokens of one answer; 0 leaves it to the server. The Messages API wants a number; servers of the other two have a
    /// limit for each model, and refuse a number above it.
    pub(crate) max_tokens: u32,
}

/// The name that means a model: what stands behind `--model`. The wire of OpenAI's models is part of their name.
pub(crate) fn name_of(model: &ModelRef) -> String {
    match model.api.as_str() {
        openai_responses::API => format!("openai-responses/{}", model.id),
        _ => format!("{}/{}", model.provider, model.id),
    }
}

/// The model of a name, reached at `url` or where its provider is.
pub(crate) fn choose(env: &Env, named: &str, url: Option<&str>) -> Result<Chosen, Failure> {
    if let Some(url) = url.filter(|url| !(url.starts_with("http://") || url.starts_with("https://"))) {
        return Err(Failure::usage(format!("\"{url}\" is no address of a provider"))
            .hint("it begins with http:// or https://, as in --provider-url http://127.0.0.1:8080"));
    }
    let wrong = || {
        Failure::usage(format!("\"{named}\" names no model")).hint(
            "use anthropic/<model>, openai/<model> (Chat Completions), openai-responses/<model>, or scripted/<file>.jsonl to play a script",
        )
    };
    let (name, id) = named.split_once('/').filter(|(_, id)| !id.is_empty()).ok_or_else(wrong)?;
    let model = |provider: &str, api: &str| ModelRef { provider: provider.into(), id: id.into(), api: api.into() };
    let clock = || Arc::clone(&env.clock);
    let (provider, model, max_tokens): (Arc<dyn Provider>, _, _) = match name {
        "anthropic" => {
            let key = env.vars.get(ANTHROPIC_KEY).map(Secret::new);
            if key.is_none() && url.is_none() {
                return Err(Failure::new("there is no key for anthropic")
                    .hint("set ANTHROPIC_API_KEY, or name a server that needs none with --provider-url"));
            }
            let config = HttpConfig { key, ..HttpConfig::new(url.unwrap_or(anthropic::URL)) };
            (Arc::new(Anthropic::new(config, clock())), model("anthropic", anthropic::API), 32_000)
        }
        "openai" => (Arc::new(OpenAi::new(openai_config(env, url)?, clock())), model("openai", openai::API), 0),
        "openai-responses" => {
            let provider = OpenAiResponses::new(openai_config(env, url)?, clock());
            (Arc::new(provider), model("openai", openai_responses::API), 0)
        }
        "scripted" => {
            let script = ScriptedModel::load(Path::new(id)).map_err(|error| Failure::new(error.to_string()))?;
            let player = script.player([scripted::MAIN], clock());
            (Arc::new(player), model("scripted", scripted::API), 32_000)
        }
        _ => return Err(wrong()),
    };
    Ok(Chosen { provider, model, max_tokens })
}

/// Where a server of OpenAI's wires is reached: `--provider-url`, else OPENAI_BASE_URL as other programs know it, else OpenAI.
fn openai_config(env: &Env, url: Option<&str>) -> Result<HttpConfig, Failure> {
    let url = url.or_else(|| env.vars.get("OPENAI_BASE_URL")).unwrap_or(openai::URL);
    let config = HttpConfig { key: env.vars.get(OPENAI_KEY).map(Secret::new), ..HttpConfig::new(url) };
    if config.key.is_none() && !config.is_loopback() {
        return Err(Failure::new("there is no key for openai").hint(
            "set OPENAI_API_KEY (to any word for a server that asks for none), or name a server on this machine with --provider-url",
        ));
    }
    Ok(config)
}
