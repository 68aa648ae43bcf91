//! Chromium without a window, driven through a pipe by its DevTools protocol. Without it these tests are left out aloud; with
//! `GJC_CI=1` they fail.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A browser with one page.
pub(crate) struct Browser {
    process: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    last: u64,
    /// Everything that it has told without being asked.
    pub(crate) events: Vec<Value>,
    _profile: tempfile::TempDir,
}

/// The browser of this machine, where there is one.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|dir| ["chromium", "chromium-browser", "google-chrome"].map(|name| dir.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("GJC_CI").is_none(),
            "GJC_CI=1, but there is no Chromium: pages may not be left out here"
        );
        eprintln!("left out: there is no chromium on the PATH to look at pages with");
    }
    found
}

impl Browser {
    /// Starts it; `None`, and a line that says so, where there is none.
    pub(crate) fn start() -> Option<Self> {
        let program = program()?;
        let profile = tempfile::tempdir().unwrap();
        let mut process = Command::new("sh")
            // It reads commands from 3 and tells on 4, each with a NUL behind it.
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program)
            .args(["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-quic"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--hide-scrollbars", "--lang=en-US"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, out) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (tell, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(out).split(0) {
                let Ok(message) = message else { return };
                if tell.send(serde_json::from_slice(&message).unwrap_or_default()).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self { process, to, from, session: None, last: 0, events: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", &json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(Into::into);
        for domain in ["Page", "Runtime", "Network", "Log", "Audits"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        // Keys go to the page, as if its window were in front.
        browser.call("Emulation.setFocusEmulationEnabled", &json!({"enabled": true}));
        browser.look(1280, 900, false);
        Some(browser)
    }

    /// Asks for something and waits for the answer.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        let id = self.last;
        let answer = self.until(|told| told["id"] == id);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    #[track_caller]
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let told = self.from.recv_timeout(LIMIT).expect("the browser answers");
            // A dialog would stop everything: it is closed, and stays among the events.
            if told["method"] == "Page.javascriptDialogOpening" {
                let close = json!({"id": 0, "method": "Page.handleJavaScriptDialog", "params": {"accept": false},
                    "sessionId": self.session});
                self.to.write_all(format!("{close}\0").as_bytes()).unwrap();
            }
            if wanted(&told) {
                return told;
            }
            if told["method"].is_string() {
                self.events.push(told);
            }
        }
    }

    /// Opens a file, and waits until its page has built itself.
    #[track_caller]
    pub(crate) fn open(&mut self, file: &Path) {
        self.open_address(&format!("file://{}", file.display()));
    }

    /// The same, by an address.
    #[track_caller]
    pub(crate) fn open_address(&mut self, address: &str) {
        self.events.clear();
        self.call("Page.navigate", &json!({"url": address}));
        let loaded = self.until(|told| told["method"] == "Page.loadEventFired");
        self.events.push(loaded);
        let ready = self.value("document.documentElement.dataset.ready");
        assert_eq!(ready, "true", "{:?}", self.told("Runtime.exceptionThrown"));
    }

    /// What the reader speaks.
    pub(crate) fn language(&mut self, language: &str) {
        let agent = self.value("navigator.userAgent");
        self.call("Network.setUserAgentOverride", &json!({"userAgent": agent, "acceptLanguage": language}));
    }

    /// The value of an expression in the page; a promise is waited for.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// What it has told of one kind.
    pub(crate) fn told(&self, method: &str) -> Vec<&Value> {
        self.events.iter().filter(|told| told["method"] == method).map(|told| &told["params"]).collect()
    }

    /// Presses a key, by its place on the keyboard.
    pub(crate) fn press(&mut self, code: &str, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", &json!({"type": kind, "code": code, "key": key}));
        }
    }

    /// The size of the window, and whether the reader likes it dark.
    pub(crate) fn look(&mut self, width: u32, height: u32, dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = json!([{"name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" }}]);
        self.call("Emulation.setEmulatedMedia", &json!({"features": scheme}));
    }

    /// A picture of the window.
    pub(crate) fn picture(&mut self, to: &Path) {
        use base64::Engine;
        let shot = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        let bytes = base64::prelude::BASE64_STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        std::fs::write(to, bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its children end with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
