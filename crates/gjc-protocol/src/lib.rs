//! What faces and the session actor say to each other: commands, events, snapshots.
