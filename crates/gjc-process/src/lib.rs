//! Child processes: groups, time-outs, output caps, kill tree.
