//! One conversation over the three wires: cost, tier of service, changes while a session runs, limits, and recorded scripts.

use crate::json::events;
use crate::kit::*;
use crate::rebuilt::assert_rebuilt;
use gjc_protocol::EventBody;
use serde_json::{Value, json};
use std::path::Path;
use testkit::anthropic::{self, Turn};
use testkit::harness::{Home, Run};
use testkit::openai::{self, Chat, Response};
use testkit::stub::{Gate, Reply, Script, Stub};

/// One of the three wires.
#[derive(Clone, Copy, PartialEq)]
enum Wire {
    Messages,
    Chat,
    Responses,
}

const ALL: [Wire; 3] = [Wire::Messages, Wire::Chat, Wire::Responses];

impl Wire {
    fn provider(self) -> &'static str {
        match self {
            Self::Messages => "anthropic",
            Self::Chat => "openai",
            Self::Responses => "openai-responses",
        }
    }

    /// A model whose price is known.
    fn known(self) -> String {
        let model = if self == Self::Messages { "claude-sonnet-4-5-20250929" } else { "gpt-5-2025-08-07" };
        format!("{}/{model}", self.provider())
    }

    fn run<'h>(self, home: &'h Home, stub: &Stub, model: &str) -> Run<'h> {
        let keys = gjc(home).env("ANTHROPIC_API_KEY", KEY).env("OPENAI_API_KEY", KEY);
        keys.args(["--provider-url", &stub.url(), "--model", model])
    }

    fn ask<'h>(self, home: &'h Home, stub: &Stub, prompt: &str) -> Run<'h> {
        self.run(home, stub, &format!("{}/gpt-5-stub", self.provider())).args(["-p", prompt])
    }

    fn text(self, text: &str) -> Reply {
        match self {
            Self::Messages => Turn::new("m").text(text).reply(),
            Self::Chat => Chat::new("c").text(text).reply(),
            Self::Responses => Response::new("r").text(text).reply(),
        }
    }

    /// A text that took 1,000 tokens of fresh input, 10,000 read from a cache, 100 of output.
    fn counted(self, text: &str) -> Reply {
        let usage = openai::Usage { input: 11_000, output: 100, cached: 10_000 };
        let messages = anthropic::Usage { input: 1_000, output: 100, cache_read: 10_000, cache_write: 0 };
        match self {
            Self::Messages => Turn::new("m").usage(messages).text(text).reply(),
            Self::Chat => Chat::new("c").usage(usage).text(text).reply(),
            Self::Responses => Response::new("r").usage(usage).text(text).reply(),
        }
    }

    /// Thinking with a signature, words, and calls in parallel.
    fn calls(self, calls: &[(&str, &str, &str)]) -> Reply {
        let (thought, signature, said) = ("먼저 읽자", "c2lnbmF0dXJl", "읽습니다.");
        match self {
            Self::Messages => Turn::new("m").thinking(thought, signature).text(said).interleaved_calls(calls).reply(),
            Self::Chat => {
                Chat::new("c").signed_reasoning(thought, signature).text(said).interleaved_calls(calls).reply()
            }
            Self::Responses => {
                Response::new("r").reasoning(thought, signature).text(said).interleaved_calls(calls).reply()
            }
        }
    }

    /// A refusal as this wire's own servers word it.
    fn error(self, status: u16, kind: &str, message: &str) -> Reply {
        match self {
            Self::Messages => anthropic::error(status, kind, message),
            _ => openai::error(status, kind, message),
        }
    }
}

/// The code of the error that a run told, and how often the model was asked.
fn refused(wire: Wire, replies: Vec<Reply>) -> (Option<String>, usize, Vec<EventBody>) {
    let home = Home::new();
    let stub = crate::kit::replies(replies);
    let out = wire.ask(&home, &stub, "안녕").args(["--mode", "json"]).output();
    let events = events(&out);
    let code = events.iter().find_map(|event| match event {
        EventBody::Error { code, .. } => Some(code.clone()),
        _ => None,
    });
    assert_eq!(out.code(), Some(i32::from(code.is_some())), "{out}");
    assert!(!format!("{out}").contains(KEY), "{out}");
    (code, stub.requests().len(), events)
}

