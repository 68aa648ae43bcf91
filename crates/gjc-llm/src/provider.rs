//! One wire to a model, and the bytes of a request.

use crate::{ProviderError, StreamEvent, anthropic, openai, openai_responses, scripted};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use gjc_context::{Checked, Layout, Request};
use gjc_entry::Blobs;
use tokio_util::sync::CancellationToken;

/// A model behind a wire.
pub trait Provider: Send + Sync + 'static {
    /// The request as bytes. A pure function of the request and of content-addressed blobs: live and rebuilt later by
    /// another process the bytes are the same.
    ///
    /// # Errors
    /// [`Unsupported`] when the request cannot be said in this wire.
    fn render(&self, request: &Checked<Request>, blobs: &dyn Blobs) -> Result<Rendered, Unsupported>;

    /// Sends a request and gives its answer as it comes. Nothing happens before the first poll.
    ///
    /// A stream ends in one of three ways: after [`StreamEvent::Stop`] (the answer is whole), after one error, or, without
    /// either, because `cancel` was cancelled.
    fn stream(
        &self,
        request: Rendered,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StreamEvent, ProviderError>>;

    /// The wire's name, as in `anthropic-messages`.
    fn api(&self) -> &'static str;

    /// The most bytes that a request may have, where that is known.
    fn largest(&self) -> Option<usize> {
        None
    }

    /// The version of the rendering code, for [`gjc_entry::RequestEnv::renderer`].
    fn renderer(&self) -> u16;
}

/// A request as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The body.
    pub body: Bytes,
    /// Where things stand in it.
    pub layout: Layout,
}

/// Why a request cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// No adapter speaks this wire.
    #[error("no adapter speaks \"{0}\"; choose a model of another provider, or a newer gjc")]
    Api(String),
    /// The request was rendered by code that is not in this program.
    #[error(
        "requests of \"{api}\" in version {version} of its renderer cannot be rebuilt here (this program has {known}); use the gjc that wrote the session, or a newer one"
    )]
    Renderer {
        /// The wire.
        api: String,
        /// The version asked for.
        version: u16,
        /// The newest version here.
        known: u16,
    },
    /// A part of the request is not in the blob store.
    #[error("the {part} of this request is lost ({why}); restore the blob, or start a new turn, which writes it anew")]
    Lost {
        /// Which part.
        part: &'static str,
        /// Why.
        why: String,
    },
    /// A part of the request cannot be read.
    #[error("the {part} of this request cannot be read ({why}); start a new turn, which writes it anew")]
    Unreadable {
        /// Which part.
        part: &'static str,
        /// Why.
        why: String,
    },
}

/// The bytes of a request, by the code that the session names: wire `api`, version `renderer` (both stand in
/// [`gjc_entry::RequestEnv`]). Needs no key, no address and no network.
///
/// # Errors
/// [`Unsupported`], also when this program does not have that wire or version.
pub fn render(
    api: &str,
    renderer: u16,
    request: &Checked<Request>,
    blobs: &dyn Blobs,
) -> Result<Rendered, Unsupported> {
    let unknown = |known| Err(Unsupported::Renderer { api: api.into(), version: renderer, known });
    match (api, renderer) {
        // A script is played against the bytes of the Messages API, so that a demo shows what a real model would get.
        (anthropic::API | scripted::API, anthropic::RENDERER) => anthropic::render(request, blobs),
        (openai::API, openai::RENDERER) => openai::render(request, blobs),
        (openai_responses::API, openai_responses::RENDERER) => openai_responses::render(request, blobs),
        (anthropic::API | scripted::API, _) => unknown(anthropic::RENDERER),
        (openai::API, _) => unknown(openai::RENDERER),
        (openai_responses::API, _) => unknown(openai_responses::RENDERER),
        _ => Err(Unsupported::Api(api.into())),
    }
}
