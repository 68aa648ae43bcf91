//! Information flow: labels, decide, permits.
