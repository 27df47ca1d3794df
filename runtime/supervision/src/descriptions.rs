//! Descriptions of the trading status for people.

use windvane_model::ids::{InstrumentId, StrategyId, Time};
use windvane_model::instrument::{Instrument, SymbolStatus};
use windvane_model::live::StopReason;
use windvane_model::order::Surface;
use windvane_model::trading::{BlockState, TradingBlock};

/// The description of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDescription {
    /// The name of the account, the instrument or the asset, such as `futures account`,
    /// `futures:BTCUSDT` or `futures USDT`.
    pub what: String,
    /// The reason: one sentence without its full stop.
    pub reason: String,
    /// Advice to the operator, and what ends the block.
    pub what_to_do: String,
}

/// Orders of a strategy in an instrument whose outcome has been unknown for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownOrders {
    /// The strategy.
    pub strategy: StrategyId,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Number of such orders.
    pub count: u64,
    /// Since when the outcome of the first of them is unknown.
    pub since: Time,
}

/// The names with which people know instruments and assets.
#[derive(Clone, Copy, Debug)]
pub struct DisplayNames<'a> {
    /// Instruments; [`InstrumentId`] is the index.
    pub instruments: &'a [Instrument],
    /// Names of assets; `AssetId` is the index.
    pub assets: &'a [String],
}

impl DisplayNames<'_> {
    /// Describes a block for people.
    pub fn describe_block(&self, block: TradingBlock, state: &BlockState) -> BlockDescription {
        let account = |surface: Surface| format!("{surface} account");
        let code = state.code;
        let (what, reason, what_to_do) = match block {
            TradingBlock::Key(surface) => (
                account(surface),
                format!(
                    "the venue refuses trading requests of this key or agent (code {code}): it is \
                     unknown or expired, it has no trading right, or this address is not on its \
                     list"
                ),
                "check the key's rights, address list and expiry at the venue. New orders are not \
                 sent. The engine keeps testing the key by cancelling an order that does not exist, and does so \
                 at once after windvane resume. Trading goes on when the venue accepts the key"
                    .to_owned(),
            ),
            TradingBlock::Account(surface) => (
                account(surface),
                format!("the venue accepts no orders of the account (code {code})"),
                format!(
                    "ask the venue why. Opening orders are blocked until the venue accepts an order: {}",
                    when_tried_again(state)
                ),
            ),
            TradingBlock::ReduceOnly(surface) => (
                account(surface),
                format!("the venue accepts only orders that reduce a position (code {code})"),
                format!(
                    "ask the venue why. Closing orders pass. Opening orders are blocked until the venue accepts \
                     one: {}",
                    when_tried_again(state)
                ),
            ),
            TradingBlock::CanTrade(surface) => (
                account(surface),
                "the account snapshot has canTrade = false".to_owned(),
                "ask the venue why. Trading goes on when a snapshot has canTrade = true".to_owned(),
            ),
            TradingBlock::Stopped(surface) => stopped(surface, state.stop),
            TradingBlock::Instrument(id) => (
                self.name_of(id),
                self.closed_because(id, code),
                "close what is open if the venue still accepts it. Trading goes on when the venue \
                 lists the symbol as TRADING, or accepts an order: one is tried after growing pauses"
                    .to_owned(),
            ),
            TradingBlock::StaleMarket(id) => (
                self.name_of(id),
                "no market data of the instrument came for 15 s, although its mark price came every \
                 few seconds before"
                    .to_owned(),
                "check the connection to the venue's market streams. Closing orders and cancels \
                 pass. Trading goes on with the next market data"
                    .to_owned(),
            ),
            TradingBlock::Countdown(id) => (
                self.name_of(id),
                match code {
                    0 => "the venue's response to countdownCancelAll cannot be read".to_owned(),
                    code => format!("the venue refuses countdownCancelAll (code {code})"),
                },
                "ask the venue why. Without this countdown, orders would rest on if this process \
                 died, so no order that may rest is sent; cancels and closes pass. The engine tries \
                 the countdown again after growing pauses, and trading goes on when the venue arms it"
                    .to_owned(),
            ),
            TradingBlock::Funds(surface, asset) => {
                let asset = self.assets.get(usize::from(asset.0));
                let asset = asset.map_or("", String::as_str);
                (
                    format!("{surface} {asset}"),
                    format!("the venue reports that the {asset} balance is too small (code {code})"),
                    format!(
                        "deposit or transfer {asset}, close positions, or make orders smaller. \
                         Trading goes on when the available balance rises, or when the venue accepts an \
                         order: one is tried after growing pauses"
                    ),
                )
            }
        };
        BlockDescription {
            what,
            reason,
            what_to_do,
        }
    }

    fn name_of(&self, id: InstrumentId) -> String {
        self.instruments
            .get(usize::from(id.0))
            .map(Instrument::name)
            .unwrap_or_default()
    }

    fn closed_because(&self, id: InstrumentId, code: i32) -> String {
        match self
            .instruments
            .get(usize::from(id.0))
            .map(|rules| &rules.status)
        {
            Some(status @ SymbolStatus::Other(_)) => format!("the symbol's status is {status}"),
            _ => format!("the venue accepts no orders for the symbol (code {code})"),
        }
    }

    /// Describes orders of unknown outcome for people; `strategy` is the name of their strategy.
    pub fn describe_unknown_orders(
        &self,
        orders: &UnknownOrders,
        strategy: &str,
    ) -> BlockDescription {
        let instrument = self.name_of(orders.instrument);
        let orders = match orders.count {
            1 => "1 order is".to_owned(),
            many => format!("{many} orders are"),
        };
        BlockDescription {
            what: format!("strategy {strategy} in {instrument}"),
            reason: format!(
                "the outcome of {orders} not known: the venue gave no answer, or it may have cancelled resting orders"
            ),
            what_to_do: "the engine queries each order every second, and the strategy opens nothing more in \
                         the instrument until the venue answers; closes and cancels pass"
                .to_owned(),
        }
    }
}

/// When an order is tried again.
const fn when_tried_again(state: &BlockState) -> &'static str {
    if state.on_trial {
        "one order may be tried now"
    } else {
        "one order is tried again after growing pauses; windvane resume allows it at once"
    }
}

fn stopped(surface: Surface, why: Option<StopReason>) -> (String, String, String) {
    let reason = match why {
        Some(StopReason::Ban) => "the venue banned this address (HTTP 418)",
        Some(StopReason::Firewall) => "the venue's firewall refuses this address (HTTP 403)",
        Some(StopReason::Limit) => "the venue's request limit is used up (HTTP 429)",
        Some(StopReason::Closing) => "the venue is shutting down (-1016)",
        None => "the venue accepts no requests",
    };
    let what_to_do = "send nothing from this address until then, not even from other programs: every \
                      request may make it longer. Trading then goes on by itself";
    (
        format!("{surface} account"),
        reason.to_owned(),
        what_to_do.to_owned(),
    )
}
