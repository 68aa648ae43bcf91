//! The list in a body whose items are a conversation, as the wires of OpenAI have it: where each stands, and what people say
//! at once.

use crate::parts::Shown;
use gjc_context::{BlockAt, Layout, Msg};

/// A body while its list is written.
pub(crate) struct Items {
    /// The body so far.
    pub(crate) out: Vec<u8>,
    /// Where the messages of the view stand in it.
    pub(crate) layout: Layout,
    first: bool,
}

impl Default for Items {
    fn default() -> Self {
        Self { out: Vec::with_capacity(16 * 1024), layout: Layout::default(), first: true }
    }
}

impl Items {
    /// One item; gives its place.
    pub(crate) fn item(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> (usize, usize) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        let start = self.out.len();
        write(&mut self.out);
        (start, self.out.len())
    }

    /// A message of the view stands there.
    pub(crate) fn place(&mut self, message: usize, (start, end): (usize, usize)) {
        self.layout.blocks.push(BlockAt { message, start, end });
    }
}

/// What each message of a turn shows.
pub(crate) type Saying<'a> = Vec<(usize, Vec<Shown<'a>>)>;

/// What people say in a turn, without what is empty. `None` where `results` say enough; a turn never is without a word.
pub(crate) fn said<'a>(mut said: Saying<'a>, messages: &[(usize, &Msg)], results: bool) -> Option<Saying<'a>> {
    said.retain(|(_, shown)| !shown.is_empty());
    if said.is_empty() {
        if results {
            return None;
        }
        let index = messages.first().map_or(0, |(index, _)| *index);
        said.push((index, vec![Shown::Text("(no text)".into())]));
    }
    Some(said)
}
