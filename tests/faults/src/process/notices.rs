//! Converts the engine's notices and its view to the plain types of the witness.

use windvane_engine::Engine;
use windvane_model::effect::Adjustment;
use windvane_model::forced::ForcedCloseReport;
use windvane_model::holding::Ledger;
use windvane_model::ids::StrategyName;
use windvane_model::ledger::Grains;
use windvane_model::order::OrderTerms;
use windvane_model::state_report::StatedPosition;
use windvane_model::{
    Amount, ClientOrderId, Instrument, InstrumentId, Notice, OrderSeq, PositionSide, StrategyId,
    Surface,
};

use super::observed::AnswerReceived;
use crate::witness::{
    BalanceView, ElsewhereView, IntentTerms, OrderView, PositionView, StrategyView, View,
    WitnessEvent,
};

/// The entries for an overheard act of a strategy.
pub fn observed(
    engine: &Engine,
    life: u32,
    epoch: u64,
    observed: &AnswerReceived,
) -> Vec<WitnessEvent> {
    let name = |id: StrategyId| engine.strategy_name(id).unwrap_or_default().to_owned();
    match observed {
        AnswerReceived::Order(strategy, order, terms, state) => {
            let seen = intended(engine, (life, epoch), (*strategy, *order), terms);
            let knew = seen.as_ref().map(|(id, _)| WitnessEvent::Knew {
                strategy: name(*strategy),
                client_order_id: Some(id.clone()),
                state: *state,
            });
            knew.into_iter().chain(seen.map(|(_, seen)| seen)).collect()
        }
        AnswerReceived::Saved(strategy, state) => vec![WitnessEvent::Knew {
            strategy: name(*strategy),
            client_order_id: None,
            state: *state,
        }],
        AnswerReceived::Given(strategy, state) => vec![WitnessEvent::Given {
            strategy: name(*strategy),
            state: *state,
        }],
        AnswerReceived::Renewed(strategy) => vec![WitnessEvent::Renewed {
            strategy: name(*strategy),
        }],
    }
}

/// An order that a strategy returned: its id and its entry. The id has the epoch that the disk
/// reserved, even if the engine uses another one.
fn intended(
    engine: &Engine,
    (life, epoch): (u32, u64),
    (strategy, order): (StrategyId, OrderSeq),
    terms: &OrderTerms,
) -> Option<(String, WitnessEvent)> {
    let instrument = engine.instrument(terms.instrument)?;
    let name = StrategyName::new(engine.strategy_name(strategy)?).ok()?;
    let id = ClientOrderId::own(&name, epoch, order).as_str().to_owned();
    let price = terms.price.map(|price| instrument.price(price.0));
    let qty = terms.qty.map(|qty| instrument.qty(qty.0));
    let seen = WitnessEvent::Intended {
        process: life,
        client_order_id: id.clone(),
        terms: IntentTerms {
            instrument: instrument.name(),
            side: terms.side.as_str().to_owned(),
            qty: qty.map(|qty| qty.to_string()),
            price: price.map(|price| price.to_string()),
            reduce_only: terms.reduce_only,
            position_side: terms.position_side.as_str().to_owned(),
        },
    };
    Some((id, seen))
}

/// The entries of a liquidation or an ADL: the closed part of each strategy, and the whole.
pub fn forced(engine: &Engine, life: u32, report: &ForcedCloseReport) -> Vec<WitnessEvent> {
    let Some(rules) = engine.instrument(report.instrument) else {
        return Vec::new();
    };
    let closed = report.shares.iter().filter_map(|share| {
        // A sale closes a long position, so the sign of what the strategy held is the opposite.
        let held = -report.side.sign() * share.qty;
        Some(WitnessEvent::ClosedOutside {
            process: life,
            strategy: engine.strategy_name(share.strategy)?.to_owned(),
            instrument: book(rules, report.position_side),
            qty: rules.qty(held).to_string(),
        })
    });
    let whole = WitnessEvent::ForcedClose {
        process: life,
        instrument: rules.name(),
        qty: rules.qty(report.qty).to_string(),
    };
    closed.chain([whole]).collect()
}

/// The entries for opposite positions that were settled against each other: the part of each
/// strategy.
pub fn settled(engine: &Engine, life: u32, adjustment: &Adjustment) -> Vec<WitnessEvent> {
    let Adjustment::Settled {
        instrument,
        side,
        sold,
        bought,
        qty,
        ..
    } = adjustment
    else {
        return Vec::new();
    };
    let gave_up = [(*sold, *qty), (*bought, -qty)].into_iter();
    let gave_up = gave_up.filter_map(|(strategy, held)| {
        let rules = engine.instrument(*instrument)?;
        Some(WitnessEvent::ClosedOutside {
            process: life,
            strategy: engine.strategy_name(strategy)?.to_owned(),
            instrument: book(rules, *side),
            qty: rules.qty(held).to_string(),
        })
    });
    gave_up.collect()
}

