//! Decodes one text frame into one typed frame. It tries the fast scanner first, and the general
//! parser for every other spelling. Both give the same result; the scanner only refuses more.

use crate::frame::{BookLevels, Decoded, FrameError};
use crate::{json_fast_path, json_slow_path};

/// Decodes one public frame: `{"stream":..,"data":{..}}` or the bare payload.
///
/// The levels of a depth frame or snapshot go into `levels`, which is emptied first.
#[inline]
pub fn decode<'a>(frame: &'a [u8], levels: &mut BookLevels) -> Result<Decoded<'a>, FrameError> {
    levels.clear();
    if let Some(decoded) = json_fast_path::decode(frame, levels) {
        return Ok(decoded);
    }
    levels.clear();
    json_slow_path::decode(frame, levels)
}

/// Whether the stream sends the first 5, 10 or 20 levels (`<symbol>@depth<levels>[@100ms]`) rather
/// than differences.
pub(crate) fn is_partial_depth(stream: Option<&str>) -> bool {
    let topic = stream.and_then(|stream| stream.split('@').nth(1));
    let levels = topic.and_then(|topic| topic.strip_prefix("depth"));
    levels.is_some_and(|levels| !levels.is_empty() && levels.bytes().all(|b| b.is_ascii_digit()))
}

/// The symbol of a stream `<symbol>@<topic>`, in the stream's case.
pub(crate) fn stream_symbol(stream: Option<&str>) -> Option<&str> {
    stream
        .and_then(|stream| stream.split_once('@'))
        .map(|(symbol, _)| symbol)
}
