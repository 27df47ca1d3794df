//! Converts a request of the engine into the calls that it needs, in order. Numbers are written
//! from mantissas, without exponent and trailing zeros (docs/interface/README.md#7-decimals).

use rust_decimal::Decimal;
use windvane_model::decimal::decimal;
use windvane_model::protocol::{Refusal, Reply};
use windvane_model::state_report::Subject;
use windvane_model::{
    Amount, ClientOrderId, Instrument, InstrumentId, NewOrder, OrderTerms, Outcome, PositionSide,
    Request, Surface,
};

use super::batch::Calls;
use super::{Adapter, EncodeError, FuturesAccount};
use crate::route::{Of, Route, Source};
use crate::wire::enums::ResponseType;
use crate::wire::{Parameters, Request as WireRequest, futures, info, spot};

/// Number of entries that one page of the income history, or of the list of the account's trades,
/// may have (`limit` at most 1000: docs/interface/limits.md#other-bounds).
pub(super) const INCOME_PAGE: usize = 1_000;
pub(super) const TRADES_PAGE: usize = 1_000;
/// How many of the newest orders are requested; any limit up to 500 has the same weight.
const NEWEST_ORDERS: i64 = 100;

/// One call to the venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedCall {
    /// The route.
    pub route: &'static Route,
    /// Business parameters.
    pub parameters: Parameters,
}

impl Adapter {
    /// The calls that a request needs. Make them in this order and pass their results to
    /// [`Adapter::decode_reply`] in the same order. Only an empty batch needs no call.
    pub fn encode_request(&self, request: &Request) -> Result<Vec<EncodedCall>, EncodeError> {
        match request {
            Request::Place(order) => Ok(vec![self.place(order)?]),
            Request::PlaceBatch(orders) => self.place_batch(orders),
            Request::Cancel {
                instrument,
                client_order_id,
            } => Ok(vec![self.cancel(*instrument, client_order_id)?]),
            Request::CancelBatch {
                instrument,
                client_order_ids,
            } => self.cancel_batch(*instrument, client_order_ids),
            Request::CancelAll { instrument } => Ok(vec![self.cancel_all(*instrument)?]),
            Request::Countdown {
                instrument,
                countdown_ms,
            } => {
                let rules = self.futures(*instrument, "countdownCancelAll")?;
                let ms = i64::try_from(*countdown_ms).unwrap_or(i64::MAX);
                let call = futures::CountdownCancelAll::new(rules.symbol.as_str(), ms);
                Ok(vec![self.call(&call)?])
            }
            Request::Query {
                instrument,
                client_order_id,
            } => Ok(vec![self.query(*instrument, client_order_id)?]),
            Request::SetPositionMode { hedge } => {
                Ok(vec![self.call(&futures::ChangePositionMode::new(*hedge))?])
            }
            Request::SetLeverage {
                instrument,
                leverage,
            } => {
                let rules = self.futures(*instrument, "leverage")?;
                let call = futures::ChangeLeverage::new(rules.symbol.as_str(), *leverage);
                Ok(vec![self.call(&call)?])
            }
            Request::Read(subject) => self.read(*subject),
        }
    }

    /// The replies to a request that was not sent.
    pub fn refuse(&self, request: &Request, error: &EncodeError) -> Vec<Reply> {
        refused(request, &Refusal::not_sent(error.to_string()))
    }

    pub(super) fn rules(&self, id: InstrumentId) -> Result<&Instrument, EncodeError> {
        self.names.rules(id).ok_or(EncodeError::Instrument(id))
    }

    fn futures(&self, id: InstrumentId, what: &'static str) -> Result<&Instrument, EncodeError> {
        let rules = self.rules(id)?;
        match rules.surface {
            Surface::Futures => Ok(rules),
            surface @ Surface::Spot => Err(EncodeError::Surface { what, surface }),
        }
    }

    fn call<R: WireRequest>(&self, request: &R) -> Result<EncodedCall, EncodeError> {
        let route = Of::<R>::ROUTE;
        if self.documented && route.source == Source::PublicFacts {
            return Err(EncodeError::Undocumented(route.name));
        }
        Ok(EncodedCall {
            route,
            parameters: request.parameters(),
        })
    }

    fn place(&self, order: &NewOrder) -> Result<EncodedCall, EncodeError> {
        let rules = self.rules(order.terms.instrument)?;
        match rules.surface {
            Surface::Spot => self.call(&spot_order(rules, order)?),
            Surface::Futures => self.call(&futures_order(rules, order)?),
        }
    }