/// The name of a position for the witness.
fn book(rules: &Instrument, side: PositionSide) -> String {
    match side {
        PositionSide::Both => rules.name(),
        side => format!("{} {}", rules.name(), side.as_str()),
    }
}

/// The position that a strategy held. Notices do not name its side; in hedge mode its sign shows
/// the side.
fn held_book(engine: &Engine, instrument: InstrumentId, held: i64) -> Option<String> {
    let rules = engine.instrument(instrument)?;
    let is_sided = engine.hedge_mode() && rules.surface == Surface::Futures;
    let side = match (is_sided, held > 0) {
        (false, _) => PositionSide::Both,
        (true, true) => PositionSide::Long,
        (true, false) => PositionSide::Short,
    };
    Some(book(rules, side))
}

/// The entry for a notice, if it has one.
pub fn seen(engine: &Engine, life: u32, notice: &Notice) -> Option<WitnessEvent> {
    let name = |id: InstrumentId| {
        engine
            .instrument(id)
            .map(Instrument::name)
            .unwrap_or_default()
    };
    match notice {
        Notice::State {
            from, to, reasons, ..
        } => Some(WitnessEvent::State {
            from: from.as_str().to_owned(),
            to: to.as_str().to_owned(),
            degraded_reasons: reasons.iter().map(ToString::to_string).collect(),
        }),
        Notice::Filled {
            order,
            fill,
            realized_pnl,
            ..
        } => {
            let instrument = engine.instrument(order.instrument())?;
            Some(WitnessEvent::Booked {
                process: life,
                instrument: instrument.name(),
                client_order_id: order.client_order_id.as_str().to_owned(),
                trade_id: fill.trade_id.0,
                side: order.terms.side.as_str().to_owned(),
                qty: instrument.qty(fill.qty.0).to_string(),
                quote: fill.quote_qty.to_decimal().to_string(),
                fee: fill.fee.to_decimal().to_string(),
                fee_asset: engine.assets()[usize::from(fill.fee_asset.0)].clone(),
                realized: realized_pnl.to_decimal().to_string(),
            })
        }
        Notice::LateFee {
            instrument,
            order_id,
            trade_id,
            fee,
            asset,
            estimate,
            in_balance,
            ..
        } => Some(WitnessEvent::LateFee {
            process: life,
            instrument: name(*instrument),
            order_id: order_id.0,
            trade_id: trade_id.0,
            fee: fee.to_decimal().to_string(),
            fee_asset: engine.assets()[usize::from(asset.0)].clone(),
            estimate: estimate.to_decimal().to_string(),
            in_balance: *in_balance,
        }),
        Notice::Rejected {
            strategy,
            rejection,
            ..
        } => Some(WitnessEvent::Refused {
            strategy: engine.strategy_name(*strategy)?.to_owned(),
            rule: rejection.to_string(),
        }),
        Notice::Halted { limit: Some(_), .. } => Some(WitnessEvent::LossHalt),
        Notice::Denied { order, .. } => Some(WitnessEvent::Denied {
            client_order_id: order.client_order_id.as_str().to_owned(),
        }),
        Notice::Quarantined { strategy, .. } => Some(WitnessEvent::Quarantined {
            strategy: engine.strategy_name(*strategy)?.to_owned(),
        }),
        Notice::ClosedOutside {
            strategy,
            instrument,
            qty,
            ..
        } => Some(WitnessEvent::ClosedOutside {
            process: life,
            strategy: engine.strategy_name(*strategy)?.to_owned(),
            instrument: held_book(engine, *instrument, *qty)?,
            qty: engine.instrument(*instrument)?.qty(*qty).to_string(),
        }),
        Notice::NotClosedOutside {
            strategy,
            instrument,
            qty,
            ..
        } => Some(WitnessEvent::ClosedOutside {
            process: life,
            strategy: engine.strategy_name(*strategy)?.to_owned(),
            instrument: held_book(engine, *instrument, *qty)?,
            qty: engine.instrument(*instrument)?.qty(-*qty).to_string(),
        }),
        Notice::Adjusted { adjustment, .. } => {
            let (kind, of, from, to) = match adjustment {
                Adjustment::Balance {
                    surface,
                    asset,
                    from,
                    to,
                } => {
                    let asset = &engine.assets()[usize::from(asset.0)];
                    let text = |amount: &windvane_model::Amount| amount.to_decimal().to_string();
                    (
                        "balance",
                        format!("{surface}:{asset}"),
                        text(from),
                        text(to),
                    )
                }
                Adjustment::Position {
                    instrument,
                    side,
                    from,
                    to,
                } => {
                    let rules = engine.instrument(*instrument)?;
                    let text = |qty: &i64| rules.qty(*qty).to_string();
                    ("position", book(rules, *side), text(from), text(to))
                }
                Adjustment::Absent { order } | Adjustment::Alive { order } => {
                    let kind = match adjustment {
                        Adjustment::Alive { .. } => "alive",
                        _ => "absent",
                    };
                    let id = engine
                        .order(*order)
                        .map(|order| order.client_order_id.to_string());
                    (kind, id.unwrap_or_default(), String::new(), String::new())
                }
                // The account does not change: see `settled`.
                Adjustment::Settled { .. } => return None,
            };
            Some(WitnessEvent::Adjusted {
                process: life,
                kind: kind.to_owned(),
                of,
                from,
                to,
            })
        }
        _ => None,
    }
}

