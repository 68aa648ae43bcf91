//! `ask`: a question to the person.

use crate::input::{Form, schema};
use crate::work::failed;
use crate::{Effects, Output, Recovery, Run, Shown, Tool, ToolCtx, ToolOutput, ToolSpec};
use async_trait::async_trait;
use gjc_entry::{Block, Label, OpId, Origin};
use gjc_flow::{Call, Permits};
use gjc_protocol::{Answer, Choice, Question, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

const FORM: Form = Form {
    tool: "ask",
    example: r#"{"question": "Which database?", "choices": [{"label": "SQLite"}, {"label": "Postgres"}]}"#,
};

/// The most choices of a question.
const MOST_CHOICES: usize = 20;
/// Bytes of a question, and of each text of a choice: more is no question.
const LONGEST: usize = 16 * 1024;

/// Asks the person, and waits for their answer.
///
/// The answer is the person's own words ([`Origin::Ask`]): public, trusted, and protected like everything that a person
/// says. Where nobody can be asked the tool is not shown. Details: `{choices: [place]}`; own words are the content, once.
#[derive(Debug, Clone, Copy)]
pub struct Ask;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The question, with all that is needed to answer it.
    question: String,
    /// What can be chosen. Without choices the answer is free.
    #[serde(default)]
    choices: Vec<Offered>,
    /// Several may be chosen.
    several: Option<bool>,
    /// With choices: an answer in own words is taken as well; true if left out.
    free: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Offered {
    /// The choice, in a few words.
    label: String,
    /// What it means.
    about: Option<String>,
}

fn parse(input: &RawValue) -> Result<Question, Refusal> {
    let Input { question, choices, several, free } = FORM.parse(input)?;
    if question.trim().is_empty() {
        return Err(FORM.wrong("`question` is empty"));
    }
    if choices.len() > MOST_CHOICES {
        return Err(FORM.wrong(format!("`choices` has more than {MOST_CHOICES}")));
    }
    if choices.is_empty() && free == Some(false) {
        return Err(FORM.wrong("without `choices` the answer must be free"));
    }
    let texts = choices.iter().flat_map(|choice| [Some(&choice.label), choice.about.as_ref()]).flatten();
    if texts.chain([&question]).any(|text| text.len() > LONGEST) {
        return Err(FORM.wrong(format!("a text is longer than {LONGEST} bytes")));
    }
    for (n, choice) in choices.iter().enumerate() {
        if choice.label.trim().is_empty() {
            return Err(FORM.wrong(format!("`label` of choice {} is empty", n + 1)));
        }
        if choices[..n].iter().any(|other| other.label == choice.label) {
            return Err(FORM.wrong(format!("choice {} stands there twice", n + 1)));
        }
    }
    let choices = choices.into_iter().map(|Offered { label, about }| Choice { label, about }).collect();
    Ok(Question { question, choices, several: several == Some(true), free: free != Some(false) })
}

#[async_trait]
impl Tool for Ask {
    fn name(&self) -> &'static str {
        "ask"
    }

    fn spec(&self, shown: &Shown) -> Option<ToolSpec> {
        shown.answers.then(|| ToolSpec {
            description:
                "Asks the person and waits for the answer. Use it where only they can decide, not for what can be \
                          found out."
                    .into(),
            input: schema::<Input>(),
            effects: Effects::None,
            run: Run::Serial,
        })
    }

    fn plan(&self, _: &ToolCtx, input: &RawValue) -> Result<Call, Refusal> {
        parse(input)?;
        Ok(Call { tool: self.name().into(), input: input.to_owned(), sources: Vec::new(), sinks: Vec::new() })
    }

    async fn run(&self, ctx: ToolCtx, call: Call, _: Permits) -> ToolOutput {
        asked(&ctx, &call).await.unwrap_or_else(|refusal| failed(Label::PUBLIC_TRUSTED, &refusal))
    }

    async fn recover(&self, _: ToolCtx, _: &OpId) -> Recovery {
        Recovery::NotDone
    }
}

async fn asked(ctx: &ToolCtx, call: &Call) -> Result<ToolOutput, Refusal> {
    let question = parse(&call.input)?;
    let labels: Vec<String> = question.choices.iter().map(|choice| choice.label.clone()).collect();
    let answer = tokio::select! {
        biased;
        () = ctx.cancel.cancelled() => None,
        answer = ctx.host.ask(ctx.caller(), ctx.op(), question) => answer,
    };
    let words = |text: String| Block::text(text, Origin::Ask);
    let output = Output::from(Label::PUBLIC_TRUSTED);
    match answer {
        Some(Answer::Reply { choices, text }) => {
            let chosen: Vec<&str> = choices.iter().filter_map(|at| labels.get(*at)).map(String::as_str).collect();
            let text = text.filter(|text| !text.trim().is_empty());
            let output = output.details(json!({ "choices": choices }));
            let output = if chosen.is_empty() { output } else { output.block(words(chosen.join("\n"))) };
            Ok(text.into_iter().fold(output, |output, text| output.block(words(text))).done())
        }
        Some(Answer::Deny { words: said }) => {
            let output = output.text("The person does not answer this question.").error();
            Ok(said.into_iter().fold(output, |output, said| output.block(words(said))).done())
        }
        _ => Err(Refusal::new("unanswered", "nobody answered before the turn ended")
            .hint("go on without the answer, or ask again")),
    }
}