    fn place_batch(&self, orders: &[NewOrder]) -> Result<Vec<EncodedCall>, EncodeError> {
        let calls = Calls::placing(&self.names, orders);
        let calls_made = calls.map(|range| match &orders[range] {
            [order] => self.place(order),
            several => {
                let entries = several.iter().map(|order| {
                    let rules = self.rules(order.terms.instrument)?;
                    batch_order(rules, order)
                });
                let entries: Vec<_> = entries.collect::<Result<_, _>>()?;
                self.call(&futures::BatchOrders::new(entries))
            }
        });
        calls_made.collect()
    }

    fn cancel(&self, id: InstrumentId, order: &ClientOrderId) -> Result<EncodedCall, EncodeError> {
        let rules = self.rules(id)?;
        let (symbol, order) = (rules.symbol.as_str(), order.as_str());
        match rules.surface {
            Surface::Spot => self.call(&spot::CancelOrder::new(symbol).client_order_id(order)),
            Surface::Futures => {
                self.call(&futures::CancelOrder::new(symbol).client_order_id(order))
            }
        }
    }

    fn cancel_batch(
        &self,
        id: InstrumentId,
        orders: &[ClientOrderId],
    ) -> Result<Vec<EncodedCall>, EncodeError> {
        let rules = self.rules(id)?;
        let calls = Calls::cancelling(rules.surface, orders.len());
        let calls_made = calls.map(|range| match &orders[range] {
            [order] => self.cancel(id, order),
            several => {
                let ids: Vec<_> = several.iter().map(ToString::to_string).collect();
                let call = futures::CancelBatchOrders::new(rules.symbol.as_str());
                self.call(&call.client_order_ids(ids))
            }
        });
        calls_made.collect()
    }

    fn cancel_all(&self, id: InstrumentId) -> Result<EncodedCall, EncodeError> {
        let rules = self.rules(id)?;
        let symbol = rules.symbol.as_str();
        match rules.surface {
            Surface::Spot => self.call(&spot::CancelAllOrders::new(symbol)),
            Surface::Futures => self.call(&futures::CancelAllOrders::new(symbol)),
        }
    }

    fn query(&self, id: InstrumentId, order: &ClientOrderId) -> Result<EncodedCall, EncodeError> {
        let rules = self.rules(id)?;
        let (symbol, order) = (rules.symbol.as_str(), order.as_str());
        match rules.surface {
            Surface::Spot => self.call(&spot::QueryOrder::new(symbol).client_order_id(order)),
            Surface::Futures => self.call(&futures::QueryOrder::new(symbol).client_order_id(order)),
        }
    }

    /// Requests for all open orders of a surface, one for each symbol. They cost less for a few
    /// symbols (weight 1 with a symbol, 40 without: docs/interface/orders.md#open-orders). They
    /// omit orders on symbols that are not configured.
    ///
    /// # Errors
    /// The route is not allowed (see [`Adapter::documented`]).
    pub fn open_orders_by_symbol(&self, surface: Surface) -> Result<Vec<EncodedCall>, EncodeError> {
        let symbols = self.names.symbols(surface);
        let calls = symbols.map(|symbol| match surface {
            Surface::Spot => self.call(&spot::OpenOrders::new().symbol(symbol)),
            Surface::Futures => self.call(&futures::OpenOrders::new().symbol(symbol)),
        });
        calls.collect()
    }

