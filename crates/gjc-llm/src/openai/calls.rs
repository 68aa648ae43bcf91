//! Which call a piece of one belongs to. Servers that stream as OpenAI does number their calls; others number all of them 0, or
//! none, give no ids, repeat the name with each piece, or send a call whole.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A piece of a call.
#[derive(Deserialize)]
pub(super) struct CallPiece {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPiece>,
    /// What the provider wants back with the call.
    extra_content: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
pub(super) struct FunctionPiece {
    name: Option<String>,
    /// A string, or (in the manner of Ollama's own API) the object itself.
    arguments: Option<Box<RawValue>>,
}

/// The calls of an answer.
#[derive(Default)]
pub(super) struct Calls(Vec<Call>);

/// A call so far.
#[derive(Default)]
pub(super) struct Call {
    /// The number that its server gives it.
    number: Option<u64>,
    /// Its id as the server gives it; empty for none.
    id: String,
    name: String,
    /// All of its arguments that came.
    arguments: String,
    /// Where in them the text has got to.
    depth: Depth,
    /// What the provider wants back.
    pub(super) signature: Option<String>,
    /// The index of its block, once it has begun.
    pub(super) block: Option<u16>,
    /// How much of the arguments was passed on.
    told: usize,
}

impl CallPiece {
    /// The only call of the API's first version, `function_call`.
    pub(super) fn of(function: FunctionPiece) -> Self {
        Self { index: None, id: None, function: Some(function), extra_content: None }
    }
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Call)> {
        self.0.iter_mut().enumerate()
    }

    /// Takes a piece; gives the place of its call.
    pub(super) fn take(&mut self, piece: CallPiece) -> usize {
        let function = piece.function.unwrap_or_default();
        let (id, name) = (piece.id.unwrap_or_default(), function.name.unwrap_or_default());
        let at = self.place(piece.index, &id, &name).unwrap_or_else(|| {
            self.0.push(Call { number: piece.index, ..Call::default() });
            self.0.len() - 1
        });
        let call = &mut self.0[at];
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        }
        if let Some(arguments) = function.arguments {
            let text = text_of(&arguments);
            call.depth.read(&text);
            call.arguments.push_str(&text);
        }
        if let Some(extra) = piece.extra_content.filter(|extra| extra.get().starts_with('{')) {
            call.signature = Some(extra.get().replace(['\n', '\r'], " "));
        }
        at
    }

    /// The call that a piece goes on with; `None` when it begins one.
    fn place(&self, number: Option<u64>, id: &str, name: &str) -> Option<usize> {
        if !id.is_empty()
            && let Some(at) = self.0.iter().rposition(|call| call.id == id)
        {
            return Some(at);
        }
        let at = match number {
            Some(number) => self.0.iter().rposition(|call| call.number == Some(number))?,
            None => self.0.len().checked_sub(1)?,
        };
        let call = &self.0[at];
        // Only a beginning bears a name, but some servers repeat it: then the open call has the same, and is not whole. A new id
        // alone begins nothing: some servers make one up for each piece.
        let named = !name.is_empty() && !call.name.is_empty();
        let another_id = !id.is_empty() && !call.id.is_empty();
        (!named || !(another_id || name != call.name || call.depth.is_whole())).then_some(at)
    }
}

impl Call {
    /// Its id and name, once it can begin: a call without a name is none yet. `place`: its place in the answer, for servers
    /// that give no ids.
    pub(super) fn begin(&mut self, place: usize, block: u16) -> Option<(String, String)> {
        if self.block.is_some() || self.name.is_empty() {
            return None;
        }
        self.block = Some(block);
        let id = if self.id.is_empty() { format!("call_{}", place + 1) } else { self.id.clone() };
        Some((id, self.name.clone()))
    }

    /// Arguments that were not passed on yet.
    pub(super) fn news(&mut self) -> String {
        let news = self.arguments[self.told..].to_owned();
        self.told = self.arguments.len();
        news
    }
}

/// How deep in an object a text is. It reads each byte once, however often the question is asked.
#[derive(Default)]
struct Depth {
    open: usize,
    begun: bool,
    in_string: bool,
    escaped: bool,
}

impl Depth {
    fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if std::mem::take(&mut self.escaped) => {}
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' => {
                    self.open += 1;
                    self.begun = true;
                }
                b'}' => self.open = self.open.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// The object that began has ended.
    fn is_whole(&self) -> bool {
        self.begun && self.open == 0 && !self.in_string
    }
}

