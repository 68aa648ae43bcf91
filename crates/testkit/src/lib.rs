//! Test tools: stub model server, process harness, hermetic git, virtual clock, session builders.
