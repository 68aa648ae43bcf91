//! The body of an answer: server-sent events, cut into pieces wherever the network liked. Bounded, for every wire.

use crate::error::root_cause;
use crate::{ProviderError, StreamEvent};
use bytes::Buf;
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use gjc_entry::fields::replace_lone_surrogates;
use sse_stream::SseByteStream;
use std::collections::VecDeque;
use std::time::Duration;

/// What a wire makes of the data of one event after another.
pub(crate) trait Decode: Send + 'static {
    /// The next event: not blank, and without half surrogate pairs.
    fn feed(&mut self, data: &str) -> Result<Vec<StreamEvent>, ProviderError>;

    /// The body has ended, without an error or with one. The last events, if what came is a whole answer all the same.
    fn ended(&mut self) -> Option<Vec<StreamEvent>>;

    /// Whether nothing more can follow.
    fn whole(&self) -> bool;

    /// Whether something of the answer was passed on.
    fn begun(&self) -> bool;

    /// The answer broke off.
    fn cut(&self, why: String) -> ProviderError {
        ProviderError::Cut { replay_safe: !self.begun(), why }
    }

    /// An event as what it should be.
    fn read<'a, T: serde::Deserialize<'a>>(&self, data: &'a str) -> Result<T, ProviderError> {
        serde_json::from_str(data)
            .map_err(|error| self.cut(format!("the provider sent an event that makes no sense ({error})")))
    }
}

const NO_END: &str = "the connection ended before the answer did";

/// Reads a body of server-sent events.
///
/// The stream ends after [`StreamEvent::Stop`] or after one error; a body that ends too early is a [`ProviderError::Cut`].
/// Needs a tokio runtime with time.
pub(crate) fn decode<D, S, B, E>(body: S) -> BoxStream<'static, Result<StreamEvent, ProviderError>>
where
    D: Decode + Default,
    S: Stream<Item = Result<B, E>> + Send + Unpin + 'static,
    B: Buf + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    struct Reading<B, D> {
        sse: SseByteStream<BoxStream<'static, Result<B, Unbounded>>>,
        decoder: D,
        ready: VecDeque<StreamEvent>,
        ended: bool,
    }
    let reading =
        Reading { sse: SseByteStream::new(bounded(body)), decoder: D::default(), ready: VecDeque::new(), ended: false };
    stream::unfold(reading, |mut reading| async move {
        loop {
            if let Some(event) = reading.ready.pop_front() {
                return Some((Ok(event), reading));
            }
            if reading.ended {
                return None;
            }
            if reading.decoder.whole() {
                // The end of the body follows at once; a connection that is read to its end is used again.
                let _ = tokio::time::timeout(Duration::from_millis(50), reading.sse.next()).await;
                return None;
            }
            let failure = match reading.sse.next().await {
                Some(Ok(event)) => match feed(&mut reading.decoder, event.data.as_deref().unwrap_or_default()) {
                    Ok(events) => {
                        reading.ready.extend(events);
                        continue;
                    }
                    Err(failure) => failure,
                },
                end => {
                    reading.ended = true;
                    if let Some(events) = reading.decoder.ended() {
                        reading.ready.extend(events);
                        continue;
                    }
                    let why = end.and_then(Result::err).map_or_else(|| NO_END.into(), |error| root_cause(&error));
                    reading.decoder.cut(why)
                }
            };
            reading.ended = true;
            return Some((Err(failure), reading));
        }
    })
    .boxed()
}

/// Reads a body that is one JSON document, as servers answer that do not know how to stream.
pub(crate) fn decode_whole<D, S, B, E>(body: S) -> BoxStream<'static, Result<StreamEvent, ProviderError>>
where
    D: Decode + Default,
    S: Stream<Item = Result<B, E>> + Send + Unpin + 'static,
    B: Buf + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let read = async move {
        let (mut decoder, mut all, mut body) = (D::default(), Vec::new(), body);
        while let Some(piece) = body.next().await {
            let mut piece = piece.map_err(|error| decoder.cut(root_cause(&error)))?;
            if all.len().saturating_add(piece.remaining()) > LONGEST_LINE {
                return Err(decoder.cut(Unbounded::Long.to_string()));
            }
            while piece.has_remaining() {
                let chunk = piece.chunk();
                all.extend_from_slice(chunk);
                let read = chunk.len();
                piece.advance(read);
            }
        }
        let mut events = feed(&mut decoder, &String::from_utf8_lossy(&all))?;
        if !decoder.whole() {
            events.extend(decoder.ended().ok_or_else(|| decoder.cut(NO_END.into()))?);
        }
        Ok(events)
    };
    stream::once(read)
        .flat_map(|read| match read {
            Ok(events) => stream::iter(events).map(Ok).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        })
        .boxed()
}

fn feed(decoder: &mut impl Decode, data: &str) -> Result<Vec<StreamEvent>, ProviderError> {
    // Comments, and `ping`s without data.
    if data.trim().is_empty() {
        return Ok(Vec::new());
    }
    // A server in JavaScript may cut an emoji into two halves, each alone in its event.
    let mended = replace_lone_surrogates(data);
    decoder.feed(mended.as_deref().unwrap_or(data))
}

/// The longest line of an answer.
const LONGEST_LINE: usize = 32 << 20;
/// The longest answer. Far more than a model can say; what is longer is a fault or an attack.
const LONGEST: usize = 256 << 20;
/// The most blocks of an answer.
pub(crate) const MOST_BLOCKS: usize = 16_384;

/// Why the body of an answer is not read on.
#[derive(Debug, thiserror::Error)]
enum Unbounded {
    #[error("the answer has no end")]
    Long,
    #[error("{0}")]
    Body(String),
}

/// Ends a body that would fill the memory: the reader of lines keeps a line until it ends.
fn bounded<S, B, E>(body: S) -> BoxStream<'static, Result<B, Unbounded>>
where
    S: Stream<Item = Result<B, E>> + Send + Unpin + 'static,
    B: Buf + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let (mut line, mut all) = (0usize, 0usize);
    body.map(move |piece| {
        let piece = piece.map_err(|error| Unbounded::Body(root_cause(&error)))?;
        let bytes = piece.chunk();
        all = all.saturating_add(piece.remaining());
        line = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => bytes.len() - last - 1,
            None => line.saturating_add(piece.remaining()),
        };
        if line > LONGEST_LINE || all > LONGEST { Err(Unbounded::Long) } else { Ok(piece) }
    })
    .boxed()
}

/// A delta, unless it says nothing.
pub(crate) fn delta(index: u16, text: Option<String>) -> Option<StreamEvent> {
    text.filter(|text| !text.is_empty()).map(|text| StreamEvent::Delta { index, text })
}
