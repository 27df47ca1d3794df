//! What the name of a stream shows about its frames.

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
