//! One test for each way in which a resumed session can become one that no provider takes.

use crate::mem::{Tree, show};
use gjc_context::{ContextMessage, INTERRUPTED, Selected};
use gjc_entry::{Block, Body, Content, EntryId, Kind, Leaf, Message, Ordinal, Origin, StopReason, UserMessage};
use serde_json::json;
use testkit::session::{answer, assistant, call, calls, result, user};

fn said(blocks: Vec<Block>, stop: StopReason) -> Body {
    Body::Message(Message::Assistant(assistant(blocks, stop)))
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into(), origin: None, extra: Vec::new() }
}

fn thought(signature: Option<&str>) -> Block {
    Block::Thinking { thinking: "음".into(), signature: signature.map(Into::into), extra: Vec::new() }
}

fn one(id: &str) -> Body {
    calls("보자", &[(id, "read", "{}")])
}

fn compaction(tree: &mut Tree, summary: &str, kept: Option<Ordinal>) -> Ordinal {
    let first_kept = kept.map_or(EntryId::Other("nowhere".into()), |kept| tree.id(kept));
    tree.say(Body::Compaction { summary: summary.into(), first_kept, tokens_before: 7 })
}

fn summary(text: &str) -> String {
    format!("user: Summary of the conversation before this point:\n<summary>\n{text}\n</summary>")
}

fn interrupted(id: &str) -> String {
    format!("{id}! {INTERRUPTED}")
}

fn notes(tree: &Tree) -> Vec<String> {
    tree.view().1.into_iter().map(|note| note.sentence).collect()
}

// Calls and results.

#[test]
fn an_unanswered_call_in_mid_history_is_answered_in_its_place() {
    let mut tree = Tree::default();
    for turn in 0..40 {
        tree.say(user(&format!("질문 {turn}")));
        tree.say(one(&format!("c{turn}")));
        if turn != 10 {
            tree.say(result(&format!("c{turn}"), "read", "ok"));
        }
        tree.say(answer("답"));
    }
    let shown = tree.shown();
    let at = shown.iter().position(|line| line.contains("(c10)")).unwrap();
    assert_eq!(shown[at + 1], interrupted("c10"));
    assert_eq!(shown.iter().filter(|line| line.contains(INTERRUPTED)).count(), 1);
    assert_eq!(shown.len(), 160);
}

#[test]
fn a_provider_that_reuses_call_1_does_not_hide_the_unanswered_one() {
    let tree = Tree::path([
        user("하나"),
        one("call-1"),
        result("call-1", "read", "첫째"),
        user("둘"),
        one("call-1"),
        user("셋"),
        one("call-1"),
        result("call-1", "read", "셋째"),
    ]);
    assert_eq!(
        tree.shown(),
        [
            "user: 하나",
            "model: 보자 read(call-1)",
            "call-1: 첫째",
            "user: 둘",
            "model: 보자 read(call-1_2)",
            &interrupted("call-1_2"),
            "user: 셋",
            "model: 보자 read(call-1_3)",
            "call-1_3: 셋째",
        ]
    );
}

#[test]
fn of_two_hundred_finished_calls_none_is_marked_missing() {
    let huge = "가".repeat(200_000);
    let mut tree = Tree::path([user("하나")]);
    for turn in 0..100 {
        tree.say(calls("", &[("call-1", "read", "{}"), ("call-2", "read", "{}")]));
        tree.say(result("call-2", "read", if turn % 25 == 0 { &huge } else { "b" }));
        tree.say(result("call-1", "read", "a"));
    }
    let (view, notes) = tree.view();
    assert_eq!(notes, []);
    let shown: Vec<String> = view.messages.iter().map(show).collect();
    assert_eq!(shown.len(), 301);
    assert!(!shown.iter().any(|line| line.contains(INTERRUPTED)));
    assert!(tree.shown().iter().any(|line| line.contains(&huge)));
}

#[test]
fn ten_thousand_turns_of_call_1_cost_no_search_each() {
    let mut tree = Tree::path([user("하나")]);
    for _ in 0..10_000 {
        tree.say(one("call-1"));
        tree.say(result("call-1", "read", "a"));
    }
    // A search of all earlier names would be fifty million here and run into the time limit of the test.
    assert_eq!(tree.shown().last().unwrap(), "call-1_10000: a");
}