#[test]
fn each_refusal_has_its_code_on_every_wire() {
    for wire in ALL {
        let once = |status, kind, message| {
            let (code, asked, _) = refused(wire, vec![wire.error(status, kind, message)]);
            assert_eq!(asked, 1, "{status} {message}");
            code.unwrap()
        };
        assert_eq!(once(401, "authentication_error", "invalid x-api-key"), "provider_auth");
        assert_eq!(once(413, "request_too_large", "Request exceeds the maximum size"), "context_overflow");
        assert_eq!(once(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), "context_overflow");
        let window = "Your input exceeds the context window of this model.";
        assert_eq!(once(400, "context_length_exceeded", window), "context_overflow");
        assert_eq!(once(429, "insufficient_quota", "You exceeded your current quota."), "provider_quota");
        for status in [429, 500, 529] {
            let busy = wire.error(status, "overloaded_error", "busy").header("retry-after-ms", "1");
            let (code, asked, events) = refused(wire, vec![busy, wire.text("네")]);
            assert_eq!((code, asked), (None, 2), "{status} is asked again");
            assert!(events.iter().any(|event| matches!(event, EventBody::Retry { attempt: 2, .. })));
        }
    }
}

#[test]
fn an_overflow_leaves_the_session_whole_and_says_what_to_do() {
    for wire in ALL {
        let home = Home::new();
        let full = wire.error(400, "context_length_exceeded", "This model's maximum context length is 9 tokens.");
        let stub = replies([wire.text("첫 답"), full, wire.text("다시")]);
        wire.ask(&home, &stub, "하나").output().ok();
        let file = the_session(&home);
        let go = |prompt: &str| wire.ask(&home, &stub, prompt).args(["--resume", &id_of(&file)]);
        let out = go("둘").output();
        assert!(out.code() == Some(1) && out.err().contains("choose a model with a longer context"), "{out}");
        assert_eq!(go("셋").output().ok().out(), "다시\n");
        assert_rebuilt(&home, &stub, &file, &[0, 2]);
    }
}

#[test]
fn an_answer_has_its_cost_where_the_price_is_known_and_none_where_it_is_not() {
    for wire in ALL {
        let home = Home::new();
        let stub = replies([wire.counted("하나"), wire.counted("둘"), wire.counted("셋")]);
        let out = wire.run(&home, &stub, &wire.known()).args(["-p", "x", "--mode", "json"]).output().ok();
        let expected = match wire {
            Wire::Messages => {
                json!({"input": 0.003, "output": 0.0015, "cacheRead": 0.003, "cacheWrite": 0.0, "total": 0.0075})
            }
            _ => json!({"input": 0.00125, "output": 0.001, "cacheRead": 0.00125, "cacheWrite": 0.0, "total": 0.0035}),
        };
        let told = events(&out).into_iter().find_map(|event| match event {
            EventBody::Usage { usage } => Some(serde_json::to_value(usage).unwrap()["cost"].clone()),
            _ => None,
        });
        assert_eq!(told.as_ref(), Some(&expected));
        let file = the_session(&home);
        assert_eq!(answers(&file)[0].1["usage"]["cost"], expected);
        // Another model, whose price nobody knows: the sum stays.
        let go = |model: &str| wire.run(&home, &stub, model).args(["-p", "y", "--resume", &id_of(&file)]);
        let unknown = format!("{}/한글-모델", wire.provider());
        go(&unknown).output().ok();
        assert_eq!(answers(&file)[1].1["usage"]["cost"]["total"], 0.0);
        // A person's own price.
        home.write("home/.gjc/agent/config.yml", "prices:\n  한글-모델: {input: 1, output: 2.5}\n");
        go(&unknown).output().ok();
        let total = answers(&file)[2].1["usage"]["cost"]["total"].clone();
        assert_eq!(total, 0.001 + 0.01 + 0.00025);
    }
}

