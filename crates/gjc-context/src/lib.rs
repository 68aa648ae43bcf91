//! Folds, projection, view, checker: what the model sees. Pure.
