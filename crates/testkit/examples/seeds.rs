//! Writes the inputs that a fuzz target begins with: `seeds TARGET FOLDER`.
#![allow(clippy::disallowed_methods, reason = "reads its arguments and writes files")]

use std::path::Path;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, folder] = &arguments[..] else {
        return Err(std::io::Error::other("usage: seeds TARGET FOLDER"));
    };
    std::fs::create_dir_all(folder)?;
    for (name, bytes) in testkit::fuzz::seeds(target) {
        std::fs::write(Path::new(folder).join(name), bytes)?;
    }
    Ok(())
}
