//! The tools a model may call, and the traits they need.
