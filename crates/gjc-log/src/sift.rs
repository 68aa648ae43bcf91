//! Looking at many bytes at once: what the scan must know of every byte of a line, in one pass.
//!
//! With AVX2 64 bytes are judged by a handful of instructions; elsewhere the same answers come from several passes. Both
//! are compared with each other in the tests.

use memchr::memmem;
use std::sync::LazyLock;

/// What every byte of a line was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sifted {
    /// A NUL is in it.
    pub(crate) nul: bool,
    /// It is UTF-8.
    pub(crate) utf8: bool,
    /// How often `"parentId":` stands in it, 2 for more. Quotes inside of strings are escaped, so what is counted are keys.
    pub(crate) parents: u8,
    /// How often `"gjcLabel"` stands in it, 2 for more.
    pub(crate) labels: u8,
}

const PARENT: &[u8] = b"\"parentId\":";
const LABEL: &[u8] = b"\"gjcLabel\"";
static PARENT_KEY: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(PARENT));
static LABEL_KEY: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(LABEL));

/// Asks every byte of a line, or of several. After a NUL or bytes that are not UTF-8 the counts of a line are not complete.
pub(crate) fn sift(mut bytes: &[u8]) -> Sifted {
    let mut sifted = Sifted { utf8: true, ..Sifted::default() };
    loop {
        let (line, len) = sift_line(bytes);
        sifted = sifted.and(line);
        match bytes.get(len + 1..) {
            Some(rest) if !rest.is_empty() => bytes = rest,
            _ => return sifted,
        }
    }
}

/// Asks every byte of the first line, and how many they are: up to the line feed, or all when there is none.
#[inline]
pub(crate) fn sift_line(bytes: &[u8]) -> (Sifted, usize) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { avx2::sift_line(bytes) };
    }
    let len = line_len(bytes);
    (plain_sift(&bytes[..len]), len)
}

fn line_len(bytes: &[u8]) -> usize {
    memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())
}

fn plain_sift(line: &[u8]) -> Sifted {
    Sifted {
        nul: memchr::memchr(0, line).is_some(),
        utf8: simdutf8::basic::from_utf8(line).is_ok(),
        parents: PARENT_KEY.find_iter(line).take(2).fold(0, |count, _| count + 1),
        labels: LABEL_KEY.find_iter(line).take(2).fold(0, |count, _| count + 1),
    }
}

impl Sifted {
    /// Of two pieces that are parted by an ASCII character outside of every key.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            nul: self.nul | other.nul,
            utf8: self.utf8 & other.utf8,
            parents: (self.parents + other.parents).min(2),
            labels: (self.labels + other.labels).min(2),
        }
    }
}

/// Where the array or object that begins at `from` ends (one past its last brace); `None` when it does not. Braces are
/// counted, not matched with each other.
#[inline]
pub(crate) fn skip_nested(bytes: &[u8], from: usize) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        match unsafe { avx2::skip_nested(bytes, from) } {
            avx2::Skip::End(end) => return Some(end),
            avx2::Skip::None => return None,
            avx2::Skip::Unusual => {}
        }
    }
    plain_skip_nested(bytes, from)
}

