//! A frame as received from its socket, with its time.

use std::time::Instant;

use tokio_tungstenite::tungstenite::Utf8Bytes;

/// A text frame of a WebSocket. Two frames are equal if their texts are equal, whatever their
/// times.
#[derive(Clone, Debug)]
pub struct Received {
    /// The frame.
    pub text: Utf8Bytes,
    /// The time when it was read from its socket.
    pub at: Instant,
}

impl Received {
    /// A frame that is read now.
    pub(super) fn now(text: impl Into<Utf8Bytes>) -> Self {
        Self {
            text: text.into(),
            at: Instant::now(),
        }
    }
}

impl AsRef<str> for Received {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Received {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Received {}