#[test]
fn the_price_of_a_clone_does_not_count() {
    let home = Home::new();
    home.write("project/.gjc/config.yml", "prices: {gpt-5-stub: {input: 1, output: 1}}\nserviceTier: priority\n");
    let stub = replies([Wire::Chat.counted("네")]);
    let out = Wire::Chat.ask(&home, &stub, "x").output().ok();
    assert!(out.err().contains("prices") && out.err().contains("serviceTier"), "{out}");
    assert_eq!(answers(&the_session(&home))[0].1["usage"]["cost"]["total"], 0.0);
    assert!(stub.requests()[0].json().get("service_tier").is_none());
}

#[test]
fn a_tier_is_asked_for_in_the_words_of_each_wire_and_a_session_keeps_it() {
    for wire in ALL {
        let home = Home::new();
        home.write("home/.gjc/agent/config.yml", "serviceTier: default\n");
        let stub = replies([wire.text("하나"), wire.text("둘")]);
        wire.ask(&home, &stub, "x").output().ok();
        home.write("home/.gjc/agent/config.yml", "serviceTier: priority\n");
        let file = the_session(&home);
        wire.ask(&home, &stub, "y").args(["--resume", &id_of(&file)]).output().ok();
        let word = if wire == Wire::Messages { "standard_only" } else { "default" };
        for request in stub.requests() {
            assert_eq!(request.json()["service_tier"], word);
        }
        assert_rebuilt(&home, &stub, &file, &[0, 1]);
        let tiers: Vec<Value> = lines(&file).into_iter().filter(|line| line["type"] == "service_tier_change").collect();
        assert_eq!(tiers.len(), 1, "the family's programs know");
        assert_eq!(tiers[0]["serviceTier"], "default");
    }
}

#[test]
fn a_usage_limit_is_waited_for_once_where_a_person_wants_that() {
    for wire in ALL {
        let limit = || {
            let message = "This request would exceed your usage limit.";
            wire.error(429, "rate_limit_error", message).header("retry-after-ms", "20")
        };
        // Off: the sentence names the time.
        let (code, asked, events) = refused(wire, vec![limit()]);
        assert_eq!((code.as_deref(), asked), (Some("provider_quota"), 1));
        let hint = events.iter().find_map(|event| match event {
            EventBody::Error { hint, .. } => hint.clone(),
            _ => None,
        });
        assert!(hint.is_some_and(|hint| hint.contains("the limit is reset at 20") && hint.contains("waitForQuota")));
        for (then, expected, asked) in [(wire.text("네"), Some(0), 2), (limit(), Some(1), 2)] {
            let home = Home::new();
            home.write("home/.gjc/agent/config.yml", "retry: {waitForQuota: 1m}\n");
            let stub = replies([limit(), then]);
            let out = wire.ask(&home, &stub, "x").args(["--mode", "json"]).output();
            assert_eq!((out.code(), stub.requests().len()), (expected, asked), "{out}");
            let told = crate::json::events(&out);
            let wait = told.iter().find_map(|event| match event {
                EventBody::QuotaWait { left_ms, why, .. } => Some((*left_ms, why.clone())),
                _ => None,
            });
            assert!(wait.is_some_and(|(left, why)| left <= 20 && why.contains("usage limit")), "{out}");
            assert_eq!(stub.requests()[0].body, stub.requests()[1].body);
        }
    }
}

