//! Degraded reasons: why a live run does not trust its state.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::InstrumentId;
use crate::order::Surface;

/// Why a live run does not trust its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DegradedReason {
    /// The user stream is down, silent, or did not show an order that REST confirmed.
    Stream(Surface),
    /// The venue's clock was not read recently.
    Clock(Surface),
    /// The journal does not write in time.
    Journal,
    /// The last reconciliation is too old or left a difference unexplained.
    Reconciliation(Surface),
    /// `MARGIN_CALL`: positions are at risk.
    MarginCall,
    /// The venue reports that the account may not trade.
    CanTrade(Surface),
    /// The account's position mode is not the configured one.
    PositionMode,
    /// The account's asset mode is not the configured one.
    AssetMode,
    /// No watchdog process covers spot orders.
    Watchdog,
    /// Orders of an instrument rest, or may rest, and its countdown ran out or could not be renewed
    /// in three tries in a row.
    Countdown(InstrumentId),
    /// The state of an earlier process was lost, and the account holds positions: their owners are
    /// not known.
    Ownership,
    /// The venue accepts no opening orders of the account: see its trading blocks.
    TradingBlocked(Surface),
    /// The venue's account does not list a position that the books hold.
    Unlisted(InstrumentId),
    /// Another instance places orders on the account.
    AnotherInstance,
    /// The mark price of a held instrument is stale.
    Mark(InstrumentId),
    /// Account events report another position than the books, and no fill explains it.
    StatedPosition(InstrumentId),
    /// Events were lost while the user stream was down, and no account snapshot is certainly newer.
    LostEvents(Surface),
    /// Account events report another balance than the books, and no fill explains it.
    StatedBalance(Surface),
    /// The account's position mode and asset mode were not read yet.
    Modes,
    /// Strategies hold more of the base asset of this spot instrument than the account has.
    MissingCoins(InstrumentId),
    /// The engine's own books contradict each other: a bug of this program.
    BrokenInvariant,
}

impl fmt::Display for DegradedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.instrument().map(|id| format!("instrument {}", id.0));
        self.write(f, &name.unwrap_or_default())
    }
}

impl DegradedReason {
    /// The instrument of the reason, if it has one.
    pub const fn instrument(self) -> Option<InstrumentId> {
        match self {
            Self::Countdown(id)
            | Self::Unlisted(id)
            | Self::Mark(id)
            | Self::StatedPosition(id)
            | Self::MissingCoins(id) => Some(id),
            _ => None,
        }
    }

    /// Writes the reason as a sentence, with the name of its instrument.
    pub fn write(self, f: &mut impl fmt::Write, name: &str) -> fmt::Result {
        match self {
            Self::Stream(surface) => write!(
                f,
                "the {surface} user stream cannot be relied on: it is down, silent, or more than 3 s late"
            ),
            Self::Clock(surface) => write!(f, "the venue's {surface} clock was not read recently"),
            Self::Journal => f.write_str("the journal does not write in time"),
            Self::Reconciliation(surface) => {
                write!(f, "the {surface} account is not reconciled with the venue")
            }
            Self::MarginCall => {
                f.write_str("the venue issued a margin call: add margin or reduce positions, then windvane resume")
            }
            Self::CanTrade(surface) => write!(f, "the {surface} account may not trade"),
            Self::PositionMode => f.write_str("the account's position mode differs from the configured one"),
            Self::AssetMode => f.write_str("the account's asset mode differs from the configured one"),
            Self::Modes => f.write_str(
                "the account's position mode and asset mode were not read yet: no position is opened until \
                 they are. If little of this minute's request weight is left, they are read in the next minute",
            ),
            Self::Watchdog => f.write_str("no watchdog process covers spot orders"),
            Self::Ownership => f.write_str(
                "this journal does not know every order of the account: it was lost, it is an older \
                 copy, or another instance placed orders. It is not known which strategy owns the \
                 positions, and no strategy opens one: close them or keep them as unowned, then \
                 windvane resume",
            ),
            Self::TradingBlocked(surface) => write!(
                f,
                "the {surface} account cannot trade: windvane status names the reason"
            ),
            Self::AnotherInstance => write_another_instance(f, ""),
            Self::LostEvents(surface) => write!(
                f,
                "the {surface} user stream was down while orders or positions were open, and account snapshots may \
                 still be from before: orders that add exposure wait for a snapshot that was requested 12 s \
                 later"
            ),
            Self::StatedBalance(surface) => write!(
                f,
                "account events of the venue report another {surface} balance than the books, and no \
                 fill explains it: orders that add exposure wait until a fill or an account snapshot does"
            ),
            Self::Countdown(_) => write!(
                f,
                "the countdown of {name} is not renewed: the venue may cancel what rests there"
            ),
            Self::StatedPosition(_) => write!(
                f,
                "account events of the venue report another position in {name} than the books, and no fill \
                 explains it: orders that add exposure wait until a fill or an account snapshot does"
            ),
            Self::Unlisted(_) => write!(
                f,
                "the venue's account shows a smaller position in {name} than the books: orders that \
                 add exposure wait until it is shown again, or more snapshots confirm that it was closed"
            ),
            Self::Mark(_) => write!(
                f,
                "the mark price of {name}, which is held, was not updated for a minute: the loss limits may not \
                 see a loss, and no position is opened until a mark price comes"
            ),
            Self::BrokenInvariant => f.write_str(
                "the program found a mistake in its own books: amounts that it shows may be wrong. Own orders are \
                 cancelled and none is sent. Compare positions and orders with the venue, and send the newest file of \
                 the folder bug-reports with a report. windvane resume checks the books again",
            ),
            Self::MissingCoins(_) => write!(
                f,
                "the spot account has less of the base asset of {name} than strategies hold: an outside party \
                 sold or withdrew coins, and no position is opened. Buy or transfer them back, or use windvane \
                 resume, which takes the missing coins from the strategies at the present price"
            ),
        }
    }
}

/// Writes the sentence of [`DegradedReason::AnotherInstance`] with the order that gave the other instance away.
pub fn write_another_instance(f: &mut impl fmt::Write, order: &str) -> fmt::Result {
    write!(
        f,
        "another instance trades on this account: this data folder never placed its order {order}. \
         No position is opened. Stop one of the two instances, then windvane resume"
    )
}
