//! The account under test, a venue that sends random messages, and the model that receives the same
//! messages.

use windvane_model::config::EngineConfig;
use windvane_model::effect::Adjustment;
use windvane_model::protocol::{
    AccountReason, AccountUpdate, BalanceUpdate, OrderUpdate, PositionUpdate,
};
use windvane_model::{
    Amount, ClientOrderId, Input, Instrument, Level, MarketEvent, Notice, OrderSeq, OrderStatus,
    OrderTerms, OrderType, Outcome, PositionSide, Price, Qty, Reply, Request, Side, StrategyId,
    Surface, Time, UserEvent,
};

use super::invariants::Watch;
use super::model::Model;
use super::steps::{Answer, FUTURES, Pick, SPOT, Step, Wish};
use super::support::{self, Account, USDT};

pub(crate) const START_QUOTE: i128 = 10_000 * 100_000_000;
/// 0.5 of the base asset, a quantity mantissa of 500.
pub(crate) const START_BASE: i128 = 50_000_000;
pub(crate) const BASE: windvane_model::AssetId = windvane_model::AssetId(0);

/// An own order as the venue knows it.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) id: ClientOrderId,
    pub(crate) strategy: StrategyId,
    pub(crate) seq: OrderSeq,
    pub(crate) terms: OrderTerms,
    pub(crate) executed: i64,
    pub(crate) status: OrderStatus,
}

impl Placed {
    /// The quantity that is left. Orders by quote quantity count as 50.
    fn left(&self) -> i64 {
        self.terms.qty.map_or(50, |qty| qty.0) - self.executed
    }
}

pub(crate) struct World {
    pub(crate) account: Account,
    pub(crate) orders: Vec<Placed>,
    pub(crate) model: Model,
    pub(crate) watch: Watch,
    said: Vec<(Option<StrategyId>, OrderUpdate)>,
    next_trade: i64,
}

/// Futures and spot of the same pair, with an initial holding of the base asset.
pub(crate) fn config() -> EngineConfig {
    let spot = Instrument {
        surface: Surface::Spot,
        ..support::instrument()
    };
    let mut config = support::config();
    config.instruments.push(spot);
    for strategy in &mut config.strategies {
        let mut subscription = strategy.subscriptions[0].clone();
        subscription.instrument = SPOT;
        strategy.subscriptions.push(subscription);
    }
    config.balances = vec![
        (Surface::Futures, USDT, Amount(START_QUOTE)),
        (Surface::Spot, USDT, Amount(START_QUOTE)),
        (Surface::Spot, BASE, Amount(START_BASE)),
    ];
    config
}

impl World {
    pub(crate) fn new(config: EngineConfig) -> Self {
        let mut world = Self {
            account: Account::new(config),
            orders: Vec::new(),
            model: Model {
                futures_quote: START_QUOTE,
                spot_quote: START_QUOTE,
                spot_base: START_BASE,
                ..Model::default()
            },
            watch: Watch::default(),
            said: Vec::new(),
            next_trade: 0,
        };
        world.top(SPOT, 999, 1001);
        let holding = super::model::Position {
            qty: 500,
            cost: 500 * 1000 * super::model::UNIT,
            realized: 0,
        };
        world.model.account.insert(SPOT, holding);
        world
    }

    fn top(&mut self, instrument: windvane_model::InstrumentId, bid: i64, ask: i64) {
        let level = |price| Level { price, qty: 1000 };
        self.account.handle(Input::Market {
            instrument,
            event: MarketEvent::Top {
                update_id: 0,
                bid: level(bid),
                ask: level(ask),
            },
        });
    }

    fn pick(&self, pick: Pick) -> Option<usize> {
        self.orders.len().checked_sub(pick + 1)
    }

    /// Books settlements in sub-ledgers without an order in the model. Either outside orders closed
    /// a position, with the profit in the notice, or two strategies that are being closed had
    /// opposite positions.
    pub(crate) fn hear_settlements(&mut self) {
        let model = &mut self.model;
        self.account.notices.retain(|notice| {
            match *notice {
                Notice::ClosedOutside {
                    strategy,
                    instrument,
                    qty,
                    realized_pnl,
                    ..
                } => {
                    let own = model.own.entry((strategy, instrument)).or_default();
                    own.settle(i128::from(qty), realized_pnl.0);
                }
                Notice::Adjusted {
                    adjustment:
                        Adjustment::Settled {
                            instrument,
                            sold,
                            bought,
                            qty,
                            quote,
                            ..
                        },
                    ..
                } => {
                    for (strategy, side) in [(sold, Side::Sell), (bought, Side::Buy)] {
                        let own = model.own.entry((strategy, instrument)).or_default();
                        own.fill(side, i128::from(qty), quote.0);
                    }
                }
                _ => return true,
            }
            false
        });
    }

