//! What a person sees before they allow a call, and that nothing else runs.

use crate::rig::Rig;
use gjc_tools::{Preview, ToolCtx, ToolOutput};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

impl Rig {
    fn preview(&self, tool: &str, input: &Value) -> Result<Preview, ToolOutput> {
        let call = self.plan(tool, input).unwrap();
        self.tools.get(tool).unwrap().preview(&self.ctx(), &call)
    }

    /// The call that a person has allowed after they saw the preview; `meanwhile` happens while they think.
    async fn allowed(&self, tool: &str, input: &Value, meanwhile: impl FnOnce()) -> String {
        let call = self.plan(tool, input).unwrap();
        let seen = self.tools.get(tool).unwrap().preview(&self.ctx(), &call).unwrap();
        meanwhile();
        let permits = self.permits(&call);
        let ctx: ToolCtx = self.ctx().bound_to(seen.basis);
        let output = self.tools.get(tool).unwrap().run(ctx, call, permits).await;
        let mut state =
            gjc_flow::LabelState::new(gjc_entry::Label::PUBLIC_TRUSTED, gjc_entry::Level::Restricted).unwrap();
        output.content.open(&mut state).unwrap().iter().filter_map(gjc_entry::Block::as_text).collect()
    }
}

fn write(path: &str, content: &str) -> Value {
    json!({ "path": path, "content": content })
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "path": path, "edits": [{ "old": old, "new": new }] })
}

#[test]
fn a_command_is_shown_as_it_runs() {
    let rig = Rig::new();
    let seen = rig.preview("bash", &json!({"command": "echo '안녕'\nrm -rf x"})).unwrap();
    assert_eq!(
        (seen.command.as_deref(), seen.text, seen.within, seen.cut),
        (Some("echo '안녕'\nrm -rf x"), None, false, false)
    );
    let long = format!(": {}", "가".repeat(100_000));
    let seen = rig.preview("bash", &json!({ "command": long })).unwrap();
    assert!(seen.cut && long.starts_with(seen.command.as_deref().unwrap()));
}

#[test]
fn a_change_is_shown_as_a_diff_of_the_real_file() {
    let rig = Rig::new();
    let path = rig.file("글.txt", "하나\n둘\n셋\n");
    let seen = rig.preview("edit", &edit("글.txt", "둘", "두울")).unwrap();
    assert_eq!(seen.path.as_deref(), Some(&*path));
    assert_eq!(seen.text.unwrap(), "--- a/글.txt\n+++ b/글.txt\n@@ -1,3 +1,3 @@\n 하나\n-둘\n+두울\n 셋\n");
    let seen = rig.preview("write", &write("글.txt", "하나\n셋\n")).unwrap();
    assert_eq!(seen.text.unwrap(), "--- a/글.txt\n+++ b/글.txt\n@@ -1,3 +1,2 @@\n 하나\n-둘\n 셋\n");
    let seen = rig.preview("write", &write("새.txt", "글")).unwrap();
    assert!(seen.within && seen.text.unwrap().ends_with("+글\n\\ No newline at end of file\n"));
    let seen = rig.preview("write", &write("글.txt", "하나\n둘\n셋\n")).unwrap();
    assert_eq!(seen.text.unwrap(), "글.txt: nothing changes\n");
    // What would fail anyway is not asked for.
    let told = rig.preview("edit", &edit("글.txt", "없다", "x")).unwrap_err();
    assert!(told.is_error && told.details["error"] == "no_match" && told.content.label().trusted);
    assert_eq!(rig.preview("write", &write("/dev/null", "x")).unwrap_err().details["error"], "special_file");
    // It tells of what stands in the file, and that of strangers is no trusted text.
    let strange = rig.outside.join("남의 글");
    fs::write(&strange, "하나\n둘\n").unwrap();
    let told = rig.preview("edit", &edit(strange.to_str().unwrap(), "두울", "x")).unwrap_err();
    assert!(!told.content.label().trusted);
}

