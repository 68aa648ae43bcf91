//! A page of HTML as Markdown.
//!
//! A converter that walks a tree by recursion is at a page's mercy: a hundred thousand nested tags end the process, and a tree
//! builder needs the square of their number in time. So the page's tags are first written anew, from its tokens alone: few
//! kinds, each closed where it must be, none deeper than [`MOST_DEPTH`], links whole, scripts and data gone.

use htmd::HtmlToMarkdown;
use htmd::options::{BulletListMarker, HrStyle, Options};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer};
use reqwest::Url;
use std::cell::RefCell;

/// How deep elements may be nested; what is deeper stands in the deepest one.
const MOST_DEPTH: usize = 48;
/// The longest address of a link or a picture, in bytes. Longer ones carry data, and cost what a page of text costs.
const MOST_LINK: usize = 2_048;

/// A page in Markdown, with its title if it has one.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) text: String,
}

/// What a page of `url` says.
pub(super) fn markdown(html: &str, url: &Url) -> Page {
    let Tidy { mut out, stack, title, .. } = tidied(html, url);
    for name in stack.iter().rev() {
        close(&mut out, name);
    }
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        hr_style: HrStyle::Dashes,
        ..Options::default()
    };
    // From memory nothing can fail to be read.
    let text = HtmlToMarkdown::builder().options(options).build().convert(&out).unwrap_or_default();
    Page { title: title.split_whitespace().collect::<Vec<_>>().join(" "), text }
}

fn tidied(html: &str, url: &Url) -> Tidy {
    let tidy = Tidy { base: url.clone(), out: String::with_capacity(html.len()), ..Tidy::new(url) };
    let tokens = Tokenizer::new(Sink(RefCell::new(tidy)), html5ever::tokenizer::TokenizerOpts::default());
    let input = BufferQueue::default();
    // The tokenizer stops after each script for somebody to run it; nobody does.
    for piece in pieces(html) {
        input.push_back(StrTendril::from(piece));
        while !input.is_empty() {
            let _ = tokens.feed(&input);
        }
    }
    tokens.end();
    tokens.sink.0.into_inner()
}

/// A text in parts: a tendril holds less than 4 GiB, and small ones keep the tokenizer's memory small.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.floor_char_boundary(64 * 1024);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

struct Sink(RefCell<Tidy>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut tidy = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => match tag.kind {
                TagKind::StartTag => return tidy.start(&tag),
                TagKind::EndTag => tidy.end(&tag.name),
            },
            Token::CharacterTokens(text) => tidy.text(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// The tags that are written.
struct Tidy {
    base: Url,
    based: bool,
    out: String,
    /// What is open, the outermost first.
    stack: Vec<&'static str>,
    /// What is left out at the moment with all that is in it, and how often it is open.
    skipped: Option<(String, usize)>,
    in_title: bool,
    title: String,
}

/// What is left out with all that is in it.
const SKIPPED: &[&str] = &[
    "audio", "button", "canvas", "embed", "iframe", "math", "noembed", "noframes", "object", "script", "select",
    "style", "svg", "template", "textarea", "video", "xmp",
];

/// Elements as they are written, by their name in the page. Those that are not here are left out, what is in them stays.
const KEPT: &[(&str, &str)] = &[
    ("a", "a"),
    ("address", "div"),
    ("article", "div"),
    ("aside", "div"),
    ("b", "strong"),
    ("blockquote", "blockquote"),
    ("caption", "div"),
    ("center", "div"),
    ("code", "code"),
    ("dd", "dd"),
    ("details", "div"),
    ("dialog", "div"),
    ("div", "div"),
    ("dl", "dl"),
    ("dt", "dt"),
    ("em", "em"),
    ("fieldset", "div"),
    ("figcaption", "div"),
    ("figure", "div"),
    ("footer", "div"),
    ("form", "div"),
    ("h1", "h1"),
    ("h2", "h2"),
    ("h3", "h3"),
    ("h4", "h4"),
    ("h5", "h5"),
    ("h6", "h6"),
    ("header", "div"),
    ("i", "em"),
    ("kbd", "code"),
    ("legend", "div"),
    ("li", "li"),
    ("main", "div"),
    ("menu", "ul"),
    ("nav", "div"),
    ("ol", "ol"),
    ("p", "p"),
    ("pre", "pre"),
    ("samp", "code"),
    ("section", "div"),
    ("strong", "strong"),
    ("summary", "div"),
    ("table", "table"),
    ("tbody", "tbody"),
    ("td", "td"),
    ("tfoot", "tfoot"),
    ("th", "th"),
    ("thead", "thead"),
    ("tr", "tr"),
    ("tt", "code"),
    ("ul", "ul"),
];

fn kept(name: &str) -> Option<&'static str> {
    KEPT.binary_search_by_key(&name, |(name, _)| name).ok().map(|at| KEPT[at].1)
}

const INLINE: &[&str] = &["a", "code", "em", "strong"];
/// Within these an element begins anew: what is open around them stays open.
const CELLS: &[&str] = &["td", "th", "table"];

/// What an element ends that is still open, as far as none of the second list stands between.
fn ended_by(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match name {
        "li" => (&["li"], &["ul", "ol", "td", "th", "table"]),
        "dt" | "dd" => (&["dt", "dd"], &["dl", "td", "th", "table"]),
        "td" | "th" => (&["td", "th"], &["table"]),
        "tr" => (&["tr"], &["table"]),
        "thead" | "tbody" | "tfoot" => (&["thead", "tbody", "tfoot"], &["table"]),
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
            (&["p", "h1", "h2", "h3", "h4", "h5", "h6"], &["li", "div", "td", "th", "table"])
        }
        "a" => (&["a"], CELLS),
        name if INLINE.contains(&name) => (&[], &[]),
        _ => (&["p"], &["li", "dd", "div", "blockquote", "td", "th", "table"]),
    }
}

