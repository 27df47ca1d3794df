//! The strategy trait: a constructor, and callbacks with empty defaults.

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
    /// Submit and cancel orders.
    Orders,
    /// Own position, own orders, balances.
    Account,
    /// Order books, prices and rules.
    Market,
    /// Timers.
    Timers,
    /// Log messages.
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
/// Callbacks run one at a time and have a fuel budget. All intents of a callback take effect
/// together after it has returned. If a callback panics, none of its intents takes effect.
#[expect(
    unused_variables,
    reason = "defaults are empty; the names document the parameters"
)]
pub trait Strategy: Sized {
    /// Format number of the state that [`Strategy::save`] writes. Increase it when the format
    /// changes.
    const STATE_SCHEMA: u32 = 1;

    /// The capabilities that the strategy needs.
    const CAPABILITIES: &'static [Capability] = &[
        Capability::Orders,
        Capability::Account,
        Capability::Market,
        Capability::Timers,
        Capability::Log,
        Capability::Plot,
    ];

    /// Creates the strategy, once, before any event. The error is the reason why it cannot start.
    fn new(params: Params, instruments: &[Instrument]) -> Result<Self, String>;

    /// A trade of the market.
    fn on_trade(&mut self, ctx: &Ctx, trade: &Trade) {}

    /// The best bid or ask changed. It is also called for each change of a whole book, unless
    /// [`Strategy::on_book`] is implemented.
    fn on_book_top(&mut self, ctx: &Ctx, top: &BookTop) {}

    /// The order book changed. [`Ctx::book`] returns its levels.
    fn on_book(&mut self, ctx: &Ctx, change: &BookChange) {
        self.on_book_top(ctx, &change.top);
    }

    /// A bar is complete.
    fn on_bar(&mut self, ctx: &Ctx, bar: &Bar) {}

    /// A new mark price.
    fn on_mark_price(&mut self, ctx: &Ctx, mark: &MarkPrice) {}

    /// Funding was received or paid.
    fn on_funding(&mut self, ctx: &Ctx, funding: &Funding) {}

    /// An own order has a new state. After a restart or a hot swap, the strategy receives an update
    /// for each open order and for each order that ended meanwhile. After a restart, all of these
    /// updates come before the first book.
    fn on_order(&mut self, ctx: &Ctx, update: &OrderUpdate) {}

    /// An own order was completely or partly filled.
    fn on_fill(&mut self, ctx: &Ctx, fill: &Fill) {}

    /// The own position changed.
    fn on_position(&mut self, ctx: &Ctx, position: &PositionUpdate) {}

    /// A balance of the account changed.
    fn on_balance(&mut self, ctx: &Ctx, balance: &BalanceUpdate) {}

    /// A timer set with [`Ctx::set_timer`] is due.
    fn on_timer(&mut self, ctx: &Ctx, token: i64) {}

    /// The runtime now permits more or fewer orders than before.
    fn on_runtime_state(&mut self, ctx: &Ctx, state: RuntimeState) {}

    /// The exchange changed the rules or the status of an instrument. Orders are rounded to the new
    /// grid automatically. A strategy that keeps a copy of the instrument must read it again with
    /// [`Ctx::instrument`].
    fn on_rules(&mut self, ctx: &Ctx, rules: &RulesUpdate) {}

    /// The exchange closed a part of the own position: a liquidation, ADL, or a close that no known
    /// order explains. It is called before [`Strategy::on_position`] and before
    /// `[risk] on_liquidation` takes effect.
    fn on_forced_close(&mut self, ctx: &Ctx, close: &ForcedClose) {}

    /// The state to keep over a restart or a hot swap. Orders and positions are not part of it.
    /// They are in the runtime, which reports them again.
    ///
    /// The runtime calls it after each callback about an own order or fill, after each callback
    /// that submits orders, and every 100 ms. So after a kill, a state of up to 4 KiB is up to date
    /// with the orders. It is called less often for a larger state, or if it uses more than a
    /// million fuel. Using more fuel than fifty events is a fault.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Loads a state that [`Strategy::save`] wrote with the format number `schema`. The error is
    /// the reason why the state cannot be used.
    fn load(&mut self, schema: u32, state: &[u8]) -> Result<(), String> {
        if state.is_empty() {
            Ok(())
        } else {
            Err("this strategy keeps no state".to_owned())
        }
    }
}

/// Calls the callback for an event. Unknown kinds of later contracts are ignored.
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
