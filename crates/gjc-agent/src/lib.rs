//! The session actor: admission, boundaries, the turn loop.
