//! The whole truth of the venue, without IO and without a clock: every call brings the time.
//!
//! A call lets time pass first ([`State::advance`]), so that whatever was due has happened before
//! anything new does. After anything that may touch an account, [`State::tell_users`] brings what
//! it did to the market and to the other accounts, and the events of all to the streams.

mod account;
mod history;
mod keys;
mod listen_key;
mod nonces;

use windvane_engine::{Instrument, InstrumentId, Surface, Time};
use windvane_sim::VenueConfigError;
use windvane_venue::Assets;

#[cfg(test)]
pub(crate) use account::venue;
pub(crate) use account::{Account, Agent, ApiKey, Grants, MAKER_FEE, TAKER_FEE};
pub(crate) use history::{Income, MarginChange, TradeRecord};
pub use keys::AccountKeys;
pub(crate) use keys::drawn;
pub(crate) use nonces::NonceError;

use crate::control::{Counters, Faults};
use crate::http::Router;
use crate::limits::Limits;
use crate::market::Board;
use crate::settings::Settings;
use crate::stream::Hub;
use crate::user_events;
use crate::wallet::Wallets;

/// An account of the venue: its place in [`State::accounts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AccountId(pub(crate) u16);

/// Everything that the venue knows.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) router: Router,
    /// The latest time that it was told.
    pub(crate) now: Time,
    pub(crate) assets: Assets,
    pub(crate) accounts: Vec<Account>,
    pub(crate) limits: Limits,
    pub(crate) board: Board,
    pub(crate) hub: Hub,
    pub(crate) wallets: Wallets,
    pub(crate) faults: Faults,
    pub(crate) counters: Counters,
    /// Client order ids that the venue made.
    pub(crate) generated_ids: u64,
}

impl State {
    /// A venue that begins now, and the keys of its accounts.
    pub(crate) fn new(
        mut settings: Settings,
        now: Time,
    ) -> Result<(Self, Vec<AccountKeys>), VenueConfigError> {
        let source = std::mem::take(&mut settings.source);
        let board = Board::new(source, settings.seed, now);
        let (instruments, assets) = (board.instruments(), board.assets());
        let mut accounts = Vec::with_capacity(usize::from(settings.accounts));
        let mut shown = Vec::with_capacity(usize::from(settings.accounts));
        for place in 0..settings.accounts {
            let made = keys::made(settings.seed, place);
            let mut account = Account::new(place, &made, &instruments, &assets)?;
            for symbol in board.symbols() {
                symbol.show(|event| account.venue.market(now, symbol.id, event));
            }
            accounts.push(account);
            shown.push(made.shown);
        }
        let state = Self {
            router: Router::new(&settings.brand),
            now,
            assets,
            accounts,
            limits: Limits::new(&settings),
            board,
            hub: Hub::default(),
            wallets: Wallets::default(),
            faults: Faults::default(),
            counters: Counters::default(),
            generated_ids: 0,
            settings,
        };
        Ok((state, shown))
    }

    /// Lets time pass: market events up to `now`, countdowns, funding, delayed events, expiring
    /// keys. A time before the last one changes nothing.
    pub(crate) fn advance(&mut self, now: Time) {
        if now <= self.now {
            return;
        }
        self.now = now;
        crate::market::advance(self, now);
        for account in &mut self.accounts {
            if account.venue.next_timeout() <= now {
                account.venue.timeout(now);
            }
        }
        self.tell_users();
        for place in 0..self.accounts.len() {
            self.expire_listen_keys(AccountId(place as u16));
        }
        crate::control::advance(self, now);
    }

    /// Brings what the accounts' venues have said to the market, to their histories and to their
    /// streams.
    pub(crate) fn tell_users(&mut self) {
        loop {
            crate::market::settle(self, self.now);
            let quiet = self
                .accounts
                .iter()
                .all(|account| account.untold.is_empty());
            if quiet {
                return;
            }
            for place in 0..self.accounts.len() {
                let id = AccountId(place as u16);
                // Telling may cause more: what a builder is paid.
                while let Some(event) = self.account_mut(id).untold.pop_front() {
                    user_events::tell(self, id, &event);
                }
            }
        }
    }

    fn expire_listen_keys(&mut self, id: AccountId) {
        let now_ms = self.now.millis();
        for surface in [Surface::Spot, Surface::Futures] {
            let expired = self.account_mut(id).listen_keys.expire(surface, now_ms);
            if let Some(key) = expired {
                user_events::tell_expired(self, surface, key.key);
            }
        }
    }

    /// Is this a listen key that has not ended?
    pub(crate) fn is_listen_key(&self, surface: Surface, key: &str) -> bool {
        let mut accounts = self.accounts.iter();
        accounts.any(|account| {
            let valid = account.listen_keys.valid(surface);
            valid.is_some_and(|valid| valid.key == key)
        })
    }

    pub(crate) fn account(&self, id: AccountId) -> &Account {
        &self.accounts[usize::from(id.0)]
    }

    pub(crate) fn account_mut(&mut self, id: AccountId) -> &mut Account {
        &mut self.accounts[usize::from(id.0)]
    }

    /// The instrument with this symbol.
    pub(crate) fn instrument(&self, surface: Surface, symbol: &str) -> Option<InstrumentId> {
        self.board.find(surface, symbol).map(|symbol| symbol.id)
    }

    /// The rules of an instrument, of which both surfaces have one list: the place in it is the
    /// id.
    pub(crate) fn rules(&self, id: InstrumentId) -> &Instrument {
        &self.board.symbols()[usize::from(id.0)].instrument
    }

    /// The venue's clock as its answers show it and its time rule reads it: the time of the call
    /// and the skew that a fault switch sets. Orders, timers and funding live in unskewed time.
    pub(crate) fn clock_ms(&self, now: Time) -> i64 {
        now.millis() + self.faults.skew_ms
    }
}
