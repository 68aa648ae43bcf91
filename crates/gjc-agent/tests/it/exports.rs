//! A session goes out as a page: what its label has to do with that, and what a failing disk leaves.

use crate::world::*;
use gjc_entry::{Label, Level};
use gjc_log::fs::Fs;
use gjc_log::fs::sim::SimFs;
use gjc_protocol::{Command, Outcome};
use gjc_tools::Run;
use std::path::Path;
use testkit::log::{Bench, read};

const SECRET: &str = "연봉 1억 2천";

fn export(path: &Path) -> Command {
    Command::Export { path: Some(path.display().to_string()), force: false, open: false, typed: None }
}

/// A session whose tool has read something with this label.
async fn knows(bench: &Bench<SimFs>, label: Label) -> World {
    let mut setup = Setup::new(bench);
    let tool = setup.tool("t", Run::Parallel).reads(label);
    setup.set(vec![tool]);
    let mut world = setup.start(bench.create(), false);
    world.say("읽어").await.call(&[("a", "t", "{}")]);
    world.begun().await.output(labelled(SECRET, label));
    world.ask().await.say("네");
    world.turn_end().await;
    world
}

/// A page is a sink of a person's own: it may get everything. So that nobody takes it for less, it bears the label of all that
/// it holds, other branches included, and only its owner may read it.
#[tokio::test]
async fn a_page_bears_the_label_of_what_it_holds() {
    for (label, told) in [
        (level(Level::Public), "PUBLIC trusted"),
        (level(Level::Confidential), "CONFIDENTIAL trusted"),
        (Label { level: Level::Restricted, trusted: false }, "RESTRICTED untrusted"),
    ] {
        let bench = sim();
        let world = knows(&bench, label).await;
        let first = world.snapshot().await.label.level;
        assert_eq!(first, label.level);
        let page = bench.root.join("페이지.html");
        let before = bench.bytes();
        let done = answer(&world.handle, "the page", export(&page)).await;
        assert!(matches!(&done, Outcome::Done { value } if value["page"] == page.display().to_string()), "{done:?}");
        let html = String::from_utf8(read(&*bench.fs, &page)).unwrap();
        assert!(html.contains(&format!("<meta name=\"gjc-label\" content=\"{told}\">")), "{told}");
        assert!(html.contains(SECRET));
        assert_eq!(bench.bytes(), before, "an export raises nothing and stores nothing");
        assert_eq!(world.snapshot().await.label.level, label.level);
        world.close().await;
    }
}

/// What cannot be written leaves neither half a page nor a temporary file, and the session goes on.
#[tokio::test]
async fn a_page_that_cannot_be_written_leaves_nothing_and_the_session_goes_on() {
    let bench = sim();
    let mut world = knows(&bench, level(Level::Internal)).await;
    let nowhere = bench.root.join("no/such/folder/page.html");
    let refused = answer(&world.handle, "the refusal", export(&nowhere)).await;
    assert!(matches!(&refused, Outcome::Refused(refusal) if refusal.code == "not_exported"), "{refused:?}");
    let names = bench.fs.list(&bench.root).unwrap();
    assert!(
        names.iter().all(|path| path.extension().is_none_or(|extension| extension != "html" && extension != "tmp"))
    );
    world.say("아직 있어?").await.say("네");
    world.turn_end().await;
    world.close().await;
}
