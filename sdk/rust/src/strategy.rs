//! What a strategy is: a constructor and callbacks with empty defaults.

use crate::ctx::Ctx;
use crate::event::{
    BalanceUpdate, Bar, BookChange, BookTop, Fill, ForcedClose, Funding, MarkPrice, OrderUpdate,
    PositionUpdate, RULES, Raw, RulesUpdate, RuntimeState, Trade,
};
use crate::instrument::Instrument;
use crate::params::Params;

/// A capability that the configuration may grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Submit and cancel.
    Orders,
    /// Own position, own orders, balances.
    Account,
    /// Books, prices and rules.
    Market,
    /// Timers.
    Timers,
    /// Messages.
    Log,
    /// Plotted series.
    Plot,
}

impl Capability {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Orders => "orders",
            Self::Account => "account",
            Self::Market => "market",
            Self::Timers => "timers",
            Self::Log => "log",
            Self::Plot => "plot",
        }
    }
}

/// A trading strategy.
///
/// Callbacks run one at a time, under a budget; nothing of a callback that panics takes effect.
/// All intents of a callback take effect together once it has returned.
#[expect(
    unused_variables,
    reason = "defaults are empty; the names document the parameters"
)]
pub trait Strategy: Sized {
    /// Number of the format that [`Strategy::save`] writes; raise it with every change of it.
    const STATE_SCHEMA: u32 = 1;

    /// The capabilities that it needs.
    const CAPABILITIES: &'static [Capability] = &[
        Capability::Orders,
        Capability::Account,
        Capability::Market,
        Capability::Timers,
        Capability::Log,
        Capability::Plot,
    ];

    /// Made once before any event; the error is the reason why it cannot start.
    fn new(params: Params, instruments: &[Instrument]) -> Result<Self, String>;

    /// A trade of the market.
    fn on_trade(&mut self, ctx: &Ctx, trade: &Trade) {}

    /// The best bid or ask changed. Called for every change of a whole book too, unless
    /// [`Strategy::on_book`] is written.
    fn on_book_top(&mut self, ctx: &Ctx, top: &BookTop) {}

    /// The book changed; its levels are in [`Ctx::book`].
    fn on_book(&mut self, ctx: &Ctx, change: &BookChange) {
        self.on_book_top(ctx, &change.top);
    }

    /// A bar is complete.
    fn on_bar(&mut self, ctx: &Ctx, bar: &Bar) {}

    /// A new mark price.
    fn on_mark_price(&mut self, ctx: &Ctx, mark: &MarkPrice) {}

    /// Funding was received or paid.
    fn on_funding(&mut self, ctx: &Ctx, funding: &Funding) {}

    /// An own order changed its state. After a restart or a swap, open orders are told again, and
    /// those that ended meanwhile; after a restart all of that before the first book.
    fn on_order(&mut self, ctx: &Ctx, update: &OrderUpdate) {}

    /// An own order was filled, wholly or in part.
    fn on_fill(&mut self, ctx: &Ctx, fill: &Fill) {}

    /// The own position changed.
    fn on_position(&mut self, ctx: &Ctx, position: &PositionUpdate) {}

    /// A balance of the account changed.
    fn on_balance(&mut self, ctx: &Ctx, balance: &BalanceUpdate) {}

    /// A timer set with [`Ctx::set_timer`] is due.
    fn on_timer(&mut self, ctx: &Ctx, token: i64) {}

    /// The runtime allows more or less than before.
    fn on_runtime_state(&mut self, ctx: &Ctx, state: RuntimeState) {}

    /// The exchange changed the rules or the status of an instrument. Orders are put on the new grid by
    /// themselves; a strategy that keeps a copy of the instrument takes the new one from [`Ctx::instrument`].
    fn on_rules(&mut self, ctx: &Ctx, rules: &RulesUpdate) {}

    /// The exchange closed a part of the own position: a liquidation, ADL, or a close that no order explains. It
    /// comes before [`Strategy::on_position`] and before what `[risk] on_liquidation` does.
    fn on_forced_close(&mut self, ctx: &Ctx, close: &ForcedClose) {}

    /// The state to carry over a restart or a hot swap. Orders and positions are not part of it:
    /// they live in the runtime, which tells them again.
    ///
    /// Asked for after each callback that tells of an own order or fill or orders something, and
    /// every 100 ms: after a kill, a state of up to 4 KiB is not behind what was done. A larger one,
    /// or one that takes more than a million fuel to say, is asked for less often; more than the
    /// fuel of fifty events is a fault.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes a state of [`Strategy::save`] that was written under `schema`. The error is the
    /// reason why it cannot be used.
    fn load(&mut self, schema: u32, state: &[u8]) -> Result<(), String> {
        if state.is_empty() {
            Ok(())
        } else {
            Err("this strategy keeps no state".to_owned())
        }
    }
}

/// Calls the callback of an event. Kinds of later contracts are passed over.
#[inline]
pub(crate) fn dispatch<S: Strategy>(strategy: &mut S, ctx: &Ctx, raw: &Raw) {
    match raw.kind {
        1 => strategy.on_trade(ctx, &raw.trade()),
        2 => strategy.on_book_top(ctx, &raw.book_top()),
        3 => strategy.on_book(ctx, &raw.book_change()),
        4 => strategy.on_bar(ctx, &raw.bar()),
        5 => strategy.on_mark_price(ctx, &raw.mark_price()),
        6 => strategy.on_funding(ctx, &raw.funding()),
        7 => strategy.on_order(ctx, &raw.order_update()),
        8 => strategy.on_fill(ctx, &raw.fill()),
        9 => strategy.on_position(ctx, &raw.position()),
        10 => strategy.on_balance(ctx, &raw.balance()),
        11 => strategy.on_timer(ctx, raw.a),
        12 => strategy.on_runtime_state(ctx, raw.runtime_state()),
        RULES => strategy.on_rules(ctx, &raw.rules()),
        14 => strategy.on_forced_close(ctx, &raw.forced_close()),
        _ => {}
    }
}
