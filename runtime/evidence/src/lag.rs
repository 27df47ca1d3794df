//! How far reports of the venue may be behind the books.

/// A source that seems further behind than this is not late: its values are right.
pub(crate) const MAX_LAG_MS: i64 = 30_000;

/// Lists and queries may be behind the stream by this much. The documents name no bound; the engine
/// allows for twelve seconds.
pub const READ_LAG_MS: i64 = 12_000;
