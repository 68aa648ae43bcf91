//! The directory of sessions: buckets, names, ids, headers.
