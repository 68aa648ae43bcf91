//! Renders a checked request to bytes and streams answers.
