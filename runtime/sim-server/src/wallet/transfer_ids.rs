//! The `clientTranId`s of transfers (docs/interface/account.md#transfers-between-wallets).

use std::collections::VecDeque;

use crate::request::Refusal;

/// How long a `clientTranId` must stay unique (-4115).
const UNIQUE_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// Maximum number of ids to keep. Beyond it the oldest is dropped early.
const IDS_MAX: usize = 10_000;

/// The `clientTranId`s of one account, oldest first.
#[derive(Debug, Default)]
pub(crate) struct TransferIds(VecDeque<(i64, String)>);

impl TransferIds {
    /// Refuses an id that was used within the time in which it must stay unique (-4115).
    pub(crate) fn check(&mut self, id: &str, now_ms: i64) -> Result<(), Refusal> {
        while self
            .0
            .front()
            .is_some_and(|(at, _)| *at + UNIQUE_MS <= now_ms)
        {
            self.0.pop_front();
        }
        if self.0.iter().any(|(_, known)| known == id) {
            let msg = "clientTranId is duplicated; it must be unique within 7 days.";
            return Err(Refusal::new(-4115, msg));
        }
        Ok(())
    }

    /// All stored ids, oldest first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, id)| id.as_str())
    }

    /// Stores the id of a transfer.
    pub(crate) fn keep(&mut self, id: &str, now_ms: i64) {
        if self.0.len() >= IDS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((now_ms, id.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_may_be_reused_after_seven_days() {
        let mut ids = TransferIds::default();
        ids.keep("a", 0);
        assert_eq!(ids.check("a", UNIQUE_MS - 1).unwrap_err().code, -4115);
        assert_eq!(ids.check("b", UNIQUE_MS - 1), Ok(()));
        assert_eq!(ids.check("a", UNIQUE_MS), Ok(()));
    }
}
