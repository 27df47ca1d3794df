//! Describes what a run leaves open at its end, for people: positions, and own orders that may be
//! open. It reads the engine and changes nothing. `session/recovery` decides which positions a
//! strategy leaves.

use windvane_engine::Engine;
use windvane_model::Surface;
use windvane_model::order::PositionSide;
use windvane_model::orders::Order;
use windvane_model::trading::TradingBlock;
use windvane_session::recovery::{Configured, strategy_positions};
use windvane_session::{Driver, Guests};

use super::show;
use windvane_config::Config;
use windvane_config::assembly;

/// At most this many orders are named.
const NAMED: usize = 20;

/// The gaps in the engine's knowledge of the account, as one sentence. Then a position that the
/// engine names may be different at the venue. Empty if it knows the account.
pub fn unknown_text(engine: &Engine) -> String {
    let mut missing = engine.describe_reasons(&engine.degraded_reasons());
    let lacks_fill = |order: &&Order| order.reported_qty > order.executed_qty;
    match engine.orders().iter().filter(lacks_fill).count() {
        0 => {}
        1 => missing.push("fills of 1 own order were not read".to_owned()),
        many => missing.push(format!("fills of {many} own orders were not read")),
    }
    missing.join("; ")
}

/// Own orders that may be open at the venue. Where the venue refuses to cancel them, the text gives
/// the reason.
pub fn resting_text<G: Guests>(driver: &Driver<G>) -> String {
    let engine = driver.engine();
    let named: Vec<_> = show::own_orders(driver)
        .filter_map(|order| {
            let instrument = engine.instrument(order.instrument())?.name();
            Some(format!("{} {instrument}", order.client_order_id.as_str()))
        })
        .collect();
    let mut text = match named.len() {
        0 => "no own order is known to be open".to_owned(),
        1 => format!("1 own order may be open at the venue: {}", named[0]),
        many => {
            let shown = named[..many.min(NAMED)].join(", ");
            let more = if many > NAMED { ", and others" } else { "" };
            format!("{many} own orders may be open at the venue: {shown}{more}")
        }
    };
    let refused = engine.blocks().filter_map(|(block, state)| match block {
        TradingBlock::Key(_) => Some(engine.describe_block(block, state).reason),
        _ => None,
    });
    for reason in refused.filter(|_| !named.is_empty()) {
        text = format!("{text}. The venue refuses to cancel them: {reason}");
    }
    text
}

/// A sentence about the account's positions that no strategy opened, for the reply to a `flatten`
/// of everything. Empty if there are none.
pub fn external_positions_text(engine: &Engine) -> String {
    let external = engine.ledgers().external.iter();
    let open = external.filter(|(_, _, held)| held.position.qty != 0);
    let positions: Vec<_> = open
        .filter_map(|(id, side, held)| {
            let rules = engine.instrument(id)?;
            let side = match side {
                PositionSide::Both => String::new(),
                side => format!(" {}", side.as_str()),
            };
            let qty = rules.qty(held.position.qty).normalize();
            Some(format!("{qty} {}{side}", rules.name()))
        })
        .collect();
    if positions.is_empty() {
        return String::new();
    }
    format!(
        "the account holds {} that no strategy opened. It stays open; close it by hand at the \
         venue if you want it closed",
        positions.join(", ")
    )
}

/// Every position that stays open when a run ends, with quantity, instrument and strategy. Spot
/// holdings that no strategy bought are left out: they are the account's own.
pub fn stays_open(engine: &Engine) -> Vec<String> {
    let of_strategies = strategy_positions(engine, |_, _| true);
    let named = of_strategies.iter().map(|one| {
        let (qty, instrument, strategy) = (&one.qty, &one.instrument, &one.strategy);
        match one.side {
            PositionSide::Both => format!("{qty} {instrument} of {strategy}"),
            side => format!("{qty} {instrument} {} of {strategy}", side.as_str()),
        }
    });
    let external = engine.ledgers().external.iter();
    let unowned = external.filter_map(|(id, side, held)| {
        let rules = engine.instrument(id)?;
        let is_open = held.position.qty != 0 && rules.surface == Surface::Futures;
        let qty = rules.qty(held.position.qty).normalize();
        is_open.then(|| match side {
            PositionSide::Both => format!("{qty} {} of no strategy", rules.name()),
            side => format!("{qty} {} {} of no strategy", rules.name(), side.as_str()),
        })
    });
    named.chain(unowned).collect()
}

/// The strategies and instruments of a configuration.
pub fn configured(config: &Config) -> Configured {
    let strategies = config.strategies.iter();
    let instruments = assembly::instrument_names(config);
    Configured {
        strategies: strategies.map(|one| one.id.as_str().to_owned()).collect(),
        instruments: instruments.iter().map(ToString::to_string).collect(),
    }
}
