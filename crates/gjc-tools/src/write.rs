//! `write`: a file with given content.

use crate::input::{Form, schema};
use crate::place::Place;
use crate::preview::{self, Before};
use crate::work::{blocking, bytes_in, cancelled, count, failed, leave, sha256};
use crate::{Effects, Output, Preview, Run, Shown, Tool, ToolCtx, ToolOutput, ToolSpec, path};
use async_trait::async_trait;
use gjc_entry::{Label, Level};
use gjc_flow::{Call, Permits, SinkRef};
use gjc_protocol::Refusal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

const FORM: Form = Form { tool: "write", example: r#"{"path": "src/greet.rs", "content": "pub fn greet() {}\n"}"# };

/// Creates a file or replaces it as a whole.
///
/// The content appears in one step. Parent folders are made; a link's target is written, not the link; mode and owner stay.
/// Details: `{path, bytes, sha256, created}`.
#[derive(Debug, Clone, Copy)]
pub struct Write;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, absolute or from the working folder.
    path: String,
    /// All of its new content.
    content: String,
}

fn parse(input: &RawValue) -> Result<Input, Refusal> {
    let input: Input = FORM.parse(input)?;
    path::check(&FORM, &input.path)?;
    if input.path.ends_with('/') {
        return Err(FORM.wrong("`path` ends with '/', so it names a folder"));
    }
    Ok(input)
}

#[async_trait]
impl Tool for Write {
    fn name(&self) -> &'static str {
        "write"
    }

    fn spec(&self, _: &Shown) -> Option<ToolSpec> {
        Some(ToolSpec {
            description: "Creates a file, or replaces one as a whole. Missing folders are made. \
                          To change a part of a file, use edit."
                .into(),
            input: schema::<Input>(),
            effects: Effects::Workspace,
            run: Run::Serial,
        })
    }

    fn plan(&self, ctx: &ToolCtx, input: &RawValue) -> Result<Call, Refusal> {
        let parsed = parse(input)?;
        let target = path::target(&ctx.cwd, &parsed.path);
        let to = SinkRef {
            what: target.display().to_string(),
            level: Level::Restricted,
            digest: bytes_in(&target, parsed.content.as_bytes()),
        };
        Ok(Call { tool: self.name().into(), input: input.to_owned(), sources: Vec::new(), sinks: vec![to] })
    }

    fn preview(&self, ctx: &ToolCtx, call: &Call) -> Result<Preview, ToolOutput> {
        seen(ctx, call).map_err(|refusal| failed(Label::PUBLIC_TRUSTED, &refusal))
    }

    async fn run(&self, ctx: ToolCtx, call: Call, permits: Permits) -> ToolOutput {
        blocking(Label::PUBLIC_TRUSTED, move |_| write(&ctx, &parse(&call.input)?, permits)).await
    }
}

/// What a person sees of it.
fn seen(ctx: &ToolCtx, call: &Call) -> Result<Preview, Refusal> {
    let Input { path: given, content } = parse(&call.input)?;
    let place = Place::find(ctx, &given)?;
    let before = place.existing.as_ref().map(|existing| Before::read(&place.path, existing)).transpose();
    let before = before.map_err(|error| path::refuse(&ctx.cwd, &given, "read", &error))?;
    let diff = preview::replacement(&given, before.as_ref(), content.as_bytes());
    Ok(Preview::of_file(ctx, &given, &place.path, &diff, before.as_ref()))
}

fn write(ctx: &ToolCtx, input: &Input, mut permits: Permits) -> Result<ToolOutput, Refusal> {
    let bytes = input.content.as_bytes();
    let place = Place::find(ctx, &input.path)?;
    if ctx.cancel.is_cancelled() {
        return Err(cancelled());
    }
    // Before a folder is made, and once more right before the rename.
    let is_still = |place: &Place| preview::still(ctx, &place.path);
    if !is_still(&place).map_err(|error| path::refuse(&ctx.cwd, &input.path, "written", &error))? {
        return Err(preview::changed(&input.path));
    }
    let by = leave(ctx, &mut permits, bytes_in(&place.path, bytes))?;
    let (path, created) = (place.path.clone(), place.existing.is_none());
    if !place.replace(ctx, &input.path, bytes, by, is_still)? {
        return Err(preview::changed(&input.path));
    }

    let done = if created { "created" } else { "replaced" };
    let (lines, size) = (count(input.content.lines().count(), "line"), count(bytes.len(), "byte"));
    Ok(Output::from(Label::PUBLIC_TRUSTED)
        .text(format!("{done} {}: {lines}, {size}", input.path))
        .details(json!({
            "path": path::real(&path).unwrap_or(path).to_string_lossy(),
            "bytes": bytes.len(),
            "sha256": sha256(bytes),
            "created": created,
        }))
        .done())
}
