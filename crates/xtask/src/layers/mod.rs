//! `cargo xtask layers`: proves that dependencies point down and that what belongs to one room stays there.

mod arrows;
mod paths;
mod sources;
pub(crate) mod table;

use anyhow::{Result, bail};

use crate::workspace;

/// Checks the workspace and prints what it found.
///
/// # Errors
/// When a rule is broken, or a source file cannot be read or is no Rust.
pub(crate) fn run() -> Result<()> {
    let workspace = workspace::load()?;
    let plan = arrows::Plan { rooms: table::ROOMS, never: table::NEVER };
    let mut broken = arrows::check(plan, &workspace);
    let scan = sources::check(&sources::Rules { kept: table::KEPT, exempt: table::EXEMPT }, &workspace)?;
    broken.extend(scan.broken);

    println!("clippy::disallowed_methods may be switched off in");
    for (exempt, uses) in table::EXEMPT.iter().zip(&scan.exempt_uses) {
        println!("  {:<16} {:>2} x  {}", exempt.place, uses, exempt.why);
    }
    if broken.is_empty() {
        println!(
            "layers: {} crates, {} arrows, {} source files: all point down",
            workspace.packages.len(),
            arrows::count(plan, &workspace),
            scan.files
        );
        return Ok(());
    }
    for sentence in &broken {
        println!("broken: {sentence}");
    }
    bail!("{} of the layers' rules are broken; the picture is in ARCHITECTURE.md", broken.len())
}
