//! The whole state of the venue, without IO and without a clock: every call passes the time.

use windvane_model::{AssetId, Instrument, InstrumentId, Surface, Time, VenueOrderId};
use windvane_protocol::Assets;
use windvane_sim::{OpenTerms, OrderView, Triggered, VenueConfigError};

use crate::account_id::AccountId;
use crate::accounts::{Account, AccountKeys, Moment, ORDER_IDS, Past, made};
use crate::choices::{
    AfterReconnect, Choices, ClosingLeft, EndedIdReuse, FeeAsset, IocEnd, ListenKeyLife, OrderIds,
    Point, PostOnlyCross, SpotFeeAsset, StreamEnd, TradeIdScope, TriggerEvents, WeightWindow,
};
use crate::counters::Counters;
use crate::faults::Faults;
use crate::limits::{Begin, Limits};
use crate::request::Router;
use crate::settings::Settings;
use crate::stream::{End, Hub};
use crate::wallet::Wallets;
use windvane_model::random::SplitMix64;
use windvane_sim_market::Board;

/// Large order ids start after this number, which is above 2^53.
const LARGE_ID: i64 = 1 << 60;

/// The complete state of the venue.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) router: Router,
    /// The latest time that was passed to it.
    pub(crate) now: Time,
    pub(crate) assets: Assets,
    pub(crate) accounts: Vec<Account>,
    /// The venue's behaviour where the documents leave something open.
    pub(crate) choices: Choices,
    /// Random numbers for the choices that need them.
    pub(crate) chance: SplitMix64,
    pub(crate) limits: Limits,
    pub(crate) board: Board,
    pub(crate) hub: Hub,
    pub(crate) wallets: Wallets,
    pub(crate) faults: Faults,
    pub(crate) counters: Counters,
    /// Number of client order ids that the venue generated.
    pub(crate) generated_ids: u64,
}

impl State {
    /// A venue that starts now, and the keys of its accounts.
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
            let made = made(settings.seed, place);
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
            chance: SplitMix64::new(settings.seed),
            limits: Limits::new(settings.limits),
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

    /// Whether this is a valid listen key.
    pub(crate) fn is_listen_key(&self, surface: Surface, key: &str) -> bool {
        let mut accounts = self.accounts.iter();
        accounts.any(|account| {
            let valid = account.listen_keys.valid(surface);
            valid.is_some_and(|valid| valid.key == key)
        })
    }

    pub(crate) fn account(&self, id: AccountId) -> &Account {
        &self.accounts[id.place()]
    }

    pub(crate) fn account_mut(&mut self, id: AccountId) -> &mut Account {
        &mut self.accounts[id.place()]
    }

    /// Applies the choices to the parts of the venue that keep a copy.
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
                let first = LARGE_ID + place * ORDER_IDS;
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

    /// The choices that concern the matching engine.
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

    /// How a connection ends at its maximum age.
    pub(crate) fn end_of_life(&self) -> End {
        match self.choices.of::<StreamEnd>() {
            StreamEnd::Frame => End::Life,
            StreamEnd::Cut => End::Cut,
        }
    }

    /// An asset for commissions that differs from the margin asset.
    fn fee_asset(&self) -> Option<AssetId> {
        let first = self.board.of(Surface::Futures).next()?;
        Some(first.instrument.base)
    }

    /// The past time that a lagging route shows; `None` if it shows the present.
    pub(crate) fn behind<P: Point>(&self) -> Option<Time> {
        let lag_ms = self.choices.lag_ms::<P>();
        (lag_ms > 0).then(|| self.now.plus_ms(-lag_ms))
    }

    /// The account at a past time, or now.
    pub(crate) fn moment(&self, id: AccountId, at: Option<Time>) -> Moment {
        let account = self.account(id);
        let then = at.and_then(|at| account.past.as_ref()?.moment(at).cloned());
        then.unwrap_or_else(|| Moment::of(&account.venue, self.now))
    }

    /// The open orders of a surface at a past time, or now.
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

    /// The rules of an instrument. Both surfaces share one list, and the index in it is the id.
    pub(crate) fn rules(&self, id: InstrumentId) -> &Instrument {
        &self.board.symbols()[usize::from(id.0)].instrument
    }

    /// The venue's clock in its responses and for its time rule: the time of the call, plus the
    /// skew of a fault switch. Orders, timers and funding use the time without skew.
    pub(crate) const fn clock_ms(&self, now: Time) -> i64 {
        now.millis() + self.faults.skew_ms
    }
}