#[test]
fn results_out_of_order_are_put_in_the_order_of_the_calls() {
    let three = calls("", &[("a", "read", "{}"), ("b", "read", "{}"), ("c", "read", "{}")]);
    let tree =
        Tree::path([user("하나"), three, result("c", "read", "3"), result("a", "read", "1"), result("b", "read", "2")]);
    assert_eq!(tree.shown(), ["user: 하나", "model: read(a) read(b) read(c)", "a: 1", "b: 2", "c: 3"]);
}

#[test]
fn a_result_that_arrives_after_a_steering_message_stands_before_it() {
    let tree = Tree::path([user("하나"), one("a"), user("아니"), result("a", "read", "1"), user("잠깐")]);
    assert_eq!(tree.shown(), ["user: 하나", "model: 보자 read(a)", "a: 1", "user: 아니", "user: 잠깐"]);
    assert_eq!(notes(&tree), [""; 0]);
}

#[test]
fn a_second_result_of_a_call_leaves_and_is_reported() {
    let tree = Tree::path([user("하나"), one("a"), result("a", "read", "1"), result("a", "read", "2")]);
    assert_eq!(tree.shown(), ["user: 하나", "model: 보자 read(a)", "a: 1"]);
    assert_eq!(notes(&tree), ["a tool result has no call before it; it was left out"]);
}

#[test]
fn two_calls_of_one_answer_with_one_id_get_a_result_each() {
    let twice = calls("", &[("a", "read", "{}"), ("a", "read", "{}")]);
    let tree = Tree::path([user("하나"), twice, result("a", "read", "1"), result("a", "read", "2")]);
    assert_eq!(tree.shown(), ["user: 하나", "model: read(a) read(a_2)", "a: 1", "a_2: 2"]);
}

#[test]
fn a_result_behind_the_next_answer_is_not_taken_for_an_earlier_call() {
    let tree = Tree::path([user("하나"), one("a"), answer("답"), result("a", "read", "늦음"), user("둘")]);
    assert_eq!(tree.shown(), ["user: 하나", "model: 보자 read(a)", &interrupted("a"), "model: 답", "user: 둘"]);
    assert_eq!(notes(&tree).len(), 1);
}

#[test]
fn a_result_before_every_call_leaves() {
    let tree = Tree::path([result("a", "read", "1"), user("하나")]);
    assert_eq!(tree.shown(), ["user: 하나"]);
    assert_eq!(notes(&tree).len(), 1);
}

#[test]
fn a_result_without_content_says_so() {
    let tree = Tree::path([user("하나"), one("a"), result("a", "read", "")]);
    assert_eq!(tree.shown()[2], "a: (no output)");
}

#[test]
fn a_pruned_result_keeps_its_text_only() {
    let mut tree = Tree::path([user("하나"), calls("", &[("a", "read", "{}"), ("b", "read", "{}")])]);
    let image = json!({"type":"image","data":"AAAA","mimeType":"image/png"});
    let of = |id: &str, content| json!({"role":"toolResult","toolCallId":id,"toolName":"read","content":content,"prunedAt":5});
    tree.role(of("a", json!([image, {"type":"text","text":"글"}])));
    tree.role(of("b", json!([image])));
    assert_eq!(tree.shown()[2..], ["a: 글", "b: (no output)"]);
}

#[test]
fn foreign_and_long_call_ids_become_plain_and_stay_apart() {
    let long = "x".repeat(100);
    let ids = ["call_1|fc_가", "call_1|fc_나", "call_1_fc__", "", "call", &long, &format!("{long}y")];
    let given: Vec<(&str, &str, &str)> = ids.iter().map(|id| (*id, "read", "{}")).collect();
    let mut tree = Tree::path([user("하나"), calls("", &given)]);
    for (number, id) in ids.iter().enumerate().rev() {
        tree.say(result(id, "read", &number.to_string()));
    }
    let cut = "x".repeat(53);
    assert_eq!(
        tree.shown()[2..],
        [
            "call_1_fc__: 0",
            "call_1_fc___2: 1",
            "call_1_fc___3: 2",
            "call: 3",
            "call_2: 4",
            &format!("{cut}: 5"),
            &format!("{cut}_2: 6"),
        ]
    );
}

#[test]
fn an_id_that_was_given_out_is_not_given_to_one_that_bears_it() {
    let tree = Tree::path([
        user("하나"),
        calls("", &[("a", "r", "{}"), ("a", "r", "{}"), ("a_2", "r", "{}"), ("a", "r", "{}")]),
    ]);
    assert_eq!(tree.shown()[1], "model: r(a) r(a_2) r(a_2_2) r(a_3)");
}

// Answers that are not whole.