    /// Executes one step, then registers the orders that were sent.
    pub(crate) fn step(&mut self, step: &Step) {
        match *step {
            Step::Callback {
                strategy,
                ref cancels,
                cancel_all,
                ref wishes,
                timer_ms,
            } => {
                let strategy = StrategyId(strategy);
                let seqs = cancels
                    .iter()
                    .filter_map(|p| Some(self.orders[self.pick(*p)?].seq));
                let seqs: Vec<_> = seqs.collect();
                let now = self.account.now;
                self.account.call(strategy, |callback, engine| {
                    for seq in seqs {
                        callback.cancel(engine, seq).ok();
                    }
                    if cancel_all {
                        callback.cancel_all(engine, None);
                    }
                    for wish in wishes {
                        callback.submit(engine, terms(wish)).ok();
                    }
                    if let Some(ms) = timer_ms {
                        callback.set_timer(engine, now.plus_ms(ms), ms % 3).unwrap();
                    }
                });
            }
            Step::Placed(pick, answer) => self.answer(pick, answer, |id, outcome| Reply::Placed {
                client_order_id: id,
                outcome,
            }),
            Step::Canceled(pick, answer) => {
                self.answer(pick, answer, |id, outcome| Reply::Canceled {
                    client_order_id: id,
                    outcome,
                });
            }
            Step::Queried(pick, answer) => {
                self.answer(pick, answer, |id, outcome| Reply::Queried {
                    client_order_id: id,
                    outcome,
                });
            }
            Step::Execute {
                pick,
                qty,
                fee,
                tell,
            } => self.execute(pick, qty, fee, tell),
            Step::End { pick, status, tell } => self.end(pick, status, tell),
            Step::Again(pick) => {
                if let Some(last) = self.said.len().checked_sub(1) {
                    let (owner, update) = self.said[last - pick % self.said.len().min(12)];
                    self.tell(owner, update);
                }
            }
            Step::External {
                instrument,
                side,
                qty,
                price,
                known,
            } => self.external(instrument, side, qty, price, known),
            Step::Top {
                instrument,
                bid,
                spread,
            } => self.top(instrument, bid, bid + spread),
            Step::Mark(price) => self.account.handle(Input::Market {
                instrument: FUTURES,
                event: MarketEvent::Mark {
                    mark: price * 10_000_000,
                    index: 0,
                    funding_rate: 10_000,
                    next_funding: Time::NEVER,
                },
            }),
            Step::Pass(ms) => self.account.pass(ms),
            Step::Fault { strategy, kind } => self.account.handle(Input::Fault {
                strategy: StrategyId(strategy),
                kind,
            }),
            Step::Command(command) => self.account.handle(Input::Command(command)),
            Step::Funding(_)
            | Step::Transfer(_)
            | Step::BalanceCorrection(_)
            | Step::PositionCorrection { .. } => self.account_update(step),
        }
        self.hear_settlements();
        self.take_up();
    }

    fn take_up(&mut self) {
        for request in std::mem::take(&mut self.account.sent) {
            let Request::Place(order) = request else {
                continue;
            };
            let (name, _, seq) = order.client_order_id.parse_own().unwrap();
            self.orders.push(Placed {
                id: order.client_order_id,
                strategy: StrategyId(u16::from(name == "other")),
                seq,
                terms: order.terms,
                executed: 0,
                status: OrderStatus::New,
            });
        }
    }

    fn answer(
        &mut self,
        pick: Pick,
        answer: Answer,
        reply: impl FnOnce(ClientOrderId, Outcome<windvane_model::protocol::OrderReport>) -> Reply,
    ) {
        let Some(index) = self.pick(pick) else { return };
        let order = &self.orders[index];
        let outcome = match answer {
            Answer::Done => {
                let mut report = support::report(order.id, order.status, order.executed);
                report.instrument = order.terms.instrument;
                Outcome::Done(report)
            }
            // A venue rejects an order that it never executed, or a cancel that arrives too late.
            Answer::Refused if order.executed == 0 => support::refused(-2011),
            Answer::Refused | Answer::Unknown => Outcome::Unknown,
        };
        let reply = reply(order.id, outcome);
        if matches!(
            reply,
            Reply::Placed {
                outcome: Outcome::Refused(_),
                ..
            }
        ) {
            if order.status != OrderStatus::New {
                return;
            }
            self.orders[index].status = OrderStatus::Rejected;
        }
        self.account.handle(Input::Reply(&reply));
        self.hear_settlements();
    }

    fn execute(&mut self, pick: Pick, qty: i64, fee: i64, tell: bool) {
        let Some(index) = self.pick(pick) else { return };
        let order = &self.orders[index];
        if order.status.is_final() {
            return;
        }
        let qty = qty.min(order.left());
        let by_quote = order.terms.quote_qty.is_some();
        let order = &mut self.orders[index];
        order.executed += qty;
        order.status = if order.left() == 0 || by_quote {
            OrderStatus::Filled
        } else {
            OrderStatus::PartiallyFilled
        };
        let order = self.orders[index].clone();
        self.next_trade += 1;
        let price = order.terms.price.map_or(1000, |price| price.0);
        let mut update = update(&order);
        let template = support::fill(
            order.id,
            order.terms.side,
            self.next_trade,
            qty,
            0,
            order.status,
        );
        let mut fill = template.fill.unwrap();
        fill.price = Price(price);
        fill.quote_qty = support::instrument().notional(price, qty);
        fill.fee = Amount(fee.into());
        update.execution = template.execution;
        update.fill = Some(fill);
        self.say(Some(order.strategy), update, tell);
    }