/// The view of the engine.
pub fn view(engine: &Engine) -> View {
    let ledgers = engine.ledgers();
    let strategies = ledgers.strategies.iter().enumerate();
    let marks = engine.instruments().iter().enumerate();
    let marks = marks.filter_map(|(place, instrument)| {
        let mark = engine.mark(InstrumentId(place as u16))?;
        let price = Amount(mark.mark.into()).to_decimal().normalize();
        Some((instrument.name(), price.to_string()))
    });
    View {
        state: engine.run_state().as_str().to_owned(),
        degraded_reasons: engine
            .degraded_reasons()
            .iter()
            .map(ToString::to_string)
            .collect(),
        epoch: engine.epoch(),
        orders: orders(engine),
        marks: marks.collect(),
        positions: positions(engine, &ledgers.account),
        elsewhere: engine.unconfigured_positions().map(elsewhere).collect(),
        balances: engine
            .balances()
            .map(|(surface, asset, balance)| BalanceView {
                surface: surface.to_string(),
                asset: engine.assets()[usize::from(asset.0)].clone(),
                total: balance.total.to_decimal().normalize().to_string(),
            })
            .collect(),
        strategies: strategies
            .map(|(place, ledger)| {
                let id = StrategyId(place as u16);
                StrategyView {
                    id: engine.strategy_name(id).unwrap_or_default().to_owned(),
                    fault: engine.fault(id).map(|fault| fault.as_str().to_owned()),
                    positions: positions(engine, ledger),
                    realized: ledger
                        .total(|held| held.realized_pnl)
                        .to_decimal()
                        .to_string(),
                    fees: ledger.total(|held| held.fees).to_decimal().to_string(),
                }
            })
            .collect(),
        ticks: engine.instruments().iter().map(tick).collect(),
    }
}

fn elsewhere(position: &StatedPosition) -> ElsewhereView {
    let text = |amount: Amount| amount.to_decimal().normalize().to_string();
    ElsewhereView {
        symbol: position.symbol.clone(),
        position_side: position.position_side.as_str().to_owned(),
        qty: text(position.qty),
        unrealized: text(position.unrealized),
    }
}

fn tick(rules: &Instrument) -> (String, String) {
    let filter = rules.filters.price.unwrap_or_default();
    let tick = rules.price(filter.tick_size);
    (rules.name(), tick.normalize().to_string())
}

fn orders(engine: &Engine) -> Vec<OrderView> {
    let rows = engine.orders().iter().filter_map(|order| {
        let instrument = engine.instrument(order.instrument())?;
        let terms = &order.terms;
        Some(OrderView {
            instrument: instrument.name(),
            strategy: engine.strategy_name(order.strategy)?.to_owned(),
            client_order_id: order.client_order_id.as_str().to_owned(),
            order_id: order.venue_order_id.map(|id| id.0),
            side: terms.side.as_str().to_owned(),
            position_side: terms.position_side.as_str().to_owned(),
            price: terms
                .price
                .map(|price| instrument.price(price.0).normalize().to_string()),
            qty: terms
                .qty
                .map(|qty| instrument.qty(qty.0).normalize().to_string()),
            executed_qty: instrument.qty(order.executed_qty).normalize().to_string(),
            state: order.state.as_str().to_owned(),
            held: order.held,
        })
    });
    rows.collect()
}

fn positions(engine: &Engine, ledger: &Ledger) -> Vec<PositionView> {
    let open = ledger
        .iter()
        .filter(|(_, _, held)| !held.position.is_flat());
    let rows = open.filter_map(|(id, side, held)| {
        let instrument = engine.instrument(id)?;
        let dust = Grains::of(instrument).amount(held.position.dust.into());
        Some(PositionView {
            instrument: instrument.name(),
            position_side: side.as_str().to_owned(),
            qty: instrument.qty(held.position.qty).normalize().to_string(),
            dust: dust.to_decimal().normalize().to_string(),
            cost: held.position.cost.to_decimal().normalize().to_string(),
        })
    });
    rows.collect()
}
