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
