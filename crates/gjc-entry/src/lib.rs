//! Ids, entries, messages, labels, the tree's skeleton; clock and id traits. No I/O.
