//! A user event on its way to the streams.

use tokio_tungstenite::tungstenite::Utf8Bytes;
use windvane_model::Surface;

/// A user event as text, for the connections of a listen key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserFrame {
    pub(crate) surface: Surface,
    pub(crate) listen_key: String,
    pub(crate) text: Utf8Bytes,
    /// Delay before it is sent, milliseconds.
    pub(crate) delay_ms: u64,
}
