//! A line of `windvane watch`: who says it, and what.

use windvane_venue::route::Surface;

/// What a stream says.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) surface: Surface,
    pub(super) stream: &'static str,
    pub(super) said: Said,
}

#[derive(Debug)]
pub(super) enum Said {
    /// A frame as it came.
    Event(String),
    /// Of the stream itself.
    Notice(String),
    /// Of the stream itself: there is no use in going on.
    Final(String),
}

impl Line {
    /// For people.
    pub(super) fn text(&self) -> String {
        let (surface, stream) = (self.surface, self.stream);
        match &self.said {
            Said::Event(text) => format!("{surface} {stream} {text}"),
            Said::Notice(text) | Said::Final(text) => format!("{surface} {stream}: {text}"),
        }
    }

    /// For programs. The frame stands in it as it came, if it is JSON.
    pub(super) fn json(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let (key, value) = match &self.said {
            Said::Event(text) if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => {
                ("event", text.clone())
            }
            Said::Event(text) => ("text", quoted(text)),
            Said::Notice(text) | Said::Final(text) => ("notice", quoted(text)),
        };
        format!(
            r#"{{"surface":"{}","stream":"{}","{key}":{value}}}"#,
            self.surface, self.stream
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_the_frame_as_it_came() {
        let line = |said| Line {
            surface: Surface::Spot,
            stream: "user",
            said,
        };
        assert_eq!(
            line(Said::Event(r#"{"e":1.10}"#.to_owned())).json(),
            r#"{"surface":"spot","stream":"user","event":{"e":1.10}}"#
        );
        assert_eq!(
            line(Said::Notice("gap: \"x\"".to_owned())).json(),
            r#"{"surface":"spot","stream":"user","notice":"gap: \"x\""}"#
        );
        assert_eq!(
            line(Said::Event("{".to_owned())).json(),
            r#"{"surface":"spot","stream":"user","text":"{"}"#
        );
    }
}