/// K26: a server that takes 20 MB, as some do, and pictures of 28 MB.
#[test]
fn the_oldest_pictures_leave_a_request_that_is_too_large_and_the_turn_goes_on() {
    const MOST: usize = 20_000_000;
    for wire in ALL {
        let home = Home::new();
        let mut calls = Vec::new();
        for nth in 0..6u8 {
            let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
            png.resize(3_500_000, nth);
            home.write(format!("project/그림{nth}.png"), png);
            calls.push((format!("t{nth}"), format!(r#"{{"path":"그림{nth}.png"}}"#)));
        }
        let calls: Vec<(&str, &str, &str)> =
            calls.iter().map(|(id, arguments)| (id.as_str(), "read", arguments.as_str())).collect();
        let look = wire.calls(&calls);
        let stub = Stub::start(Script::answer(move |request, _| {
            if request.body.len() > MOST {
                return wire.error(413, "request_too_large", "Request exceeds the maximum size");
            }
            let seen = String::from_utf8_lossy(&request.body).contains("그림5");
            if seen { wire.text("다 봤습니다") } else { look.clone() }
        }));
        let out = wire.ask(&home, &stub, "그림을 봐").output().ok();
        assert_eq!(out.out(), "다 봤습니다\n");
        assert!(out.err().contains("too large for the provider (28 MB)"), "{out}");
        let file = the_session(&home);
        let sizes: Vec<usize> = stub.requests().iter().map(|request| request.body.len()).collect();
        assert!(sizes.len() == 3 && sizes[1] > MOST && sizes[2] < MOST && sizes[2] > 9_000_000, "{sizes:?}");
        // The next turn is not refused, and does not have to leave anything out again.
        wire.ask(&home, &stub, "또").args(["--resume", &id_of(&file)]).output().ok();
        assert_eq!(stub.requests().len(), 4);
        assert_rebuilt(&home, &stub, &file, &[0, 2, 3]);
        let sent = String::from_utf8(stub.requests()[3].body.clone()).unwrap();
        assert_eq!(sent.matches("an image stood here; it was left out").count(), 4, "the two newest stay");
        let left: Vec<Value> = lines(&file).into_iter().filter(|line| line["customType"] == "gjc.images").collect();
        assert_eq!(left.len(), 1);
        let pictures: Vec<_> = walk(&home.agent_dir().join("blobs"))
            .into_iter()
            .filter(|path| path.metadata().unwrap().len() == 3_500_000)
            .collect();
        assert_eq!(pictures.len(), 6, "nothing of the session is gone");
    }
}

/// What was said, without what a script has no place for: ids, signatures, who said it, when and for what price.
fn conversation(file: &Path) -> Vec<Value> {
    let plain = |mut message: Value| {
        let mut names = std::collections::BTreeMap::new();
        let fields = message.as_object_mut().unwrap();
        fields.retain(|name, _| ["role", "content", "stopReason", "usage", "isError", "toolName"].contains(&&**name));
        if let Some(usage) = fields.get_mut("usage") {
            usage.as_object_mut().unwrap().remove("cost");
        }
        for block in fields["content"].as_array_mut().into_iter().flatten() {
            let next = names.len();
            let block = block.as_object_mut().unwrap();
            block.retain(|name, _| !["thinkingSignature", "thoughtSignature", "textSignature"].contains(&&**name));
            if let Some(id) = block.get_mut("id") {
                *id = json!(*names.entry(id.to_string()).or_insert(next));
            }
        }
        message
    };
    messages(file).into_iter().map(plain).collect()
}

#[test]
fn what_was_recorded_plays_back_to_the_same_conversation() {
    let secret = &*format!("sk-proj-{}", "aB3".repeat(14));
    for wire in ALL {
        let (home, script) = (Home::new(), "녹음.jsonl");
        home.write("project/메모.md", "한글\n");
        let calls =
            [("t1", "read", r#"{"path": "메모.md"}"#), ("t2", "bash", r#"{"command":"printf '굵게'; exit 7"}"#)];
        let busy = wire.error(503, "overloaded_error", "busy").header("retry-after-ms", "1");
        let stub = replies([wire.calls(&calls), busy, wire.counted(&format!("{KEY} and {secret}")), wire.text("끝")]);
        let record = |prompt: &str| wire.ask(&home, &stub, prompt).args(["--record", script]);
        record("읽어 줘").output().ok();
        let file = the_session(&home);
        record("또").args(["--resume", &id_of(&file)]).output().ok();
        let path = home.work().join(script);
        let recorded = std::fs::read_to_string(&path).unwrap();
        assert_eq!(recorded.lines().count(), 4, "{recorded}");
        assert!(!recorded.contains(KEY) && !recorded.contains(secret), "{recorded}");
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);

        let again = Home::new();
        again.write("project/메모.md", "한글\n");
        again.write(format!("project/{script}"), &recorded);
        again.write("home/.gjc/agent/config.yml", "retry: {longestDelay: 1ms}\n");
        // The script's second process plays its last line.
        again.write("project/끝.jsonl", recorded.lines().last().unwrap());
        let play =
            |script: &str, prompt: &str| gjc(&again).args(["--model", &format!("scripted/{script}"), "-p", prompt]);
        play(script, "읽어 줘").output().ok();
        let copy = the_session(&again);
        play("끝.jsonl", "또").args(["--resume", &id_of(&copy)]).output().ok();
        let text = serde_json::to_string(&conversation(&file)).unwrap();
        let masked: Vec<Value> = serde_json::from_str(&text.replace(KEY, "[key]").replace(secret, "[secret]")).unwrap();
        assert_eq!(conversation(&copy), masked);
    }
}

#[test]
fn what_is_no_script_is_not_recorded_to() {
    let home = Home::new();
    let stub = replies([Wire::Chat.text("네")]);
    home.write("project/할일.txt", "중요한 것\n");
    std::os::unix::fs::symlink(home.work().join("없음"), home.work().join("링크")).unwrap();
    for name in ["할일.txt", "링크", ".", "없는폴더/x"] {
        let out = Wire::Chat.ask(&home, &stub, "x").args(["--record", name]).output();
        assert_eq!((out.code(), stub.requests().len()), (Some(2), 0), "{out}");
        assert!(out.err().contains("cannot be recorded to") && out.err().contains("hint: "), "{out}");
    }
    assert_eq!(std::fs::read_to_string(home.work().join("할일.txt")).unwrap(), "중요한 것\n");
    assert!(session_files(&home).is_empty() && !home.work().join("없음").exists());
}

#[test]
fn an_interrupted_answer_is_recorded_as_far_as_it_came() {
    let home = Home::new();
    let turn = Turn::new("m").text("여기까지 그리고 나머지");
    let gate = testkit::stub::Gate::new();
    let stub = replies([turn.reply().gate_at(turn.event_ends()[3], &gate)]);
    let mut run = ask(&home, &stub, "x").args(["--mode", "json", "--record", "r.jsonl"]).spawn();
    run.close_stdin();
    run.wait_for(|line| line.contains("text_delta"));
    run.interrupt();
    assert_eq!(run.wait().code(), Some(130));
    let line: Value = serde_json::from_str(&std::fs::read_to_string(home.work().join("r.jsonl")).unwrap()).unwrap();
    assert_eq!(line["stopReason"], "aborted");
    assert_eq!(line["content"][0]["text"], answers(&the_session(&home))[0].1["content"][0]["text"]);
}

#[test]
fn model_thinking_and_tier_change_while_a_session_runs_and_are_kept() {
    let home = Home::new();
    let stub = replies([Wire::Messages.text("하나"), Wire::Responses.text("둘"), Wire::Responses.text("셋")]);
    let mut run = Wire::Messages.run(&home, &stub, "anthropic/claude-stub-1").args(["--mode", "rpc"]).spawn();
    let mut call = |id: &str, command: Value| {
        run.send(&json!({"id": id, "command": command}).to_string());
        let line = run.wait_for(|line| line.contains(&format!("\"id\":\"{id}\"")) && line.contains("\"outcome\""));
        serde_json::from_str::<Value>(&line).unwrap()
    };
    let say = |text: &str| json!({"type": "prompt", "parts": [{"text": text, "origin": "typed"}]});
    call("1", say("하나"));
    stub.wait_for_requests(1, LIMIT);
    stub.wait_for_played(1);
    let refused = call("2", json!({"type": "set_model", "model": "nobody/x"}));
    assert_eq!((&refused["outcome"], &refused["code"]), (&json!("refused"), &json!("unknown_model")));
    let model = call("3", json!({"type": "set_model", "model": "openai-responses/gpt-5-stub"}));
    assert_eq!(model["value"], json!({"provider": "openai", "model": "gpt-5-stub", "api": "openai-responses"}));
    let plan = call("3b", json!({"type": "set_model", "role": "plan", "model": "openai-responses/gpt-5-plan"}));
    assert_eq!(plan["value"]["model"], "gpt-5-plan");
    assert_eq!(call("4", json!({"type": "set_thinking", "level": "high"}))["outcome"], "done");
    assert_eq!(call("5", json!({"type": "set_tier", "tier": "flex"}))["outcome"], "done");
    assert_eq!(call("6", json!({"type": "set_tier", "tier": "fast"}))["code"], "unreadable");
    call("7", say("둘"));
    stub.wait_for_requests(2, LIMIT);
    stub.wait_for_played(2);
    run.close_stdin();
    run.wait().ok();
    let file = the_session(&home);
    gjc(&home)
        .args(["--provider-url", &stub.url(), "-p", "셋", "--resume", &id_of(&file)])
        .env("OPENAI_API_KEY", KEY)
        .output()
        .ok();
    for request in &stub.requests()[1..] {
        let body = request.json();
        assert_eq!(request.path, "/v1/responses");
        let (effort, tier) = (&body["reasoning"]["effort"], &body["service_tier"]);
        assert_eq!((&body["model"], effort, tier), (&json!("gpt-5-stub"), &json!("high"), &json!("flex")));
    }
    assert_rebuilt(&home, &stub, &file, &[0, 1, 2]);
    let changes: Vec<Value> = lines(&file).into_iter().filter(|line| line["type"] == "model_change").collect();
    let (plan, changes): (Vec<Value>, Vec<Value>) = changes.into_iter().partition(|change| change["role"] == "plan");
    assert_eq!((plan.len(), &plan[0]["modelId"]), (1, &json!("gpt-5-plan")));
    assert_eq!(changes.len(), 1);
    assert_eq!((&changes[0]["provider"], &changes[0]["modelId"]), (&json!("openai"), &json!("gpt-5-stub")));
}

#[test]
fn a_model_that_another_program_has_chosen_since_is_that_of_the_session() {
    let home = Home::new();
    let stub = replies([Wire::Responses.text("하나"), Wire::Responses.text("둘"), Wire::Messages.text("셋")]);
    Wire::Responses.ask(&home, &stub, "x").output().ok();
    let file = the_session(&home);
    let choose = |id: &str, provider: &str, model: &str| {
        let leaf = lines(&file).last().unwrap()["id"].clone();
        let line = json!({
            "type": "model_change", "id": id, "parentId": leaf, "timestamp": "2026-06-05T07:18:54.123Z",
            "provider": provider, "modelId": model,
        });
        let mut text = std::fs::read_to_string(&file).unwrap();
        text.push_str(&format!("{line}\n"));
        std::fs::write(&file, text).unwrap();
        let keys = gjc(&home).env("ANTHROPIC_API_KEY", KEY).env("OPENAI_API_KEY", KEY);
        keys.args(["--provider-url", &stub.url(), "-p", "y", "--resume", &id_of(&file)]).output().ok();
    };
    choose("aaaaaaa1", "openai", "o4-stub");
    choose("aaaaaaa2", "anthropic", "claude-stub-2");
    let asked: Vec<(String, Value)> =
        stub.requests().iter().map(|request| (request.path.clone(), request.json()["model"].clone())).collect();
    assert_eq!(asked[1], ("/v1/responses".into(), json!("o4-stub")), "the same provider keeps its wire");
    assert_eq!(asked[2], ("/v1/messages".into(), json!("claude-stub-2")));
    assert_rebuilt(&home, &stub, &file, &[0, 1, 2]);
}

#[test]
fn plan_mode_is_answered_by_its_own_model_and_the_conversation_by_its_own_again() {
    let home = Home::new();
    home.write("home/.gjc/agent/config.yml", "models: {plan: openai/plan-stub}\n");
    let stub = replies([
        Wire::Responses.text("하나"),
        Wire::Chat.text("계획"),
        Wire::Chat.text("다시 계획"),
        Wire::Responses.text("둘"),
    ]);
    let talk = |resume: Option<&str>, commands: &[Value]| {
        let run = gjc(&home).env("OPENAI_API_KEY", KEY).args(["--provider-url", &stub.url(), "--mode", "rpc"]);
        let mut run = match resume {
            None => run.args(["--model", "openai-responses/talk-stub"]).spawn(),
            Some(id) => run.args(["--resume", id]).spawn(),
        };
        for (nth, command) in commands.iter().enumerate() {
            run.send(&json!({"id": nth.to_string(), "command": command}).to_string());
            run.wait_for(|line| line.contains(&format!("\"id\":\"{nth}\"")) && line.contains("\"outcome\""));
            if command["type"] == "prompt" {
                run.wait_for(|line| line.contains("\"turn_ended\""));
            }
        }
        run.close_stdin();
        run.wait().ok();
    };
    let say = |text: &str| json!({"type": "prompt", "parts": [{"text": text, "origin": "typed"}]});
    let mode = |mode: &str| json!({"type": "set_mode", "mode": mode});
    talk(None, &[say("하나"), mode("plan"), say("계획해")]);
    let file = the_session(&home);
    // Resumed in plan mode, and then out of it: the settings of its last request were those of plan mode.
    talk(Some(&id_of(&file)), &[say("더"), mode("none"), say("해")]);
    let asked: Vec<(String, String)> = stub
        .requests()
        .iter()
        .map(|request| (request.path.clone(), request.json()["model"].as_str().unwrap().to_owned()))
        .collect();
    let talks = ("/v1/responses".to_owned(), "talk-stub".to_owned());
    let plans = ("/v1/chat/completions".to_owned(), "plan-stub".to_owned());
    assert_eq!(asked, [talks.clone(), plans.clone(), plans, talks]);
    assert_rebuilt(&home, &stub, &file, &[0, 1, 2, 3]);
}

/// The words of a plan that is used up are those of a limit of the moment; without leave to wait nobody waits, however short.
#[test]
fn a_plan_that_is_used_up_is_no_limit_of_the_moment() {
    let used_up = || {
        anthropic::error(429, "rate_limit_error", "slow down")
            .header("anthropic-ratelimit-unified-status", "rejected")
            .header("anthropic-ratelimit-unified-reset", "1")
            .header("retry-after", "0")
    };
    let (code, asked, _) = refused(Wire::Messages, vec![used_up(), text("네").reply()]);
    assert_eq!((code.as_deref(), asked), (Some("provider_quota"), 1));
    let home = Home::new();
    home.write("home/.gjc/agent/config.yml", "retry: {waitForQuota: 1m}\n");
    let stub = replies([used_up(), text("네").reply()]);
    assert_eq!(Wire::Messages.ask(&home, &stub, "x").output().ok().out(), "네\n");
}

#[test]
fn what_is_changed_during_the_last_answer_is_kept_too() {
    let home = Home::new();
    let gate = Gate::new();
    let stub = replies([text("하나").reply().gate_at(20, &gate)]);
    let mut run = on(&home, &stub).args(["--mode", "rpc"]).spawn();
    let say = json!({"type": "prompt", "parts": [{"text": "x", "origin": "typed"}]});
    run.send(&json!({"id": "1", "command": say}).to_string());
    stub.wait_for_requests(1, LIMIT);
    run.send(&json!({"id": "2", "command": {"type": "set_thinking", "level": "high"}}).to_string());
    run.wait_for(|line| line.contains("\"id\":\"2\""));
    gate.open();
    run.close_stdin();
    run.wait().ok();
    let levels: Vec<Value> =
        lines(&the_session(&home)).into_iter().filter(|line| line["type"] == "thinking_level_change").collect();
    assert_eq!(levels.last().map(|line| &line["thinkingLevel"]), Some(&json!("high")));
}

#[test]
fn a_script_without_a_last_line_feed_goes_on_in_a_line_of_its_own() {
    let home = Home::new();
    let script = home.write("대본.jsonl", r#"{"content":[{"type":"text","text":"옛말"}]}"#);
    let stub = replies([text("새말").reply()]);
    on(&home, &stub).args(["-p", "x", "--record"]).arg(&script).output().ok();
    for said in ["옛말", "새말"] {
        assert!(std::fs::read_to_string(&script).unwrap().lines().any(|line| line.contains(said)), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&script).unwrap().lines().count(), 2);
    // A model that is none leaves nothing behind.
    let new = home.tmp().join("새.jsonl");
    let failed = gjc(&home).args(["-p", "x", "--model", "scripted/없다.jsonl", "--record"]).arg(&new).output();
    assert!(failed.code() == Some(1) && !new.exists(), "{failed}");
}
