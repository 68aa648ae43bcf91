//! Characters that a person does not see and a model reads, and ends of lines that only some readers take for such.
//!
//! Joiners between the parts of an emoji or of a Persian word, and the marks of direction of a Hebrew text, are seen by what they
//! do and are left alone.

/// The name of a character for a person: `U+202E`.
pub(crate) fn name(hidden: char) -> String {
    format!("U+{:04X}", u32::from(hidden))
}

/// The first character of a text that nobody sees, and its line, from 1.
pub(crate) fn first(text: &str) -> Option<(usize, char)> {
    text.lines().zip(1..).find_map(|(line, number)| Some((number, line.chars().find(|c| is_hidden(*c))?)))
}

/// The text with its hidden characters named where they stand: `<U+202E>`.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { shown.push_str(&format!("<{}>", name(c))) } else { shown.push(c) }
    }
    shown
}

/// The text as a quotation: each line begins with `> `, whoever reads it. (`str::lines` knows one end of a line alone; a model has
/// seen all of them.)
pub(crate) fn quoted(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.split(is_end).map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

fn is_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{1C}'..='\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_hidden(c: char) -> bool {
    // Overrides of direction, spaces without width, operators without a sign, fillers of Hangul, tags, and what a terminal
    // obeys.
    matches!(
        c,
        '\u{202A}'..='\u{202E}'
            | '\u{2066}'..='\u{2069}'
            | '\u{200B}'
            | '\u{2060}'..='\u{2064}'
            | '\u{180E}'
            | '\u{FEFF}'
            | '\u{3164}'
            | '\u{FFA0}'
            | '\u{E0000}'..='\u{E007F}'
            | '\u{E0100}'..='\u{E01EF}'
    ) || (c.is_control() && c != '\t' && !is_end(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_named_with_its_line() {
        for (hidden, named) in [
            ('\u{202E}', "U+202E"),
            ('\u{200B}', "U+200B"),
            ('\u{3164}', "U+3164"),
            ('\u{E0041}', "U+E0041"),
            ('\u{1B}', "U+001B"),
        ] {
            let text = format!("첫 줄\r\n둘째{hidden}줄\n");
            assert_eq!(first(&text).map(|(line, c)| (line, name(c))), Some((2, named.to_owned())), "{named}");
            assert_eq!(shown(&text), format!("첫 줄\r\n둘째<{named}>줄\n"));
        }
    }

    #[test]
    fn what_people_write_is_left_alone() {
        for text in
            ["한글과 ㅎㅏㄴ\tgl\r\n", "👨\u{200D}👩\u{200D}👧 ❤\u{FE0F}", "می\u{200C}خواهم", "\u{1112}\u{1161}\u{11AB}"]
        {
            assert_eq!((first(text), shown(text).as_str()), (None, text));
        }
    }

    #[test]
    fn a_line_ends_where_any_reader_ends_it() {
        for end in ["\n", "\r\n", "\r", "\u{B}", "\u{C}", "\u{85}", "\u{2028}", "\u{2029}", "\u{1E}"] {
            assert_eq!(quoted(&format!("하나{end}# 둘{end}{end}셋")), "> 하나\n> # 둘\n> \n> 셋", "{end:?}");
        }
    }
}
