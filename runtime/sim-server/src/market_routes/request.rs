//! A request of market data, and the parameter rules that the routes share.

use windvane_model::Surface;
use windvane_sim_market::{Board, Symbol};

use crate::json::list;
use crate::limits::Limits;
use crate::request::{Call, Refusal};

/// A request, and what the routes read.
pub(super) struct Request<'a> {
    pub(super) board: &'a Board,
    pub(super) limits: &'a Limits,
    pub(super) call: &'a Call<'a>,
    pub(super) surface: Surface,
}

impl Request<'_> {
    /// The symbol, which is required (-1102, -1121).
    pub(super) fn symbol(&self) -> Result<&Symbol, Refusal> {
        self.named(self.call.params.required("symbol")?)
    }

    /// The symbol, which is optional (-1121).
    pub(super) fn symbol_if_sent(&self) -> Result<Option<&Symbol>, Refusal> {
        let name = self.call.params.get("symbol");
        name.map(|name| self.named(name)).transpose()
    }

    pub(super) fn named(&self, name: &str) -> Result<&Symbol, Refusal> {
        let found = self.board.find(self.surface, name);
        found.ok_or_else(|| Refusal::new(-1121, "Invalid symbol."))
    }

    /// `limit`: from 1 to its maximum (-1130).
    pub(super) fn limit(&self, default: usize, max: usize) -> Result<usize, Refusal> {
        let Some(limit) = self.call.params.integer("limit")? else {
            return Ok(default);
        };
        let limit = usize::try_from(limit).ok();
        limit
            .filter(|limit| (1..=max).contains(limit))
            .ok_or_else(|| {
                let msg = format!("Data sent for parameter 'limit' is not valid: 1 to {max}.");
                Refusal::new(-1130, msg)
            })
    }

    /// `startTime` and `endTime`. The start must not be after the end (-1023).
    pub(super) fn times(&self) -> Result<(Option<i64>, Option<i64>), Refusal> {
        let start = self.call.params.integer("startTime")?;
        let end = self.call.params.integer("endTime")?;
        match (start, end) {
            (Some(start), Some(end)) if start > end => {
                Err(Refusal::new(-1023, "Start time is greater than end time."))
            }
            _ => Ok((start, end)),
        }
    }

    /// The record of the requested symbol, or a list of all symbols' records.
    pub(super) fn one_or_all(&self, record: impl Fn(&Symbol) -> String) -> Text {
        Ok(match self.symbol_if_sent()? {
            Some(symbol) => record(symbol),
            None => list(self.board.of(self.surface).map(record)),
        })
    }
}

/// The text of a body.
pub(super) type Text = Result<String, Refusal>;
