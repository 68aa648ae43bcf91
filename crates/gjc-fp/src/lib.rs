//! Failpoints that can be enumerated; empty without the feature.