#[test]
fn an_aborted_answer_loses_unsigned_thinking_and_calls_that_never_ran() {
    let cut = vec![thought(None), thought(Some("s")), text("음"), call("a", "read", "{}"), call("b", "read", "{}")];
    let tree = Tree::path([user("하나"), said(cut, StopReason::Aborted), result("b", "read", "2"), user("둘")]);
    assert_eq!(tree.shown(), ["user: 하나", "model: <음> 음 read(b)", "b: 2", "user: 둘"]);
}

#[test]
fn a_failed_answer_keeps_what_it_said_and_leaves_when_it_said_nothing() {
    let tree = Tree::path([
        user("하나"),
        said(vec![text("반쯤")], StopReason::Error),
        user("둘"),
        said(Vec::new(), StopReason::Error),
        user("셋"),
        said(vec![text(" \n")], StopReason::Stop),
    ]);
    assert_eq!(tree.shown(), ["user: 하나", "model: 반쯤", "user: 둘", "user: 셋"]);
}

#[test]
fn an_answer_of_thinking_alone_leaves() {
    for blocks in [vec![thought(Some("s"))], vec![Block::RedactedThinking { data: "d".into(), extra: Vec::new() }]] {
        let tree = Tree::path([user("하나"), said(blocks, StopReason::Stop), user("둘")]);
        assert_eq!(tree.shown(), ["user: 하나", "user: 둘"]);
    }
}

#[test]
fn thinking_behind_the_last_word_leaves() {
    let cut = vec![thought(Some("1")), text("음"), thought(Some("2")), call("a", "read", "{}")];
    let tree = Tree::path([user("하나"), said(cut, StopReason::Aborted), user("둘")]);
    assert_eq!(tree.shown(), ["user: 하나", "model: <음> 음", "user: 둘"]);
}

#[test]
fn blocks_that_no_request_carries_leave_an_answer_and_are_reported() {
    let mut tree = Tree::path([user("하나")]);
    tree.role(json!({"role":"assistant","content":[{"type":"text","text":"답"},{"type":"hologram","x":1}]}));
    assert_eq!(tree.shown(), ["user: 하나", "model: 답"]);
    assert_eq!(notes(&tree).len(), 1);
}

#[test]
fn a_conversation_whose_beginning_is_lost_does_not_begin_with_the_model() {
    let tree = Tree::path([answer("답"), user("둘")]);
    let shown = tree.shown();
    assert_eq!(shown[1..], ["model: 답", "user: 둘"]);
    assert!(shown[0].starts_with("user: (The earlier part"), "{shown:?}");
}

// Other entries.

#[test]
fn messages_without_content_leave() {
    let nothing = |content| Body::Message(Message::User(UserMessage { content, at: 1, extra: Vec::new() }));
    let tree = Tree::path([
        nothing(Content::Text(String::new())),
        nothing(Content::Blocks(Vec::new())),
        user(""),
        user("하나"),
    ]);
    assert_eq!(tree.shown(), ["user: 하나"]);
    assert_eq!(notes(&tree).len(), 3);
}

#[test]
fn damaged_entries_are_reported_and_the_rest_is_sent() {
    let mut tree = Tree::path([user("하나")]);
    tree.damaged(Kind::Message);
    tree.say(user("둘"));
    assert_eq!(tree.shown(), ["user: 하나", "user: 둘"]);
    assert!(notes(&tree)[0].contains("cannot be read"), "{:?}", notes(&tree));
}

#[test]
fn images_of_people_and_tools_stay() {
    let image = json!({"type":"image","data":"AAAA","mimeType":"image/png"});
    let mut tree = Tree::default();
    tree.role(json!({"role":"user","content":[image, {"type":"text","text":"이것"}]}));
    tree.say(one("a"));
    tree.role(json!({"role":"toolResult","toolCallId":"a","toolName":"read","content":[image],"isError":false}));
    assert_eq!(tree.shown(), ["user: [image/png] 이것", "model: 보자 read(a)", "a: [image/png]"]);
}

#[test]
fn a_command_that_a_person_ran_is_told_unless_they_kept_it_out() {
    let mut tree = Tree::default();
    tree.role(json!({"role":"bashExecution","command":"ls 한글","output":"가","exitCode":0}));
    tree.role(json!({"role":"bashExecution","command":"false","output":"","exitCode":2}));
    tree.role(json!({"role":"pythonExecution","code":"1","output":"","cancelled":true}));
    tree.role(json!({"role":"bashExecution","command":"env","output":"KEY=secret","excludeFromContext":true}));
    assert_eq!(
        tree.shown(),
        [
            "user: Ran `ls 한글`\n```\n가\n```",
            "user: Ran `false`\n(no output)\n\nCommand exited with code 2",
            "user: Ran `1`\n(no output)\n\n(command cancelled)",
        ]
    );
    assert_eq!(notes(&tree), [""; 0]);
}