impl Tidy {
    fn new(base: &Url) -> Self {
        Self {
            base: base.clone(),
            based: false,
            out: String::new(),
            stack: Vec::new(),
            skipped: None,
            in_title: false,
            title: String::new(),
        }
    }

    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        // What stands in these is no tag, whether it is shown or not.
        let raw = match name {
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" => TokenSinkResult::RawData(RawKind::Rawtext),
            "plaintext" => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        };
        if let Some((skipped, times)) = &mut self.skipped {
            if skipped == name && !tag.self_closing {
                *times += 1;
            }
            return raw;
        }
        if SKIPPED.contains(&name) && !matches!((name, tag.self_closing), ("embed", _) | ("svg" | "math", true)) {
            self.skipped = Some((name.into(), 1));
            return raw;
        }
        match name {
            "title" => self.in_title = self.title.is_empty(),
            "base" if !self.based => {
                if let Some(base) = attribute(tag, "href").and_then(|href| self.base.join(href).ok()) {
                    (self.base, self.based) = (base, true);
                }
            }
            "br" => self.out.push_str("<br>"),
            "hr" => {
                self.end_open(&["p"], CELLS);
                self.out.push_str("<hr>");
            }
            "img" => self.picture(tag),
            _ => {
                if let Some(name) = kept(name) {
                    self.open(name, tag);
                }
            }
        }
        raw
    }

    fn open(&mut self, name: &'static str, tag: &Tag) {
        let (ended, within) = ended_by(name);
        self.end_open(ended, within);
        let in_code = self.stack.iter().any(|open| matches!(*open, "pre" | "code"));
        if in_code && !(name == "code" && self.stack.last() == Some(&"pre")) && !CELLS.contains(&name) {
            // In code only its text counts.
            return;
        }
        if self.stack.len() >= MOST_DEPTH {
            self.out.push(' ');
            return;
        }
        let again = format!("</{name}>");
        if INLINE.contains(&name) && name != "a" && self.out.ends_with(&again) {
            // Two of the same kind in a row are one.
            self.out.truncate(self.out.len() - again.len());
            self.stack.push(name);
            return;
        }
        self.stack.push(name);
        self.out.push('<');
        self.out.push_str(name);
        match name {
            "a" => {
                let href = attribute(tag, "href").and_then(|href| self.link(href, &["http", "https", "mailto"]));
                self.attribute("href", href.as_deref());
            }
            "ol" => self.attribute("start", attribute(tag, "start").filter(|start| start.parse::<u32>().is_ok())),
            "code" => {
                let classes = attribute(tag, "class").unwrap_or_default().split_ascii_whitespace();
                let plain = |class: &&str| {
                    class.strip_prefix("language-").is_some_and(|of| {
                        of.len() < 32 && of.chars().all(|c| c.is_ascii_alphanumeric() || "+-#.".contains(c))
                    })
                };
                self.attribute("class", classes.into_iter().find(plain));
            }
            _ => {}
        }
        self.out.push('>');
    }

    fn end(&mut self, name: &str) {
        if let Some((skipped, times)) = &mut self.skipped {
            if skipped == name {
                *times -= 1;
                if *times == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        if name == "title" {
            self.in_title = false;
            return;
        }
        let Some(name) = kept(name) else { return };
        let within: &[&str] =
            if matches!(name, "td" | "th" | "tr" | "thead" | "tbody" | "tfoot" | "table") { &["table"] } else { CELLS };
        self.end_open(&[name], within);
    }

    /// Closes the innermost of these elements with all that is in it, unless it stands outside of one of `within`.
    fn end_open(&mut self, names: &[&str], within: &[&str]) {
        let found = self.stack.iter().rposition(|open| names.contains(open) || within.contains(open));
        if let Some(at) = found.filter(|at| names.contains(&self.stack[*at])) {
            for name in self.stack.drain(at..).rev() {
                close(&mut self.out, name);
            }
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            // A title is a line.
            if self.title.len() < 1_024 {
                self.title.push_str(text);
            }
        } else if self.skipped.is_none() {
            if self.stack.last() == Some(&"pre") && !text.trim().is_empty() {
                self.stack.push("code");
                self.out.push_str("<code>");
            }
            escape(&mut self.out, text);
        }
    }

    fn picture(&mut self, tag: &Tag) {
        let alt = attribute(tag, "alt").unwrap_or_default();
        match attribute(tag, "src").and_then(|src| self.link(src, &["http", "https"])) {
            Some(src) if !self.stack.iter().any(|open| matches!(*open, "pre" | "code")) => {
                self.out.push_str("<img");
                self.attribute("src", Some(&src));
                self.attribute("alt", Some(alt));
                self.out.push('>');
            }
            _ => escape(&mut self.out, alt),
        }
    }

    /// A whole address of one of these kinds; nothing for scripts, data, and what is too long.
    fn link(&self, given: &str, schemes: &[&str]) -> Option<String> {
        let given = given.trim();
        if given.len() > MOST_LINK {
            return None;
        }
        let url = self.base.join(given).ok()?;
        (schemes.contains(&url.scheme()) && url.as_str().len() <= MOST_LINK).then(|| url.into())
    }

    fn attribute(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.out.push_str(&format!(" {name}=\""));
            escape(&mut self.out, value);
            self.out.push('"');
        }
    }
}

