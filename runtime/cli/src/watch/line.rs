//! One output line of `windvane watch`: its stream and its content.

use windvane_model::outside_text::{self, MESSAGE_MAX};
use windvane_protocol::json_text;
use windvane_protocol::route::Surface;

use crate::printing::RESULT_MAX;

/// A message of a stream.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) surface: Surface,
    pub(super) stream: &'static str,
    pub(super) content: LineContent,
}

#[derive(Debug)]
pub(super) enum LineContent {
    /// A frame, unchanged.
    Event(String),
    /// A notice about the stream itself.
    Notice(String),
    /// A notice about the stream itself, after which it cannot continue.
    Final(String),
}

impl Line {
    /// Formats the line for people.
    pub(super) fn text(&self) -> String {
        let (surface, stream) = (self.surface, self.stream);
        match &self.content {
            LineContent::Event(text) => format!("{surface} {stream} {}", shown(text, RESULT_MAX)),
            LineContent::Notice(text) | LineContent::Final(text) => {
                format!("{surface} {stream}: {}", shown(text, MESSAGE_MAX))
            }
        }
    }

    /// Formats the line for programs. A JSON frame is inserted unchanged, except that line breaks
    /// become spaces. In JSON they can only be between values. A frame that is nested too deep is
    /// text, because few programs could read it.
    pub(super) fn json(&self) -> String {
        let quoted = |text: &str| {
            let text = serde_json::Value::from(text).to_string();
            outside_text::json(&text).into_owned()
        };
        let (key, value) = match &self.content {
            LineContent::Event(text)
                if json_text::depth(text) <= json_text::DEPTH_MAX
                    && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() =>
            {
                let line = text.replace(['\n', '\r'], " ");
                ("event", outside_text::json(&line).into_owned())
            }
            LineContent::Event(text) => ("text", quoted(text)),
            LineContent::Notice(text) | LineContent::Final(text) => ("notice", quoted(text)),
        };
        format!(
            r#"{{"surface":"{}","stream":"{}","{key}":{value}}}"#,
            self.surface, self.stream
        )
    }
}

/// Puts the text on one line: white space becomes spaces, and hidden characters are escaped,
/// because the venue's text must not control the terminal.
fn shown(text: &str, max: usize) -> String {
    let line = text.replace(['\n', '\r', '\t'], " ");
    outside_text::one_line(&line, max).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of the spot user stream.
    fn line(content: LineContent) -> Line {
        Line {
            surface: Surface::Spot,
            stream: "user",
            content,
        }
    }

    #[test]
    fn a_line_holds_the_frame_as_it_came() {
        assert_eq!(
            line(LineContent::Event(r#"{"e":1.10}"#.to_owned())).json(),
            r#"{"surface":"spot","stream":"user","event":{"e":1.10}}"#
        );
        assert_eq!(
            line(LineContent::Notice("gap: \"x\"".to_owned())).json(),
            r#"{"surface":"spot","stream":"user","notice":"gap: \"x\""}"#
        );
        assert_eq!(
            line(LineContent::Event("{".to_owned())).json(),
            r#"{"surface":"spot","stream":"user","text":"{"}"#
        );
    }

    #[test]
    fn a_frame_with_line_breaks_is_one_line() {
        let event = || line(LineContent::Event("{\r\n \"e\": 1.10\n}".to_owned()));
        assert_eq!(
            event().json(),
            r#"{"surface":"spot","stream":"user","event":{   "e": 1.10 }}"#
        );
        assert_eq!(event().text(), r#"spot user {   "e": 1.10 }"#);
    }

    #[test]
    fn long_and_deep_frames_are_bounded() {
        let text = line(LineContent::Event("x".repeat(1 << 20))).text();
        assert!(text.ends_with(" [983040 more bytes]"), "{}", text.len());
        let text = line(LineContent::Final("x".repeat(5_000))).text();
        assert!(text.ends_with(" [904 more bytes]"), "{}", text.len());
        let deep = "[".repeat(200) + &"]".repeat(200);
        let json = line(LineContent::Event(deep)).json();
        assert!(json.contains(r#""text":"[["#), "{json}");
        let hidden = line(LineContent::Event("{\"e\":\"\u{9b}\"}".to_owned())).json();
        assert!(hidden.ends_with(r#""event":{"e":"\u009b"}}"#), "{hidden}");
    }

    #[test]
    fn control_characters_are_escaped() {
        let venue = "\u{1b}[2J\u{9b}31m\u{7}\n\u{7f}\u{202e}é";
        for content in [
            LineContent::Event(venue.to_owned()),
            LineContent::Notice(venue.to_owned()),
            LineContent::Final(venue.to_owned()),
        ] {
            let text = line(content).text();
            assert!(!text.chars().any(char::is_control), "{text:?}");
            assert!(
                text.ends_with(r"\u{1b}[2J\u{9b}31m\u{7} \u{7f}\u{202e}é"),
                "{text}"
            );
        }
    }
}