#[test]
fn roles_of_other_programs_are_sent_as_what_they_hold() {
    let image = json!({"type":"image","data":"AAAA","mimeType":"image/png"});
    let mut tree = Tree::default();
    tree.role(json!({"role":"developer","content":"규칙"}));
    tree.role(json!({"role":"hookMessage","content":[{"type":"text","text":"고리"}, image]}));
    tree.role(json!({"role":"fileMention","files":[{"path":"a.txt","content":"가"},{"path":"b.png","content":"","image":image}]}));
    tree.role(json!({"role":"oracle","words":1}));
    tree.role(json!({"role":"fileMention","files":[]}));
    assert_eq!(
        tree.shown(),
        [
            "user: 규칙",
            "user: 고리 [image/png]",
            "user: <system-reminder>\n<file path=\"a.txt\">\n가\n</file>\n<file path=\"b.png\">\n\n</file>\n</system-reminder> [image/png]",
        ]
    );
    assert_eq!(notes(&tree).len(), 2, "what cannot be sent is reported");
}

#[test]
fn a_programs_text_is_sent_and_its_state_is_not() {
    let mut tree = Tree::default();
    let text = |content: &str| Body::CustomMessage {
        custom_type: "handoff".into(),
        content: Content::Text(content.into()),
        display: false,
        details: None,
    };
    tree.say(text("넘김"));
    tree.say(text(""));
    tree.foreign("custom", json!({"customType":"user_todo_edit","data":{"x":1}}));
    assert_eq!(tree.shown(), ["user: 넘김"]);
}

#[test]
fn a_branch_summary_is_told_and_an_empty_one_is_not() {
    let of = |summary: &str| Body::BranchSummary { from: "root".into(), summary: summary.into() };
    let tree = Tree::path([user("하나"), of(""), of("갔다 옴"), user("둘")]);
    let told = "user: Summary of a branch of this conversation that was left:\n<summary>\n갔다 옴\n</summary>";
    assert_eq!(tree.shown(), ["user: 하나", told, "user: 둘"]);
}

// Compaction.

#[test]
fn a_compaction_keeps_from_the_kept_entry_on() {
    let mut tree = Tree::path([user("하나"), answer("답")]);
    let kept = tree.say(user("둘"));
    tree.say(answer("답 둘"));
    compaction(&mut tree, "요약", Some(kept));
    tree.say(user("셋"));
    assert_eq!(tree.shown(), [&summary("요약"), "user: 둘", "model: 답 둘", "user: 셋"]);
}

#[test]
fn a_compaction_whose_kept_entry_is_not_on_the_path_keeps_nothing() {
    let mut tree = Tree::path([user("하나")]);
    let left = tree.say(user("딴 가지"));
    tree.move_leaf(Some(Ordinal(0)));
    tree.say(user("둘"));
    compaction(&mut tree, "요약", Some(left));
    tree.say(user("셋"));
    assert_eq!(tree.shown(), [&summary("요약"), "user: 셋"]);
}

#[test]
fn of_chained_compactions_the_last_counts_and_results_that_lost_their_call_leave() {
    let mut tree = Tree::path([user("하나"), one("a")]);
    let kept = tree.say(result("a", "read", "1"));
    compaction(&mut tree, "첫 요약", Some(kept));
    tree.say(user("둘"));
    compaction(&mut tree, "둘째 요약", Some(kept));
    tree.say(user("셋"));
    assert_eq!(tree.shown(), [&summary("둘째 요약"), "user: 둘", "user: 셋"]);
    assert_eq!(notes(&tree), ["a tool result has no call before it; it was left out"]);
}

#[test]
fn a_compaction_that_cannot_be_read_counts_as_absent_not_as_all_of_them() {
    let mut tree = Tree::path([user("하나")]);
    compaction(&mut tree, "요약", None);
    tree.say(user("둘"));
    tree.damaged(Kind::Compaction);
    tree.say(user("셋"));
    assert_eq!(tree.shown(), [&summary("요약"), "user: 둘", "user: 셋"]);
    assert_eq!(notes(&tree).len(), 1);
}