fn plain_skip_nested(bytes: &[u8], from: usize) -> Option<usize> {
    let (mut at, mut depth) = (from, 0usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = skip_string(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Where the string that begins (with its quote) at `from` ends: one past its closing quote.
#[inline]
pub(crate) fn skip_string(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from + 1;
    loop {
        let rest = bytes.get(at..)?;
        let found = memchr::memchr2(b'"', b'\\', rest)?;
        at += found + 1;
        if rest[found] == b'"' {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{LABEL, PARENT, Sifted};
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8,
        _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_shuffle_epi8,
    };

    /// How far ahead of a block is looked.
    const AHEAD: usize = 1;

    #[target_feature(enable = "avx2")]
    pub(super) fn sift_line(bytes: &[u8]) -> (Sifted, usize) {
        let mut found = Sifting { bytes, utf8_from: NOTHING, sifted: Sifted { utf8: true, ..Sifted::default() } };
        let mut at = 0;
        while let Some(block) = bytes[at..].first_chunk() {
            let (wide, special) = glance(block);
            if special {
                if let Some(len) = found.block(block, at) {
                    return (found.sifted, len);
                }
            } else if wide {
                found.utf8_from = found.utf8_from.min(at);
            } else if found.utf8_from != NOTHING {
                found.check_utf8(at);
                if !found.sifted.utf8 {
                    return (found.sifted, found.end_behind(at));
                }
            }
            at += 64;
        }
        // The last bytes, and a line feed behind them at which the line ends if not before.
        let mut last = [b'\n'; 128 + AHEAD];
        let rest = &bytes[at..];
        last[..rest.len()].copy_from_slice(rest);
        for from in [0, 64] {
            if let Some(block) = last[from..].first_chunk()
                && let Some(len) = found.block(block, at + from)
            {
                return (found.sifted, len);
            }
        }
        (found.sifted, bytes.len())
    }

    /// A block and the bytes behind it that are looked at with it.
    type Block = [u8; 64 + AHEAD];
    const NOTHING: usize = usize::MAX;

    /// Whether a byte beyond ASCII is in a block; whether anything else that the sift looks for may be in it: hardly ever.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn glance(block: &Block) -> (bool, bool) {
        let (a, b) = (load(block, 0), load(block, 32));
        let special = _mm256_or_si256(specials(a, load(block, 1)), specials(b, load(block, 33)));
        (_mm256_movemask_epi8(_mm256_or_si256(a, b)) != 0, _mm256_movemask_epi8(special) != 0)
    }

    /// NUL, a line feed, and the `I` and `L` of both keys where an `a` or a `d` follows.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn specials(bytes: __m256i, next: __m256i) -> __m256i {
        // What a byte would be if it were one of a few that differ in their lower half. Other halves lead to a byte that has
        // not that half, bytes beyond ASCII to 0.
        const NONE: u8 = 0x0F;
        const FIRST: [u8; 16] =
            [0, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, b'I', b'\n', NONE, b'L', NONE, NONE, 0x10];
        const NEXT: [u8; 16] =
            [NONE, b'a', NONE, NONE, b'd', NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 0x10];
        let is_one_of = |bytes, few| _mm256_cmpeq_epi8(_mm256_shuffle_epi8(few, bytes), bytes);
        let control = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), bytes);
        let goes_on = _mm256_or_si256(control, is_one_of(next, twice(NEXT)));
        _mm256_and_si256(is_one_of(bytes, twice(FIRST)), goes_on)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn twice(bytes: [u8; 16]) -> __m256i {
        // SAFETY: 16 bytes are there, and the load needs no alignment.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
    }

    struct Sifting<'a> {
        bytes: &'a [u8],
        /// Where the blocks with bytes beyond ASCII begin that are not checked yet: UTF-8 can be checked in pieces that
        /// begin and end beside ASCII.
        utf8_from: usize,
        sifted: Sifted,
    }

    impl Sifting<'_> {
        /// Looks closer at the block at `at`; where the line ends if it ends there, or if the rest of it matters no more.
        #[target_feature(enable = "avx2")]
        fn block(&mut self, block: &Block, at: usize) -> Option<usize> {
            let (a, b) = (load(block, 0), load(block, 32));
            let feeds = mask(is(a, b'\n'), is(b, b'\n'));
            // Up to the line feed; what stands behind it is the next line's.
            let mine = (feeds & feeds.wrapping_neg()).wrapping_sub(1);
            let end = (feeds != 0).then(|| at + feeds.trailing_zeros() as usize);
            if mask(is(a, 0), is(b, 0)) & mine != 0 {
                self.sifted.nul = true;
                return Some(end.unwrap_or_else(|| self.end_behind(at)));
            }
            if mask(a, b) & mine != 0 {
                self.utf8_from = self.utf8_from.min(at);
            } else {
                self.check_utf8(at);
            }
            let mut hits = mask(specials(a, load(block, 1)), specials(b, load(block, 33))) & mine;
            while hits != 0 {
                let here = at + hits.trailing_zeros() as usize;
                hits &= hits - 1;
                // The capital stands 7 bytes behind the first quote of the one key, 4 behind that of the other.
                if here >= 7 && self.bytes[here - 7..].starts_with(PARENT) {
                    self.sifted.parents = (self.sifted.parents + 1).min(2);
                }
                if here >= 4 && self.bytes[here - 4..].starts_with(LABEL) {
                    self.sifted.labels = (self.sifted.labels + 1).min(2);
                }
            }
            if let Some(end) = end {
                self.check_utf8(end);
            }
            if self.sifted.utf8 { end } else { Some(end.unwrap_or_else(|| self.end_behind(at))) }
        }

        fn end_behind(&self, at: usize) -> usize {
            at + super::line_len(&self.bytes[at..])
        }

        fn check_utf8(&mut self, to: usize) {
            if let Some(bytes) = self.bytes.get(self.utf8_from..to) {
                self.sifted.utf8 &= simdutf8::basic::from_utf8(bytes).is_ok();
            }
            self.utf8_from = NOTHING;
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn is(bytes: __m256i, byte: u8) -> __m256i {
        _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte.cast_signed()))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask(low: __m256i, high: __m256i) -> u64 {
        let [low, high] = [low, high].map(|half| _mm256_movemask_epi8(half).cast_unsigned());
        u64::from(low) | u64::from(high) << 32
    }

    /// 32 bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8], from: usize) -> __m256i {
        let bytes: &[u8; 32] = bytes[from..].first_chunk().expect("a block has its 64 bytes and those ahead");
        // SAFETY: 32 bytes are there, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    pub(super) enum Skip {
        /// One past the last brace.
        End(usize),
        /// The bytes end before.
        None,
        /// A backslash outside of a string: no JSON.
        Unusual,
    }

    /// The masks of simdjson's first stage (Langdale and Lemire 2019): which quotes are escaped, what is inside of strings,
    /// how many braces open and close.
    #[target_feature(enable = "avx2")]
    pub(super) fn skip_nested(bytes: &[u8], from: usize) -> Skip {
        let (mut at, mut depth) = (from, 0u64);
        // Carried from block to block: whether the first byte is escaped; all ones inside of a string.
        let (mut escaped_first, mut in_string) = (0u64, 0u64);
        while at < bytes.len() {
            let mut last = [b' '; 64];
            let rest = &bytes[at..];
            let block: &[u8; 64] = match rest.first_chunk() {
                Some(block) => block,
                None => {
                    last[..rest.len()].copy_from_slice(rest);
                    &last
                }
            };
            let (a, b) = (load(block, 0), load(block, 32));
            let find = |byte| mask(is(a, byte), is(b, byte));
            let backslashes = find(b'\\');
            let escaped = escaped(backslashes, &mut escaped_first);
            let strings = prefix_xor(find(b'"') & !escaped) ^ in_string;
            in_string = (strings.cast_signed() >> 63).cast_unsigned();
            if backslashes & !strings != 0 {
                return Skip::Unusual;
            }
            let opens = (find(b'{') | find(b'[')) & !strings;
            let mut closes = (find(b'}') | find(b']')) & !strings;
            let (opened, closed) = (u64::from(opens.count_ones()), u64::from(closes.count_ones()));
            if depth <= closed {
                // It may end here.
                while closes != 0 {
                    let place = closes.trailing_zeros();
                    let before = opens & ((1 << place) - 1);
                    let passed = closed - u64::from(closes.count_ones());
                    if depth + u64::from(before.count_ones()) == passed + 1 {
                        return Skip::End(at + place as usize + 1);
                    }
                    closes &= closes - 1;
                }
            }
            depth = depth + opened - closed;
            at += 64;
        }
        Skip::None
    }

    /// Which bytes stand behind a backslash that is not escaped itself: each run of backslashes escapes every second byte
    /// from its start on, the one behind it included. `carry`: whether the first byte of the (next) block is escaped.
    fn escaped(backslashes: u64, carry: &mut u64) -> u64 {
        const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        if backslashes == 0 {
            return std::mem::take(carry);
        }
        let may_escape = backslashes & !*carry;
        let codes = (may_escape << 1 | ODD).wrapping_sub(may_escape) ^ ODD;
        let escaped = codes ^ (backslashes | *carry);
        *carry = (codes & backslashes) >> 63;
        escaped
    }

    /// Each bit: the exclusive or of all bits up to it.
    fn prefix_xor(mut bits: u64) -> u64 {
        for step in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << step;
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes that mislead: keys and their halves, escapes, braces, 한글 and its halves.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let pieces: Vec<&[u8]> = vec![
            PARENT,
            LABEL,
            b"\"parentId",
            b"Id\":",
            b"I?\"jcL",
            "한글".as_bytes(),
            "😀".as_bytes(),
            b"\xED",
            b"\x95\x9C",
            b"\0",
            b"\n",
            b"\\",
            b"\"",
            b"{",
            b"}",
            b"[",
            b"]",
            b" ",
            b"a long stretch of plain text that fills whole blocks of sixty-four bytes and more, ",
        ];
        // Mostly sound, so that the interesting ends are reached: the broken pieces are rare.
        let piece = (0..pieces.len(), 0u8..40).prop_map(move |(index, rare)| {
            let broken = matches!(pieces[index], b"\0" | b"\xED" | b"\x95\x9C");
            if broken && rare > 0 { &b"plain"[..] } else { pieces[index] }
        });
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

        #[test]
        fn one_pass_answers_what_several_do(line in bytes()) {
            let (fast, plain) = (sift(&line), plain_sift(&line));
            if plain.nul || !plain.utf8 {
                prop_assert!(fast.nul || !fast.utf8);
            } else {
                prop_assert_eq!(fast, plain);
            }
        }

        #[test]
        fn a_line_ends_at_its_line_feed(bytes in bytes()) {
            let (fast, len) = sift_line(&bytes);
            prop_assert_eq!(len, line_len(&bytes));
            let plain = plain_sift(&bytes[..len]);
            if plain.nul || !plain.utf8 {
                prop_assert!(fast.nul || !fast.utf8);
            } else {
                prop_assert_eq!(fast, plain, "what stands behind belongs to another line");
            }
        }

        #[test]
        fn braces_are_skipped_alike(mut line in bytes(), open in prop::sample::select(b"{[".to_vec())) {
            line.insert(0, open);
            prop_assert_eq!(skip_nested(&line, 0), plain_skip_nested(&line, 0), "{}", String::from_utf8_lossy(&line));
        }
    }

    #[test]
    fn what_is_looked_for_is_found_across_every_border() {
        for before in 0..200 {
            let mut line = vec![b'x'; before];
            line.extend_from_slice(PARENT);
            line.extend_from_slice(LABEL);
            line.extend_from_slice("한".as_bytes());
            assert_eq!(sift(&line), Sifted { nul: false, utf8: true, parents: 1, labels: 1 }, "{before}");
            line.pop();
            assert!(!sift(&line).utf8, "{before}");
            line.pop();
            line.pop();
            line.push(0);
            assert!(sift(&line).nul, "{before}");
        }
    }
}
