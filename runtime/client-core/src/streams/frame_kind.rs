//! Classifies frames as far as the stream itself needs it.

use windvane_protocol::frame::BookLevels;
use windvane_protocol::market_stream::{self, CommandAnswer, MarketStreamEvent};
use windvane_protocol::user_stream::{self, UserStreamEvent};

/// The kind of a frame, as far as the stream itself needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// An event for the consumer.
    Event,
    /// The answer to a command.
    Answer,
    /// An event for the consumer which also reports that the listen key has expired; with the
    /// event's time in milliseconds.
    KeyExpired(i64),
}

/// Classifies a frame of a market stream. Answers to commands are short and have an `id`; events
/// have none.
pub fn market_frame_kind(text: &str) -> FrameKind {
    match command_answer(text) {
        Some(_) => FrameKind::Answer,
        None => FrameKind::Event,
    }
}

/// The answer to a command, if this frame of a market stream is one.
pub fn command_answer(text: &str) -> Option<CommandAnswer> {
    if text.len() > 4_096 || !text.contains("\"id\"") {
        return None;
    }
    let decoded = market_stream::decode(text, &mut BookLevels::default());
    match decoded.ok()?.event {
        MarketStreamEvent::Answer(answer) => Some(answer),
        _ => None,
    }
}

/// Classifies a frame of a user stream.
pub fn user_frame_kind(text: &str) -> FrameKind {
    key_expiry_ms(text).map_or(FrameKind::Event, FrameKind::KeyExpired)
}

/// When the listen key of this connection expired, in milliseconds of the venue's clock, if the
/// frame reports it.
pub fn key_expiry_ms(text: &str) -> Option<i64> {
    if !text.contains("listenKeyExpired") {
        return None;
    }
    match user_stream::decode(user_stream::Surface::Futures, text) {
        Ok(UserStreamEvent::ListenKeyExpired(event)) => Some(event.event_ms.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_distinguished_from_events() {
        assert_eq!(
            market_frame_kind(r#"{"result":null,"id":1}"#),
            FrameKind::Answer
        );
        assert_eq!(
            market_frame_kind(r#"{"id":1,"error":{"code":-1,"msg":"no"}}"#),
            FrameKind::Answer
        );
        let trade = r#"{"stream":"a@tradepro","data":{"e":"tradepro","E":1,"T":1,"s":"A","t":1,
            "p":"1","q":"1","h":"0x","m":["hidden","hidden"]}}"#;
        assert_eq!(market_frame_kind(trade), FrameKind::Event);
        assert_eq!(market_frame_kind("{\"id\""), FrameKind::Event);
    }
}