#[test]
fn a_leaf_before_the_compaction_does_not_see_it() {
    let mut tree = Tree::path([user("하나"), answer("답")]);
    compaction(&mut tree, "요약", None);
    tree.move_leaf(Some(Ordinal(1)));
    tree.say(user("둘"));
    assert_eq!(tree.shown(), ["user: 하나", "model: 답", "user: 둘"]);
    let (selected, _) = gjc_context::select(&tree, Leaf::At(Ordinal(2))).unwrap();
    assert!(matches!(&selected[..], [Selected { message: ContextMessage::CompactionSummary { .. }, .. }]));
    assert!(gjc_context::select(&tree, Leaf::Root).unwrap().0.is_empty());
}

// What newer members of the family write.

#[test]
fn nothing_from_before_a_reset_is_sent() {
    let mut tree = Tree::path([user("하나")]);
    tree.foreign("reset_boundary", json!({}));
    let kept = tree.say(user("둘"));
    assert_eq!(tree.shown(), ["user: 둘"]);
    compaction(&mut tree, "요약", Some(Ordinal(0)));
    assert_eq!(tree.shown(), [&summary("요약"), "user: 둘"], "the kept part stops at the reset");
    compaction(&mut tree, "요약 둘", Some(kept));
    tree.foreign("reset_boundary", json!({}));
    tree.say(user("셋"));
    assert_eq!(tree.shown(), ["user: 셋"], "a reset takes the summary away too");
}

#[test]
fn an_edit_of_the_context_replaces_or_hides_one_entry() {
    let mut tree = Tree::path([user("하나"), one("a"), result("a", "read", "길다"), answer("숨김"), user("둘")]);
    let edit = |tree: &mut Tree, target: u32, replacement| {
        let target = tree.id(Ordinal(target)).to_string();
        tree.foreign("context_edit", json!({ "targetId": target, "replacement": replacement }));
    };
    edit(&mut tree, 2, json!({"content":"짧다"}));
    edit(&mut tree, 3, json!({"content":"먼저"}));
    edit(&mut tree, 3, json!(null));
    edit(&mut tree, 4, json!({"content":{"no":"content"}}));
    assert_eq!(tree.shown(), ["user: 하나", "model: 보자 read(a)", "a: 짧다", "user: 둘"]);
}

#[test]
fn a_system_message_from_before_a_compaction_is_not_sent_again() {
    let mut tree = Tree::default();
    let kept = tree.role(json!({"role":"system","content":"옛 규칙"}));
    tree.say(user("하나"));
    compaction(&mut tree, "요약", Some(kept));
    tree.role(json!({"role":"system","content":"새 규칙"}));
    assert_eq!(tree.shown(), [&summary("요약"), "user: 하나", "user: 새 규칙"]);
}

#[test]
fn words_of_programs_do_not_pass_for_a_persons() {
    let mut tree = Tree::path([user("하나")]);
    tree.role(json!({"role":"bashExecution","command":"ls","output":"a"}));
    compaction(&mut tree, "요약", Some(Ordinal(0)));
    let (view, _) = tree.view();
    let host = |message: &gjc_context::Msg| match &message.said {
        gjc_context::Said::User(blocks) => {
            blocks.iter().all(|block| matches!(block, Block::Text { origin: Some(Origin::Host), .. }))
        }
        _ => false,
    };
    assert_eq!(view.messages.iter().map(host).collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn a_conversation_whose_beginning_was_lost_says_so_to_the_model() {
    use gjc_log::Reader;
    use gjc_log::fs::sim::SimFs;
    use gjc_log::fs::{Fs, FsFile, Open};
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-06-05T07:18:54.123Z","cwd":"/"}"#;
    let said = |id: &str, parent: &str| {
        format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"user","content":"{id}"}}}}"#)
    };
    for (parent, lost) in [("null", false), ("\"0000000f\"", true)] {
        let fs = SimFs::new();
        let path = std::path::Path::new("/s.jsonl");
        let content = format!("{header}\n{}\n{}\n", said("0000000a", parent), said("0000000b", "\"0000000a\""));
        fs.open(path, Open::CreateNew).unwrap().append(content.as_bytes()).unwrap();
        let reader = Reader::open(&fs, path).unwrap().value;
        let (view, _) =
            gjc_context::view(&reader, gjc_entry::Leaf::Current, &mut gjc_context::Folds::default()).unwrap();
        assert_eq!(view.messages.len(), if lost { 3 } else { 2 });
        assert_eq!(view.messages[0].from.is_none(), lost);
    }
}