    fn read(&self, subject: Subject) -> Result<Vec<EncodedCall>, EncodeError> {
        match subject {
            Subject::OpenOrders { surface } => Ok(vec![match surface {
                Surface::Spot => self.call(&spot::OpenOrders::new())?,
                Surface::Futures => self.call(&futures::OpenOrders::new())?,
            }]),
            Subject::Account {
                surface: Surface::Spot,
            } => Ok(vec![self.call(&spot::GetAccount::new())?]),
            Subject::Account {
                surface: Surface::Futures,
            } => {
                let account = match &self.futures_account {
                    FuturesAccount::Routes => self.call(&futures::GetAccount::new())?,
                    FuturesAccount::Info { address } => {
                        self.call(&info::GetBalance::new(address.as_str(), "latest"))?
                    }
                };
                let position_mode = self.call(&futures::GetPositionMode::new())?;
                let assets_mode = self.call(&futures::GetMultiAssetsMode::new())?;
                Ok(vec![account, position_mode, assets_mode])
            }
            Subject::Rules { surface } => Ok(vec![match surface {
                Surface::Spot => self.call(&spot::GetExchangeInfo::new())?,
                Surface::Futures => self.call(&futures::GetExchangeInfo::new())?,
            }]),
            Subject::Income { from } => {
                let limit = INCOME_PAGE as i64;
                let call = futures::GetIncome::new()
                    .start_time(from.millis())
                    .limit(limit);
                Ok(vec![self.call(&call)?])
            }
            Subject::AssetPrice { asset, quote } => {
                let name = |id| {
                    let name = self.names.asset_name(id);
                    name.ok_or(EncodeError::Asset(id))
                };
                let symbol = format!("{}{}", name(asset)?, name(quote)?);
                Ok(vec![self.call(&futures::GetPrice::new().symbol(symbol))?])
            }
            Subject::ForcedOrders { instrument } => {
                let rules = self.futures(instrument, "forceOrders")?;
                let call = futures::ForceOrders::new().symbol(rules.symbol.as_str());
                Ok(vec![self.call(&call)?])
            }
            Subject::OutsideOrder {
                instrument,
                order_id,
            } => {
                let rules = self.futures(instrument, "order by its id")?;
                let call = futures::QueryOrder::new(rules.symbol.as_str()).order_id(order_id.0);
                Ok(vec![self.call(&call)?])
            }
            Subject::TradedOrder {
                instrument,
                order_id,
            } => {
                let rules = self.rules(instrument)?;
                let (symbol, id) = (rules.symbol.as_str(), order_id.0);
                Ok(vec![match rules.surface {
                    Surface::Spot => self.call(&spot::QueryOrder::new(symbol).order_id(id))?,
                    Surface::Futures => {
                        self.call(&futures::QueryOrder::new(symbol).order_id(id))?
                    }
                }])
            }
            Subject::NewestOrders { instrument } => {
                let rules = self.rules(instrument)?;
                let symbol = rules.symbol.as_str();
                Ok(vec![match rules.surface {
                    Surface::Spot => {
                        self.call(&spot::AllOrders::new(symbol).limit(NEWEST_ORDERS))?
                    }
                    Surface::Futures => {
                        self.call(&futures::AllOrders::new(symbol).limit(NEWEST_ORDERS))?
                    }
                }])
            }
            Subject::Trades { instrument, from } => {
                let rules = self.rules(instrument)?;
                let symbol = rules.symbol.as_str();
                let from = from.map(|id| id.0);
                let limit = TRADES_PAGE as i64;
                Ok(vec![match rules.surface {
                    Surface::Spot => {
                        let mut call = spot::UserTrades::new().symbol(symbol).limit(limit);
                        call.from_id = from;
                        self.call(&call)?
                    }
                    Surface::Futures => {
                        let mut call = futures::UserTrades::new(symbol).limit(limit);
                        call.from_id = from;
                        self.call(&call)?
                    }
                }])
            }
        }
    }
}

/// A spot order. Spot has no position side and no parameters that belong to positions.
fn spot_order(rules: &Instrument, order: &NewOrder) -> Result<spot::NewOrder, EncodeError> {
    let terms = &order.terms;
    let foreign = [
        (terms.position_side != PositionSide::Both, "positionSide"),
        (terms.reduce_only, "reduceOnly"),
        (terms.close_position, "closePosition"),
        (terms.activation_price.is_some(), "activationPrice"),
        (terms.callback_ppm.is_some(), "callbackRate"),
        (terms.working_type.is_some(), "workingType"),
        (terms.price_protect, "priceProtect"),
    ];
    if let Some((_, what)) = foreign.into_iter().find(|(sent, _)| *sent) {
        let surface = Surface::Spot;
        return Err(EncodeError::Surface { what, surface });
    }
    let mut sent = spot::NewOrder::new(rules.symbol.as_str(), terms.side, terms.order_type)
        .client_order_id(order.client_order_id.as_str());
    sent.time_in_force = terms.time_in_force;
    sent.quantity = terms.qty.map(|qty| rules.qty(qty.0));
    sent.quote_order_qty = terms.quote_qty.map(whole_amount).transpose()?;
    sent.price = terms.price.map(|price| rules.price(price.0));
    sent.stop_price = terms.stop_price.map(|price| rules.price(price.0));
    Ok(sent)
}