    fn end(&mut self, pick: Pick, status: OrderStatus, tell: bool) {
        let Some(index) = self.pick(pick) else { return };
        let order = &mut self.orders[index];
        if order.status.is_final() || (status == OrderStatus::Rejected && order.executed > 0) {
            return;
        }
        order.status = status;
        let order = order.clone();
        let update = update(&order);
        self.say(Some(order.strategy), update, tell);
    }

    fn external(
        &mut self,
        instrument: windvane_model::InstrumentId,
        side: Side,
        qty: i64,
        price: i64,
        known: bool,
    ) {
        self.next_trade += 1;
        // A manual order, or an own order of an earlier epoch.
        let id = ClientOrderId::new(if known { "mm.6.1" } else { "web-1" }).unwrap();
        let mut update = support::fill(id, side, self.next_trade, qty, qty, OrderStatus::Filled);
        update.instrument = instrument;
        if let Some(fill) = &mut update.fill {
            fill.price = Price(price);
            fill.quote_qty = support::instrument().notional(price, qty);
        }
        self.say(None, update, true);
    }

    fn say(&mut self, owner: Option<StrategyId>, update: OrderUpdate, tell: bool) {
        self.said.push((owner, update));
        if tell {
            self.tell(owner, update);
        }
    }

    fn tell(&mut self, owner: Option<StrategyId>, update: OrderUpdate) {
        self.model.fill(owner, &update);
        self.account.update(update);
        self.hear_settlements();
    }

    /// The venue sends every update once more, in order.
    pub(crate) fn say_all_again(&mut self) {
        for (owner, update) in self.said.clone() {
            self.tell(owner, update);
            self.take_up();
        }
    }

    fn account_update(&mut self, step: &Step) {
        let model = &mut self.model;
        let mut update = AccountUpdate {
            surface: Surface::Futures,
            reason: AccountReason::Other,
            balances: Vec::new(),
            positions: Vec::new(),
            transaction_time: self.account.now,
            event_time: self.account.now,
        };
        let mut change = 0;
        match *step {
            Step::Funding(amount) => {
                update.reason = AccountReason::FundingFee;
                change = amount;
                model.funding += i128::from(amount);
                model.futures_quote += i128::from(amount);
            }
            Step::Transfer(amount) | Step::BalanceCorrection(amount) => {
                if matches!(step, Step::Transfer(_)) {
                    change = amount;
                }
                model.transfers += i128::from(amount);
                model.futures_quote += i128::from(amount);
            }
            Step::PositionCorrection { qty, cost } => {
                let position = model.account.entry(FUTURES).or_default();
                let cost = i128::from(cost * qty.signum());
                if position.qty != i128::from(qty) {
                    position.qty = qty.into();
                    position.cost = cost;
                }
                update.positions.push(PositionUpdate {
                    instrument: FUTURES,
                    position_side: PositionSide::Both,
                    qty: Qty(qty),
                    cost: Amount(cost),
                });
            }
            _ => {}
        }
        if update.positions.is_empty() {
            update.balances.push(BalanceUpdate {
                asset: USDT,
                total: Amount(model.futures_quote),
                locked: Amount::ZERO,
                change: Amount(change.into()),
            });
        }
        self.account
            .handle(Input::User(&UserEvent::Account(update)));
    }
}

/// An update with the state of an order.
fn update(order: &Placed) -> OrderUpdate {
    let (side, status) = (order.terms.side, order.status);
    let mut update = support::update(order.id, side, status, order.executed);
    update.instrument = order.terms.instrument;
    update.order_type = order.terms.order_type;
    update.orig_qty = order.terms.qty.unwrap_or_default();
    update
}

fn terms(wish: &Wish) -> OrderTerms {
    let mut terms = match wish.order_type {
        OrderType::Limit => support::limit(wish.side, wish.price, wish.qty),
        _ => support::market(wish.side, wish.qty),
    };
    terms.instrument = wish.instrument;
    terms.order_type = wish.order_type;
    terms.reduce_only = wish.reduce_only;
    if wish.order_type == OrderType::StopMarket {
        terms.stop_price = Some(Price(wish.price));
    }
    let by_quote = wish.instrument == SPOT && wish.order_type == OrderType::Market;
    if by_quote && wish.side == Side::Buy {
        terms.quote_qty = Some(support::instrument().notional(1000, wish.qty));
        terms.qty = None;
    }
    terms
}
