//! Which provider a model's name means, where it is reached, and with which key. No key leaves this module but into a
//! [`Secret`].

use crate::cli::KeyOf;
use crate::failure::Failure;
use crate::record::Recorder;
use crate::settings::misuse;
use crate::{key, keyring};
use gjc_agent::{Choice, Models};
use gjc_entry::{BoxFuture, Env, ModelRef, Params};
use gjc_llm::scripted::ScriptedModel;
use gjc_llm::{HttpConfig, Provider, Recording, Secret, anthropic, openai, openai_responses, scripted};
use gjc_protocol::Refusal;
use gjc_settings::{Address, CommandLine, Effective, Origin};
use std::path::Path;
use std::sync::Arc;

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
    /// The key, to leave it out of what is recorded.
    pub(crate) key: Option<Secret>,
}

/// The name that means a model: what stands behind `--model`. The wire of OpenAI's models is part of their name.
pub(crate) fn name_of(model: &ModelRef) -> String {
    match model.api.as_str() {
        openai_responses::API => format!("openai-responses/{}", model.id),
        _ => format!("{}/{}", model.provider, model.id),
    }
}

/// The model of a name, reached where the settings say or where its provider is.
pub(crate) async fn choose(env: &Env, named: &str, effective: &Effective) -> Result<Chosen, Failure> {
    let wrong = || {
        Failure::usage(format!("\"{named}\" names no model")).hint(
            "use anthropic/<model>, openai/<model> (Chat Completions), openai-responses/<model>, or scripted/<file>.jsonl to play a script",
        )
    };
    let (name, id) = named.split_once('/').filter(|(_, id)| !id.is_empty()).ok_or_else(wrong)?;
    let model = |provider: &str, api: &str| ModelRef { provider: provider.into(), id: id.into(), api: api.into() };
    let clock = || Arc::clone(&env.clock);
    let (provider, model, max_tokens, key): (Arc<dyn Provider>, _, _, _) = match name {
        "anthropic" => {
            let settings = &effective.settings.anthropic;
            let key = key(env, effective, KeyOf::Anthropic, settings.key_command.as_ref()).await?;
            let url = settings.url.as_ref().map(|url| url.0.as_str());
            if key.is_none() && url.is_none() {
                return Err(no_key(KeyOf::Anthropic));
            }
            let config = HttpConfig { key: key.clone(), ..HttpConfig::new(url.unwrap_or(anthropic::URL)) };
            (Arc::new(anthropic::remote(config, clock())), model("anthropic", anthropic::API), 32_000, key)
        }
        "openai" => {
            let config = openai_config(env, effective).await?;
            let key = config.key.clone();
            (Arc::new(openai::remote(config, clock())), model("openai", openai::API), 0, key)
        }
        "openai-responses" => {
            let config = openai_config(env, effective).await?;
            let key = config.key.clone();
            (Arc::new(openai_responses::remote(config, clock())), model("openai", openai_responses::API), 0, key)
        }
        "scripted" => {
            let script = ScriptedModel::load(Path::new(id)).map_err(|error| Failure::new(error.to_string()))?;
            let player = script.player([scripted::MAIN], clock());
            (Arc::new(player), model("scripted", scripted::API), 32_000, None)
        }
        _ => return Err(wrong()),
    };
    Ok(Chosen { provider, model, max_tokens, key })
}

/// The models that a person may change to while a session runs, by the settings that it began with.
pub(crate) struct Available {
    pub(crate) env: Env,
    pub(crate) effective: Arc<Effective>,
    pub(crate) recorder: Option<Recorder>,
}

impl Models for Available {
    fn choose(&self, name: &str) -> BoxFuture<'static, Result<Choice, Refusal>> {
        let (env, effective, recorder) = (self.env.clone(), Arc::clone(&self.effective), self.recorder.clone());
        let name = name.to_owned();
        Box::pin(async move {
            let chosen = choose(&env, &name, &effective).await.map_err(|failure| failure.refusal("unknown_model"))?;
            Ok(chosen.recorded(recorder.as_ref()))
        })
    }
}

impl Chosen {
    /// As a session has it, with what it says written down where that is wanted.
    pub(crate) fn recorded(self, recorder: Option<&Recorder>) -> Choice {
        let Self { provider, model, max_tokens, key } = self;
        let provider = match recorder {
            Some(recorder) => Arc::new(Recording::new(provider, Arc::clone(&recorder.lines), recorder.mask(key))),
            None => provider,
        };
        Choice { provider, model, params: Params { max_tokens } }
    }
}

/// The variable of a provider's key.
pub(crate) fn variable_of(provider: KeyOf) -> &'static str {
    match provider {
        KeyOf::Anthropic => ANTHROPIC_KEY,
        KeyOf::Openai => OPENAI_KEY,
    }
}

/// There is none, and these are the ways to give one.
pub(crate) fn no_key(provider: KeyOf) -> Failure {
    let name = provider.name();
    Failure::new(format!("there is no key for {name}")).hint(match provider {
        KeyOf::Anthropic => {
            "set ANTHROPIC_API_KEY, give it to the keyring (gjc config key set anthropic), set providers.anthropic.keyCommand, or name a server that needs none with --provider-url"
        }
        KeyOf::Openai => {
            "set OPENAI_API_KEY (to any word for a server that asks for none), give it to the keyring (gjc config key set openai), set providers.openai.keyCommand, or name a server on this machine with --provider-url"
        }
    })
}

/// A provider's key: the variable that other programs know too, else the keyring's, else what the person's command prints.
async fn key(
    env: &Env,
    effective: &Effective,
    provider: KeyOf,
    command: Option<&CommandLine>,
) -> Result<Option<Secret>, Failure> {
    if let Some(key) = env.vars.get(variable_of(provider)) {
        return Ok(Some(Secret::new(key)));
    }
    let provider = provider.name();
    match (keyring::find(env, provider), command) {
        (Some(key), _) => Ok(Some(key)),
        (None, Some(command)) => {
            let origin = effective.get(&format!("providers.{provider}.keyCommand")).map(|layered| &layered.origin);
            key::ask(env, provider, command, origin.unwrap_or(&Origin::Default)).await.map(Some)
        }
        (None, None) => Ok(None),
    }
}

/// Where a server of OpenAI's wires is reached: the settings, OPENAI_BASE_URL among them, else OpenAI.
async fn openai_config(env: &Env, effective: &Effective) -> Result<HttpConfig, Failure> {
    let settings = &effective.settings.openai;
    // A variable that is no address is no layer of the settings; going on to OpenAI with it would be worse than saying so.
    let variable = || env.vars.get("OPENAI_BASE_URL").filter(|url| !url.is_empty());
    if let (None, Some(url)) = (&settings.url, variable()) {
        Address::check(url).map_err(|(sentence, hint)| misuse((format!("OPENAI_BASE_URL: {sentence}"), hint)))?;
    }
    let url = settings.url.as_ref().map_or(openai::URL, |url| url.0.as_str());
    let key = key(env, effective, KeyOf::Openai, settings.key_command.as_ref()).await?;
    let config = HttpConfig { key, ..HttpConfig::new(url) };
    if config.key.is_none() && !config.is_loopback() {
        return Err(no_key(KeyOf::Openai));
    }
    Ok(config)
}