/// A futures order. It requests a response that contains its fills (`newOrderRespType=RESULT`).
fn futures_order(rules: &Instrument, order: &NewOrder) -> Result<futures::NewOrder, EncodeError> {
    let terms = &order.terms;
    let mut sent = futures::NewOrder::new(rules.symbol.as_str(), terms.side, terms.order_type)
        .client_order_id(order.client_order_id.as_str())
        .response_type(ResponseType::Result);
    (sent.position_side, sent.reduce_only) = position_fields(terms)?;
    sent.time_in_force = terms.time_in_force;
    sent.quantity = terms.qty.map(|qty| rules.qty(qty.0));
    sent.price = terms.price.map(|price| rules.price(price.0));
    sent.stop_price = terms.stop_price.map(|price| rules.price(price.0));
    sent.close_position = terms.close_position.then_some(true);
    sent.activation_price = terms.activation_price.map(|price| rules.price(price.0));
    sent.callback_rate = terms.callback_ppm.map(percent);
    sent.working_type = terms.working_type;
    sent.price_protect = terms.price_protect.then(|| true.into());
    Ok(sent)
}

/// A futures order as an entry of a batch. [`Calls`] puts only orders into a batch that fit one.
fn batch_order(rules: &Instrument, order: &NewOrder) -> Result<futures::BatchOrder, EncodeError> {
    let terms = &order.terms;
    let qty = rules.qty(terms.qty.unwrap_or_default().0);
    let symbol = rules.symbol.as_str();
    let mut sent = futures::BatchOrder::new(symbol, terms.side, terms.order_type, qty)
        .client_order_id(order.client_order_id.as_str())
        .response_type(ResponseType::Result);
    (sent.position_side, sent.reduce_only) = position_fields(terms)?;
    sent.time_in_force = terms.time_in_force;
    sent.price = terms.price.map(|price| rules.price(price.0));
    sent.stop_price = terms.stop_price.map(|price| rules.price(price.0));
    sent.activation_price = terms.activation_price.map(|price| rules.price(price.0));
    sent.callback_rate = terms.callback_ppm.map(percent);
    sent.working_type = terms.working_type;
    sent.price_protect = terms.price_protect.then(|| true.into());
    Ok(sent)
}

/// `positionSide` and `reduceOnly`. In hedge mode `positionSide` must be sent and `reduceOnly` must
/// not, not even as `false` (docs/interface/README.md#12-hedge-mode).
fn position_fields(
    terms: &OrderTerms,
) -> Result<(Option<PositionSide>, Option<bool>), EncodeError> {
    let side = (terms.position_side != PositionSide::Both).then_some(terms.position_side);
    let reduce = terms.reduce_only.then_some(true);
    if side.is_some() && reduce.is_some() {
        return Err(EncodeError::ReduceOnlyInHedgeMode);
    }
    Ok((side, reduce))
}

/// Converts parts per million to percent.
fn percent(ppm: u32) -> Decimal {
    decimal(i128::from(ppm), 4)
}

fn whole_amount(amount: Amount) -> Result<Decimal, EncodeError> {
    let value = amount.to_decimal();
    if Amount::from_decimal(value) == Some(amount) {
        Ok(value)
    } else {
        Err(EncodeError::Amount(amount.0))
    }
}

/// The replies that refuse every part of a request with the same reason.
pub(super) fn refused(request: &Request, refusal: &Refusal) -> Vec<Reply> {
    fn no<T>(refusal: &Refusal) -> Outcome<T> {
        Outcome::Refused(refusal.clone())
    }
    let placed = |id: ClientOrderId| Reply::Placed {
        client_order_id: id,
        outcome: no(refusal),
    };
    let canceled = |id: ClientOrderId| Reply::Canceled {
        client_order_id: id,
        outcome: no(refusal),
    };
    match request {
        Request::Place(order) => vec![placed(order.client_order_id)],
        Request::PlaceBatch(orders) => {
            let ids = orders.iter().map(|order| order.client_order_id);
            ids.map(placed).collect()
        }
        Request::Cancel {
            client_order_id, ..
        } => vec![canceled(*client_order_id)],
        Request::CancelBatch {
            client_order_ids, ..
        } => client_order_ids.iter().copied().map(canceled).collect(),
        Request::CancelAll { instrument } => vec![Reply::CanceledAll {
            instrument: *instrument,
            outcome: no(refusal),
        }],
        Request::Countdown { instrument, .. } => vec![Reply::Countdown {
            instrument: *instrument,
            outcome: no(refusal),
        }],
        Request::Query {
            client_order_id, ..
        } => vec![Reply::Queried {
            client_order_id: *client_order_id,
            outcome: no(refusal),
        }],
        Request::SetPositionMode { .. } => vec![Reply::PositionMode {
            outcome: no(refusal),
        }],
        Request::SetLeverage { instrument, .. } => vec![Reply::Leverage {
            instrument: *instrument,
            outcome: no(refusal),
        }],
        Request::Read(subject) => vec![Reply::Read {
            subject: *subject,
            outcome: no(refusal),
        }],
    }
}
