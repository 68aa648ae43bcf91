//! Pictures that are left out of requests which would have more bytes than a provider takes: oldest first, by an entry
//! ([`gjc_entry::Own::Images`]), so that every request stays a function of its path.

use crate::{Msg, Said, View};
use gjc_entry::message::ImageData;
use gjc_entry::{At, Block, EntryId, LeftOut, Origin};
use std::collections::HashMap;

/// What stands in the place of a picture that was left out.
pub const LEFT_OUT: &str = "(an image stood here; it was left out, because the request was too large)";

/// What entries of a path say of pictures.
#[derive(Default)]
pub(crate) struct Pictures(HashMap<EntryId, u32>);

impl Pictures {
    /// Takes an entry in. What was left out once stays left out.
    pub(crate) fn take(&mut self, left_out: &[LeftOut]) {
        for LeftOut { of, first } in left_out {
            let known = self.0.entry(of.clone()).or_default();
            *known = (*known).max(*first);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many pictures of an entry are left out.
    pub(crate) fn of(&self, entry: &EntryId) -> u32 {
        self.0.get(entry).copied().unwrap_or_default()
    }
}

/// Puts [`LEFT_OUT`] in the place of the first pictures of some messages.
pub(crate) fn leave_out(messages: &mut [Msg], first: &HashMap<At, u32>) {
    for message in messages {
        let Some(mut left) = message.from.and_then(|at| first.get(&at)).copied() else { continue };
        for block in content(&mut message.said) {
            if left > 0 && matches!(block, Block::Image { .. }) {
                *block = Block::text(LEFT_OUT, Origin::Host);
                left -= 1;
            }
        }
    }
}

fn content(said: &mut Said) -> &mut [Block] {
    match said {
        Said::User(blocks) | Said::Result { content: blocks, .. } => blocks,
        Said::Assistant { .. } => &mut [],
    }
}

/// The oldest pictures of a view that have to be left out so that a request has `excess` bytes less, as messages of the view
/// and how many of their pictures go; empty where that cannot be reached. `size` is what a picture takes in the request.
pub(crate) fn too_many(view: &View, excess: usize, size: impl Fn(&ImageData) -> usize) -> Vec<(At, u32)> {
    let (mut gone, mut found): (usize, Vec<(At, u32)>) = (0, Vec::new());
    for message in &view.messages {
        let (Some(at), Said::User(blocks) | Said::Result { content: blocks, .. }) = (message.from, &message.said)
        else {
            continue;
        };
        for data in blocks.iter().filter_map(|block| match block {
            Block::Image { data, .. } => Some(data),
            _ => None,
        }) {
            if gone >= excess {
                return found;
            }
            // A sentence takes the place of the picture.
            gone += size(data).saturating_sub(LEFT_OUT.len());
            match found.last_mut().filter(|(last, _)| *last == at) {
                Some((_, count)) => *count += 1,
                None => found.push((at, 1)),
            }
        }
    }
    if gone >= excess { found } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn image(size: usize) -> Block {
        Block::Image {
            data: ImageData::Inline("x".repeat(size)),
            mime: "image/png".into(),
            origin: None,
            extra: Vec::new(),
        }
    }

    fn size(data: &ImageData) -> usize {
        match data {
            ImageData::Inline(base64) => base64.len(),
            ImageData::Blob(_) => 0,
        }
    }

    /// Messages with pictures of these sizes, and a text each.
    fn view(messages: &[Vec<usize>]) -> View {
        let message = |(nth, sizes): (usize, &Vec<usize>)| {
            let mut blocks = vec![Block::text("글", Origin::Typed)];
            blocks.extend(sizes.iter().map(|size| image(*size)));
            Msg { from: Some(At { off: nth as u64, len: 1 }), said: Said::User(blocks) }
        };
        View { messages: messages.iter().enumerate().map(message).collect() }
    }

    fn sizes(view: &View) -> Vec<usize> {
        let blocks = view.messages.iter().flat_map(|message| match &message.said {
            Said::User(blocks) => blocks.as_slice(),
            _ => &[],
        });
        blocks
            .filter_map(|block| match block {
                Block::Image { data, .. } => Some(size(data)),
                _ => None,
            })
            .collect()
    }

    proptest! {
        #[test]
        fn the_oldest_go_and_no_more_than_need_be(
            messages in prop::collection::vec(prop::collection::vec(100usize..3_000, 0..4), 0..6), excess in 1usize..9_000
        ) {
            let mut view = view(&messages);
            let before = sizes(&view);
            let found = too_many(&view, excess, size);
            let gain = |sizes: &[usize]| sizes.iter().map(|size| size - LEFT_OUT.len()).sum::<usize>();
            leave_out(&mut view.messages, &found.iter().copied().collect());
            let after = sizes(&view);
            let gone = &before[..before.len() - after.len()];
            prop_assert_eq!(&after[..], &before[gone.len()..], "the newest stay");
            if found.is_empty() {
                prop_assert!(gain(&before) < excess && gone.is_empty());
            } else {
                prop_assert!(gain(gone) >= excess);
                prop_assert!(gain(&gone[..gone.len() - 1]) < excess);
            }
        }
    }
}
