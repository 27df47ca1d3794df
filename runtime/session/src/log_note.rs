//! The log lines for parts of messages that are not used.

use windvane_protocol::adapter::Note;

/// Logs the parts of a message that are not used. Parts about instruments that are not configured
/// are normal on an account, so they are debug lines; all others are warnings.
pub fn log_note(note: &Note, place: &str) {
    match note {
        Note::Symbol { .. } | Note::Asset { .. } | Note::Event(_) => {
            tracing::debug!(%note, "{place}");
        }
        Note::Elsewhere { .. }
        | Note::Foreign { .. }
        | Note::Unlisted { .. }
        | Note::Unreadable { .. }
        | Note::Unanswered { .. }
        | Note::Part { .. } => {
            tracing::warn!(%note, "{place}");
        }
    }
}