#[test]
fn only_content_of_the_workspace_is_within() {
    let rig = Rig::new();
    fs::create_dir_all(rig.cwd.join(".git/hooks")).unwrap();
    fs::create_dir_all(rig.cwd.join("sub/deep")).unwrap();
    symlink(&rig.outside, rig.cwd.join("away")).unwrap();
    symlink(rig.cwd.join(".git"), rig.cwd.join("inner")).unwrap();
    let within = |path: &str| rig.preview("write", &write(path, "x")).unwrap().within;
    for inside in ["글", "sub/deep/글", "없는/곳/글", ".gitignore", "sub/../글", "git/x"] {
        assert!(within(inside), "{inside}");
    }
    let outside = rig.outside.join("글").display().to_string();
    for out in [
        &*outside,
        "../outside/글",
        "away/글",
        ".git/hooks/post-checkout",
        "inner/hooks/x",
        ".gjc/config.yml",
        ".GIT/config",
    ] {
        assert!(!within(out), "{out}");
    }
}

#[test]
fn a_home_folder_is_no_workspace() {
    let mut rig = Rig::new();
    rig.cwd = rig.outside.join("home");
    fs::create_dir_all(rig.cwd.join("project/src")).unwrap();
    assert!(!rig.preview("write", &write(".bashrc", "x")).unwrap().within);
    rig.cwd = rig.cwd.join("project");
    assert!(rig.preview("write", &write("src/글", "x")).unwrap().within);
}

#[tokio::test]
async fn what_has_changed_since_a_person_saw_it_stays_as_it_is() {
    let rig = Rig::new();
    let path = rig.file("글", "하나\n둘\n");
    for (tool, input) in [("edit", edit("글", "둘", "셋")), ("write", write("글", "새 글"))] {
        let told = rig.allowed(tool, &input, || fs::write(&path, "하나\n둘\n남의 줄\n").unwrap()).await;
        assert!(told.contains("has changed since this was allowed") && told.contains("hint: "), "{tool}: {told}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "하나\n둘\n남의 줄\n", "{tool}");
        fs::write(&path, "하나\n둘\n").unwrap();
    }
    // A file that was not there is there now, and one that was there is gone.
    let new = rig.cwd.join("새");
    let told = rig.allowed("write", &write("새", "내 글"), || fs::write(&new, "남의 글").unwrap()).await;
    assert!(told.contains("has changed since"), "{told}");
    assert_eq!(fs::read_to_string(&new).unwrap(), "남의 글");
    let told = rig.allowed("write", &write("새", "내 글"), || fs::remove_file(&new).unwrap()).await;
    assert!(told.contains("has changed since") && !new.exists(), "{told}");
    // A link that leads elsewhere makes the permit stale.
    let target = rig.outside.join("비밀");
    fs::write(&target, "비밀").unwrap();
    let told = rig.allowed("write", &write("새", "내 글"), || symlink(&target, &new).unwrap()).await;
    assert!(told.contains("nothing was done"), "{told}");
    assert_eq!(fs::read_to_string(&target).unwrap(), "비밀");
    fs::remove_file(&new).unwrap();
    // So does a folder that has become one, although every name is the same.
    fs::create_dir(rig.cwd.join("폴더")).unwrap();
    let swap = || {
        fs::remove_dir(rig.cwd.join("폴더")).unwrap();
        symlink(&rig.outside, rig.cwd.join("폴더")).unwrap();
    };
    let told = rig.allowed("write", &write("폴더/열쇠", "내 글"), swap).await;
    assert!(told.contains("has changed since") && !rig.outside.join("열쇠").exists(), "{told}");
    // And what has not changed is done.
    assert!(rig.allowed("edit", &edit("글", "둘", "셋"), || {}).await.contains("1 edit"));
    assert!(rig.allowed("write", &write("새", "내 글"), || {}).await.contains("created"));
}