/// Arguments as text: what a string says, or the JSON itself. `null` is nothing.
fn text_of(raw: &RawValue) -> String {
    match raw.get() {
        "null" => String::new(),
        json if json.starts_with('"') => serde_json::from_str(json).unwrap_or_default(),
        json => json.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls that pieces make, as `id name arguments`.
    fn calls(pieces: &[&str]) -> Vec<String> {
        let mut calls = Calls::default();
        for piece in pieces {
            calls.take(serde_json::from_str(piece).unwrap());
        }
        calls.0.iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect()
    }

    #[test]
    fn numbered_calls_may_be_interleaved() {
        let pieces = [
            r#"{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}"#,
            r#"{"index":1,"id":"b","type":"function","function":{"name":"read","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"{\"경"}}"#,
            r#"{"index":1,"function":{"arguments":"{}"}}"#,
            r#"{"index":0,"function":{"arguments":"로\":1}"}}"#,
        ];
        assert_eq!(calls(&pieces), [r#"a read {"경로":1}"#, "b read {}"]);
    }

    #[test]
    fn without_numbers_and_ids_a_name_begins_a_call() {
        let pieces = [
            r#"{"function":{"name":"read","arguments":"{\"a\":"}}"#,
            r#"{"function":{"arguments":"1}"}}"#,
            r#"{"function":{"name":"read","arguments":{"b": 2}}}"#,
            r#"{"function":{"name":"ls","arguments":null}}"#,
        ];
        assert_eq!(calls(&pieces), [r#" read {"a":1}"#, r#" read {"b": 2}"#, " ls "]);
    }

    #[test]
    fn calls_that_are_all_number_0_are_told_apart() {
        let whole = [
            r#"{"index":0,"id":"x","function":{"name":"read","arguments":"{}"}}"#,
            r#"{"index":0,"id":"y","function":{"name":"read","arguments":"{}"}}"#,
        ];
        assert_eq!(calls(&whole), ["x read {}", "y read {}"]);
        let nameless = [
            r#"{"index":0,"id":"","function":{"name":"read","arguments":"{}"}}"#,
            r#"{"index":0,"function":{"name":"read","arguments":"{\"b\":1}"}}"#,
        ];
        assert_eq!(calls(&nameless), [" read {}", r#" read {"b":1}"#]);
    }

    #[test]
    fn a_server_that_repeats_itself_with_each_piece_makes_one_call() {
        let same_id = [
            r#"{"index":0,"id":"x","function":{"name":"read","arguments":"{\"a\""}}"#,
            r#"{"index":0,"id":"x","function":{"name":"read","arguments":":1}"}}"#,
        ];
        assert_eq!(calls(&same_id), [r#"x read {"a":1}"#]);
        let no_id = [
            r#"{"index":0,"function":{"name":"read","arguments":""}}"#,
            r#"{"index":0,"function":{"name":"read","arguments":"{\"a\""}}"#,
            r#"{"index":0,"function":{"name":"read","arguments":":1}"}}"#,
        ];
        assert_eq!(calls(&no_id), [r#" read {"a":1}"#]);
        let new_ids = [
            r#"{"index":0,"id":"r1","function":{"name":"read","arguments":"{\"a\""}}"#,
            r#"{"index":0,"id":"r2","function":{"arguments":":1}"}}"#,
        ];
        assert_eq!(calls(&new_ids), [r#"r1 read {"a":1}"#]);
    }

    #[test]
    fn an_object_is_whole_at_its_last_brace_wherever_it_was_cut() {
        let json = r#"{"경로":"}\\\"{","b":{"c":[{}]}} "#;
        let end = json.rfind('}').unwrap() + 1;
        for (cut, _) in json.char_indices() {
            let mut depth = Depth::default();
            depth.read(&json[..cut]);
            assert_eq!(depth.is_whole(), cut >= end, "{}", &json[..cut]);
            depth.read(&json[cut..]);
            assert!(depth.is_whole());
        }
    }

    #[test]
    fn what_a_provider_wants_back_may_come_alone() {
        let mut calls = Calls::default();
        for piece in [
            r#"{"id":"x","function":{"name":"read","arguments":"{}"}}"#,
            r#"{"extra_content":{"google":{"thought_signature":"c2ln"}}}"#,
        ] {
            calls.take(serde_json::from_str(piece).unwrap());
        }
        assert_eq!(calls.len(), 1);
        assert_eq!(calls.0[0].signature.as_deref(), Some(r#"{"google":{"thought_signature":"c2ln"}}"#));
    }
}
