//! The whole truth of the venue, without IO and without a clock: every call brings the time.
//!
//! A call lets time pass first ([`State::advance`]), so that whatever was due has happened before
//! anything new does.

mod account;

use windvane_engine::{InstrumentId, MarketEvent, Time};

pub(crate) use account::Account;
pub use account::AccountKeys;

use crate::control::Faults;
use crate::limits::Limits;
use crate::market::Board;
use crate::settings::Settings;
use crate::stream::Hub;
use crate::wallet::Wallets;

/// An account of the venue: its place in [`State::accounts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AccountId(pub(crate) u16);

/// Everything that the venue knows.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    /// The latest time that it was told.
    pub(crate) now: Time,
    pub(crate) accounts: Vec<Account>,
    pub(crate) limits: Limits,
    pub(crate) board: Board,
    pub(crate) hub: Hub,
    pub(crate) wallets: Wallets,
    pub(crate) faults: Faults,
}

impl State {
    /// A venue that begins now, and the keys of its accounts.
    pub(crate) fn new(mut settings: Settings, now: Time) -> (Self, Vec<AccountKeys>) {
        let keys = Vec::new();
        let source = std::mem::take(&mut settings.source);
        let board = Board::new(source, settings.seed, now);
        let state = Self {
            now,
            accounts: Vec::new(),
            limits: Limits::default(),
            board,
            hub: Hub::default(),
            wallets: Wallets::default(),
            faults: Faults::default(),
            settings,
        };
        (state, keys)
    }

    /// Lets time pass: market events up to `now`, countdowns, funding, delayed events, expiring
    /// keys. A time before the last one changes nothing.
    pub(crate) fn advance(&mut self, now: Time) {
        if now <= self.now {
            return;
        }
        self.now = now;
        crate::market::advance(self, now);
        crate::control::advance(self, now);
    }

    /// Takes a market event to every account's venue.
    ///
    /// Free of the rest of the state, so that the event may borrow from the board.
    pub(crate) fn feed(
        accounts: &mut [Account],
        now: Time,
        instrument: InstrumentId,
        event: &MarketEvent<'_>,
    ) {
        for account in accounts {
            account.venue.market(now, instrument, event);
        }
    }

    /// The venue's clock as its answers show it and its time rule reads it: the time of the call
    /// and the skew that a fault switch sets. Orders, timers and funding live in unskewed time.
    pub(crate) fn clock_ms(&self, now: Time) -> i64 {
        now.millis() + self.faults.skew_ms
    }
}