fn attribute<'t>(tag: &'t Tag, name: &str) -> Option<&'t str> {
    tag.attrs.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| &*attribute.value)
}

fn close(out: &mut String, name: &str) {
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\0' => {}
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn url() -> Url {
        Url::parse("https://example.com/글/page.html").unwrap()
    }

    fn of(html: &str) -> String {
        markdown(html, &url()).text
    }

    #[test]
    fn a_page_becomes_markdown() {
        let page = markdown(
            "<!doctype html><html><head><title>제목\n &amp; 더</title><style>p { color: red }</style></head><body>\
             <nav><a href=/home>홈</a></nav><h1>머리</h1><p>하나 <b>굵게</b> <i>기울임</i> <code>a &lt; b</code><p>둘\
             <ul><li>가<li>나<ol start=3><li>x</ol></ul><pre>fn main() {\n    x();\n}</pre>\
             <pre><code class=\"x language-rust\">let a = 1;</code></pre><blockquote>인용</blockquote>\
             <table><tr><th>이름<th>수<tr><td>감<td>3</table><hr>끝</body>",
            &url(),
        );
        assert_eq!(page.title, "제목 & 더");
        let text = page.text;
        for part in [
            "[홈](https://example.com/home)",
            "# 머리",
            "하나 **굵게** *기울임* `a < b`\n\n둘",
            "- 가\n- 나",
            "3. x",
            "```\nfn main() {\n    x();\n}\n```",
            "```rust\nlet a = 1;\n```",
            "> 인용",
            "| 감",
        ] {
            assert!(text.contains(part), "{part:?} in:\n{text}");
        }
        assert!(!text.contains("color"), "{text}");
    }

    #[test]
    fn scripts_and_data_are_gone_and_links_are_whole() {
        let text = of(
            "<script>alert('a')</script><a href=\"javascript:alert(1)\">하나</a> <a href='data:text/html,x'>둘</a> \
             <img src='data:image/png;base64,AAAA' alt='그림 하나'><img src='../b.png' alt=둘><a href='#절'>셋</a> \
             <svg><text>숨음</text></svg><template><p>숨음</p></template><noscript>보임</noscript><a href='mailto:a@b.c'>쪽지</a>\
             <a href=x onclick=steal()>넷</a><iframe src=//evil>숨음</iframe>",
        );
        for gone in ["alert", "javascript", "data:", "base64", "숨음", "steal", "evil"] {
            assert!(!text.contains(gone), "{gone} in:\n{text}");
        }
        for there in [
            "하나 둘",
            "그림 하나",
            "(https://example.com/b.png)",
            "(https://example.com/%EA%B8%80/page.html#%EC%A0%88)",
            "보임",
            "(mailto:a@b.c)",
            "[넷](https://example.com/%EA%B8%80/x)",
        ] {
            assert!(text.contains(there), "{there} in:\n{text}");
        }
        let text =
            of(&format!("<a href='/?{}'>길다</a><base href=//other.example/a/><a href=b>밑</a>", "x".repeat(3_000)));
        assert!(text.contains("길다[밑](https://other.example/a/b)"), "{text}");
    }

    #[test]
    fn pages_that_are_made_to_hurt_are_read_in_short_time() {
        let many = 20_000;
        for page in [
            "<div>".repeat(many),
            "<p><b><i>".repeat(many),
            "<ul><li>".repeat(many),
            "<table><tr><td>".repeat(many),
            "<b>x</b>".repeat(many),
            "<a href=x>".repeat(many),
            "</div>".repeat(many),
            "<b><p>x</b></p>".repeat(many),
            "<table><b>x".repeat(many),
            "<blockquote>".repeat(many),
            "<svg>".repeat(many),
            "<!--".repeat(many),
            "<font size=1><font size=2>".repeat(many),
            "&".repeat(many),
            "<".repeat(many),
            "<script>".repeat(many),
            "<pre><code>".repeat(many),
        ] {
            let before = std::time::Instant::now();
            let text = of(&format!("<p>앞</p>{page}"));
            assert!(text.contains('앞'));
            assert!(before.elapsed().as_secs() < 20, "{} takes {:?}", &page[..20], before.elapsed());
        }
    }

    #[test]
    fn the_names_of_elements_stand_in_order() {
        assert!(KEPT.is_sorted_by_key(|(name, _)| *name));
        assert!(SKIPPED.iter().all(|name| kept(name).is_none()));
    }

    proptest! {
        #[test]
        fn whatever_a_page_holds_its_tags_are_balanced_and_shallow(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "<p>", "</p>", "<b>", "</b>", "<i>", "<li>", "<ul>", "</ul>", "<table>", "<tr>", "<td>", "</table>", "<a href=x>",
                    "</a>", "<pre>", "</pre>", "<code>", "글", " ", "<h1>", "<svg>", "</svg>", "<title>", "</title>", "<!--", "-->", "&amp",
                    "<script>", "</script>", "<x y='", "'", "\0", "<?", "]]>", "<dd>", "<br>", "<hr>", "<img alt=a>", "<plaintext>",
                ]),
                0..60,
            ),
        ) {
            let html = parts.concat();
            let tidy = tidied(&html, &url());
            let (mut out, stack) = (tidy.out, tidy.stack);
            for name in stack.iter().rev() {
                close(&mut out, name);
            }
            let mut open = Vec::new();
            for tag in out.split('<').skip(1) {
                let tag = tag.split('>').next().unwrap();
                match tag.strip_prefix('/') {
                    Some(name) => prop_assert_eq!(open.pop(), Some(name.to_string()), "{}", out),
                    None => {
                        let name = tag.split(' ').next().unwrap();
                        if !matches!(name, "br" | "hr" | "img") {
                            open.push(name.to_string());
                        }
                        prop_assert!(open.len() <= MOST_DEPTH + 1);
                    }
                }
            }
            prop_assert!(open.is_empty());
            markdown(&html, &url());
        }
    }
}
