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
mod past;

use windvane_model::{AssetId, Instrument, InstrumentId, Surface, Time, VenueOrderId};
use windvane_protocol::Assets;
use windvane_sim::{OpenTerms, OrderView, Triggered, VenueConfigError};

#[cfg(test)]
pub(crate) use account::venue;
pub(crate) use account::{Account, Agent, ApiKey, Grants, MAKER_FEE, TAKER_FEE};
pub(crate) use history::{Income, MarginChange, TradeRecord};
pub use keys::AccountKeys;
pub(crate) use keys::drawn;
pub(crate) use nonces::NonceError;
pub(crate) use past::{Moment, Past};

use crate::choices::{
    self, AfterReconnect, Choices, ClosingLeft, EndedIdReuse, FeeAsset, IocEnd, ListenKeyLife,
    OrderIds, Point, PostOnlyCross, SpotFeeAsset, StreamEnd, TradeIdScope, TriggerEvents,
    WeightWindow,
};
use crate::control::{Counters, Faults};
use crate::http::Router;
use crate::limits::{Begin, Limits};
use crate::settings::Settings;
use crate::stream::{End, Hub};
use crate::user_events;
use crate::wallet::Wallets;
use windvane_sim_market::Board;
use windvane_sim_market::Random;

/// Large order ids begin after this: above 2^53.
const LARGE_ID: i64 = 1 << 60;

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
    /// What it does where the documents leave something open.
    pub(crate) choices: Choices,
    /// Chance that choices need.
    pub(crate) chance: Random,
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
        let mut state = Self {
            router: Router::new(&settings.brand),
            now,
            assets,
            accounts,
            choices: std::mem::take(&mut settings.choices),
            chance: Random::new(settings.seed),
            limits: Limits::new(&settings),
            board,
            hub: Hub::default(),
            wallets: Wallets::default(),
            faults: Faults::default(),
            counters: Counters::default(),
            generated_ids: 0,
            settings,
        };
        state.apply_choices();
        Ok((state, shown))
    }

    /// Lets time pass: market events up to `now`, countdowns, funding, delayed events, expiring
    /// keys. A time before the last one changes nothing.
    pub(crate) fn advance(&mut self, now: Time) {
        if now <= self.now {
            return;
        }
        self.now = now;
        crate::audience::advance(self, now);
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
            crate::audience::settle(self, self.now);
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
                while !self.account(id).untold.is_empty() {
                    let events = Vec::from(std::mem::take(&mut self.account_mut(id).untold));
                    for event in &events {
                        user_events::note(self, id, event);
                    }
                    let now = self.now;
                    let account = self.account_mut(id);
                    if let Some(past) = &mut account.past {
                        past.keep(&account.venue, now);
                    }
                    for arranged in choices::arrange(&self.choices, events) {
                        user_events::send_event(self, id, &arranged);
                    }
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

    /// Brings what was chosen to the parts of the venue that keep it.
    pub(crate) fn apply_choices(&mut self) {
        let terms = self.open_terms();
        let lags = self.choices.any_lag();
        let now = self.now;
        for account in &mut self.accounts {
            account.venue.set_open_terms(terms);
            if !lags {
                account.past = None;
            } else if account.past.is_none() {
                account.past = Some(Past::new(&account.venue, now));
            }
        }
        if self.choices.of::<OrderIds>() == OrderIds::Large {
            for (place, account) in (0_i64..).zip(&mut self.accounts) {
                let first = LARGE_ID + place * account::ORDER_IDS;
                account.venue.order_ids_after(VenueOrderId(first));
            }
        }
        let short = self.choices.of::<ListenKeyLife>() == ListenKeyLife::Short;
        for account in &mut self.accounts {
            account.listen_keys.are_short = short;
        }
        self.limits.begin = match self.choices.of::<WeightWindow>() {
            WeightWindow::Clock => Begin::Clock,
            WeightWindow::First => Begin::FirstRequest,
        };
        let apart = self.choices.of::<TradeIdScope>() == TradeIdScope::Venue;
        self.board.number_trades(apart);
        let again = self.choices.of::<AfterReconnect>() == AfterReconnect::Again;
        self.hub.repeat_events(again);
    }

    /// What is chosen of the matching engine.
    fn open_terms(&self) -> OpenTerms {
        let choices = &self.choices;
        OpenTerms {
            rest_is_canceled: choices.of::<IocEnd>() == IocEnd::Canceled,
            post_only_is_refused: choices.of::<PostOnlyCross>() == PostOnlyCross::Refused,
            closing_orders_stay: choices.of::<ClosingLeft>() == ClosingLeft::Rests,
            ended_ids_stay_taken: choices.of::<EndedIdReuse>() == EndedIdReuse::Refused,
            triggered: match choices.of::<TriggerEvents>() {
                TriggerEvents::Same => Triggered::GoesOn,
                TriggerEvents::Number => Triggered::NewNumber,
                TriggerEvents::New => Triggered::NewOrder,
            },
            spot_fee_is_received: choices.of::<SpotFeeAsset>() == SpotFeeAsset::Received,
            futures_fee_asset: match choices.of::<FeeAsset>() {
                FeeAsset::Quote => None,
                FeeAsset::Other => self.fee_asset(),
            },
        }
    }

    /// How a connection ends whose time is over.
    pub(crate) fn end_of_life(&self) -> End {
        match self.choices.of::<StreamEnd>() {
            StreamEnd::Frame => End::Life,
            StreamEnd::Cut => End::Cut,
        }
    }

    /// The asset that commissions are taken in, other than that of the margin.
    fn fee_asset(&self) -> Option<AssetId> {
        let first = self.board.of(Surface::Futures).next()?;
        Some(first.instrument.base)
    }

    /// The time that a route shows which is behind the stream; `None` where it shows what is.
    pub(crate) fn behind<P: Point>(&self) -> Option<Time> {
        let lag_ms = self.choices.lag_ms::<P>();
        (lag_ms > 0).then(|| self.now.plus_ms(-lag_ms))
    }

    /// The account as it was at a time, or as it is.
    pub(crate) fn moment(&self, id: AccountId, at: Option<Time>) -> Moment {
        let account = self.account(id);
        let then = at.and_then(|at| account.past.as_ref()?.moment(at).cloned());
        then.unwrap_or_else(|| Moment::of(&account.venue, self.now))
    }

    /// The open orders of a surface as they were at a time, or as they are.
    pub(crate) fn open_orders(
        &self,
        id: AccountId,
        surface: Surface,
        at: Option<Time>,
    ) -> Vec<OrderView> {
        let account = self.account(id);
        let open = account.venue.open(None);
        if let (Some(at), Some(past)) = (at, &account.past) {
            return past.open(at, surface, open);
        }
        let own = open.into_iter().filter(|order| order.surface == surface);
        own.collect()
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
    pub(crate) const fn clock_ms(&self, now: Time) -> i64 {
        now.millis() + self.faults.skew_ms
    }
}
