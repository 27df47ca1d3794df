//! Converts the results of the calls that a request needed into the replies that the engine
//! expects.

use windvane_model::protocol::{OrderReport, Outcome, Refusal, Reply};
use windvane_model::state_report::{StateReport, Subject};
use windvane_model::{ClientOrderId, Instrument, InstrumentId, NewOrder, Request, Surface};

use super::batch::{self, Calls, code};
use super::record::record;
use super::{Adapter, DecodeError, Note, WithNotes, account, order, rules};
use crate::error::code::{INVALID_TIMESTAMP, TOO_MANY_REQUESTS};
use crate::route::Of;
use crate::wire::{self, futures, spot};

/// The result of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallResult<'a> {
    /// The call was carried out: the body of the response.
    Done(&'a str),
    /// The call was refused and changed nothing.
    Refused {
        /// The venue's code; `None` if it sent none, which is passed on as 0.
        code: Option<i64>,
        /// The venue's message.
        msg: &'a str,
    },
    /// The call may or may not have been carried out.
    Unknown,
    /// The call never left the process. The code that is passed on is [`Refusal::NOT_SENT`].
    NotSent {
        /// Why.
        msg: &'a str,
    },
    /// The venue did not carry out the call because of a limit.
    Wait {
        /// The venue's code; `None` is passed on as -1003.
        code: Option<i64>,
        /// Why.
        msg: &'a str,
    },
}

/// The venue's code for an invalid nonce (docs/interface/conventions.md#nonces).
const BAD_NONCE: i64 = -4225;

impl Adapter {
    /// The replies to a request, from the results of the calls of [`Adapter::encode_request`] in the same
    /// order.
    ///
    /// A body that cannot be parsed gives [`Outcome::Unknown`], and a note explains why. A missing
    /// result is unknown too. A read of the account that must wait is unknown and not refused,
    /// because a refusal means that the venue does not serve the data at all.
    pub fn decode_reply(&self, request: &Request, results: &[CallResult<'_>]) -> WithNotes<Reply> {
        let mut decoder = ReplyDecoder {
            adapter: self,
            decoded: WithNotes::new(),
        };
        match request {
            Request::PlaceBatch(orders) => decoder.placed_batch(orders, results),
            Request::CancelBatch {
                instrument,
                client_order_ids,
            } => decoder.canceled_batch(*instrument, client_order_ids, results),
            Request::Read(subject) => decoder.read(*subject, results),
            single => decoder.single(single, results.first().copied()),
        }
        decoder.decoded
    }
}

/// The replies that are being collected.
struct ReplyDecoder<'a> {
    adapter: &'a Adapter,
    decoded: WithNotes<Reply>,
}

impl ReplyDecoder<'_> {
    fn push(&mut self, reply: Reply) {
        self.decoded.items.push(reply);
    }

    /// The outcome of a call whose response is parsed by `read`.
    fn outcome<T>(
        &mut self,
        route: &'static str,
        result: Option<CallResult<'_>>,
        read: impl FnOnce(&str, &mut Vec<Note>) -> Result<T, DecodeError>,
    ) -> Outcome<T> {
        match result {
            None => self.decoded.notes.push(Note::Unanswered { route }),
            Some(CallResult::Unknown) => {}
            Some(CallResult::Done(body)) => match read(body, &mut self.decoded.notes) {
                Ok(done) => return Outcome::Done(done),
                Err(error) => self.unreadable(route, error, body),
            },
            Some(other) => return Outcome::Refused(refusal(&other)),
        }
        Outcome::Unknown
    }

    fn unreadable(&mut self, route: &'static str, error: DecodeError, body: &str) {
        /// The length of an excerpt that fits in a log line.
        const CHARS_MAX: usize = 200;
        let excerpt = body.chars().take(CHARS_MAX).collect();
        self.decoded.notes.push(Note::Unreadable {
            route,
            error,
            excerpt,
        });
    }

    /// Handles a request that is one call.
    fn single(&mut self, request: &Request, result: Option<CallResult<'_>>) {
        match request {
            Request::Place(order) => {
                let client_order_id = order.client_order_id;
                let id = order.terms.instrument;
                let outcome = self.order("new_order", id, &client_order_id, result);
                self.push(Reply::Placed {
                    client_order_id,
                    outcome,
                });
            }
            Request::Cancel {
                instrument,
                client_order_id,
            } => {
                let outcome = self.order("cancel_order", *instrument, client_order_id, result);
                self.push(Reply::Canceled {
                    client_order_id: *client_order_id,
                    outcome,
                });
            }
            Request::Query {
                instrument,
                client_order_id,
            } => {
                let outcome = self.order("query_order", *instrument, client_order_id, result);
                self.push(Reply::Queried {
                    client_order_id: *client_order_id,
                    outcome,
                });
            }
            Request::CancelAll { instrument } => {
                let outcome = self.outcome("cancel_all_orders", result, |body, _| simple(body));
                self.push(Reply::CanceledAll {
                    instrument: *instrument,
                    outcome,
                });
            }
            Request::SetPositionMode { .. } => {
                let route = Of::<futures::ChangePositionMode>::ROUTE.name;
                let outcome = self.outcome(route, result, |body, _| simple(body));
                self.push(Reply::PositionMode { outcome });
            }
            Request::Countdown {
                instrument,
                countdown_ms,
            } => self.countdown(*instrument, *countdown_ms, result),
            Request::SetLeverage { instrument, .. } => self.leverage(*instrument, result),
            // `decode_reply` handles these itself.
            Request::PlaceBatch(_) | Request::CancelBatch { .. } | Request::Read(_) => {}
        }
    }

    /// An accepted request arms the countdown that was sent, unless the response states another
    /// one.
    fn countdown(
        &mut self,
        instrument: InstrumentId,
        sent_ms: u64,
        result: Option<CallResult<'_>>,
    ) {
        let adapter = self.adapter;
        let route = Of::<futures::CountdownCancelAll>::ROUTE.name;
        let outcome = self.outcome(route, result, |body, _| {
            let answer: futures::Countdown = record(body)?;
            if let Some(symbol) = &answer.symbol {
                adapter.is_symbol(instrument, symbol)?;
            }
            match answer.countdown_time {
                Some(time) => small("countdownTime", time.0),
                None => Ok(sent_ms),
            }
        });
        self.push(Reply::Countdown {
            instrument,
            outcome,
        });
    }

    fn leverage(&mut self, instrument: InstrumentId, result: Option<CallResult<'_>>) {
        let adapter = self.adapter;
        let route = Of::<futures::ChangeLeverage>::ROUTE.name;
        let outcome = self.outcome(route, result, |body, _| {
            let answer: futures::Leverage = record(body)?;
            adapter.is_symbol(instrument, &answer.symbol)?;
            small("leverage", answer.leverage.0)
        });
        self.push(Reply::Leverage {
            instrument,
            outcome,
        });
    }

    /// A call whose response is the order that it was about.
    fn order(
        &mut self,
        route: &'static str,
        instrument: InstrumentId,
        id: &ClientOrderId,
        result: Option<CallResult<'_>>,
    ) -> Outcome<OrderReport> {
        let adapter = self.adapter;
        self.outcome(route, result, |body, _| {
            let (rules, order) = adapter.order_object(instrument, body)?;
            if order.client_order_id != id.as_str() {
                return Err(DecodeError::Other {
                    found: order.client_order_id,
                    requested: id.to_string(),
                });
            }
            adapter.is_symbol(instrument, &order.symbol)?;
            order::report(instrument, rules, &order)
        })
    }

    fn placed_batch(&mut self, orders: &[NewOrder], results: &[CallResult<'_>]) {
        let calls = Calls::placing(&self.adapter.names, orders);
        for (n, range) in calls.enumerate() {
            let call = results.get(n).copied();
            let orders = &orders[range];
            if let [order] = orders {
                self.single(&Request::Place(*order), call);
                continue;
            }
            let ids: Vec<_> = orders.iter().map(|order| order.client_order_id).collect();
            let route = Of::<futures::BatchOrders>::ROUTE.name;
            let outcomes = self.batch(route, &ids, call, |n| orders[n].terms.instrument);
            for (client_order_id, outcome) in ids.into_iter().zip(outcomes) {
                self.push(Reply::Placed {
                    client_order_id,
                    outcome,
                });
            }
        }
    }

    fn canceled_batch(
        &mut self,
        instrument: InstrumentId,
        ids: &[ClientOrderId],
        results: &[CallResult<'_>],
    ) {
        let rules = self.adapter.names.rules(instrument);
        let surface = rules.map_or(Surface::Futures, |rules| rules.surface);
        for (n, range) in Calls::cancelling(surface, ids.len()).enumerate() {
            let call = results.get(n).copied();
            let ids = &ids[range];
            if let [client_order_id] = *ids {
                let single = Request::Cancel {
                    instrument,
                    client_order_id,
                };
                self.single(&single, call);
                continue;
            }
            let route = Of::<futures::CancelBatchOrders>::ROUTE.name;
            let outcomes = self.batch(route, ids, call, |_| instrument);
            for (client_order_id, outcome) in ids.iter().zip(outcomes) {
                self.push(Reply::Canceled {
                    client_order_id: *client_order_id,
                    outcome,
                });
            }
        }
    }

    /// The outcome of each order of a batch. If the whole batch was refused, each order gets that
    /// refusal.
    fn batch(
        &mut self,
        route: &'static str,
        ids: &[ClientOrderId],
        result: Option<CallResult<'_>>,
        instrument: impl Fn(usize) -> InstrumentId,
    ) -> Vec<Outcome<OrderReport>> {
        let adapter = self.adapter;
        let mut unread = Vec::new();
        let whole = self.outcome(route, result, |body, _| {
            let entries: Vec<futures::BatchEntry> = record(body)?;
            let report = |order: &futures::Order| {
                let place = ids
                    .iter()
                    .position(|id| id.as_str() == order.client_order_id);
                let id = instrument(place.unwrap_or_default());
                adapter.is_symbol(id, &order.symbol)?;
                order::report(id, adapter.rules_of(id)?, order)
            };
            Ok(batch::outcomes(ids, &entries, report, |error| {
                unread.push((error, body.to_owned()));
            }))
        });
        for (error, body) in unread {
            self.unreadable(route, error, &body);
        }
        match whole {
            Outcome::Done(outcomes) => outcomes,
            Outcome::Refused(refusal) => vec![Outcome::Refused(refusal); ids.len()],
            Outcome::Unknown => vec![Outcome::Unknown; ids.len()],
        }
    }

    fn read(&mut self, subject: Subject, results: &[CallResult<'_>]) {
        let adapter = self.adapter;
        let first = results.first().copied();
        let outcome = match subject {
            Subject::OpenOrders { surface } => self.open_orders(surface, results),
            Subject::Trades { instrument, .. } => {
                self.outcome("user_trades", first, |body, notes| {
                    account::trades(adapter, instrument, body, notes)
                })
            }
            Subject::Account {
                surface: Surface::Spot,
            } => self.outcome("account", first, |body, notes| {
                account::spot(adapter, body, notes).map(StateReport::Account)
            }),
            Subject::Account {
                surface: Surface::Futures,
            } => self.futures_account(results),
            Subject::Rules { surface } => self.outcome("exchange_info", first, |body, notes| {
                rules::listed(adapter, surface, body, notes).map(StateReport::Rules)
            }),
            Subject::Income { .. } => {
                self.outcome("income", first, |body, _| account::income(adapter, body))
            }
            Subject::AssetPrice { .. } => {
                self.outcome("ticker_price", first, |body, _| account::asset_price(body))
            }
            Subject::ForcedOrders { instrument } => {
                self.outcome("force_orders", first, |body, _| {
                    account::forced_orders(adapter, instrument, body).map(StateReport::ForcedOrders)
                })
            }
            Subject::OutsideOrder { instrument, .. } => {
                self.outcome("query_order", first, |body, _| {
                    let order = account::outside_order(adapter, instrument, body)?;
                    Ok(StateReport::OutsideOrder(Box::new(order)))
                })
            }
            Subject::NewestOrders { instrument } => self.outcome("all_orders", first, |body, _| {
                account::newest_orders(adapter, instrument, body).map(StateReport::NewestOrders)
            }),
            Subject::TradedOrder { instrument, .. } => {
                self.outcome("query_order", first, |body, _| {
                    account::traded_order(adapter, instrument, body).map(StateReport::TradedOrder)
                })
            }
        };
        // A read counts as refused only if the venue does not serve it; every other failure is
        // retried.
        let failed = |result: &&CallResult<'_>| !matches!(result, CallResult::Done(_));
        let decisive = match subject {
            Subject::OpenOrders { .. } => results.iter().find(failed).copied().or(first),
            _ => first,
        };
        let passing = match decisive {
            Some(CallResult::Wait { .. } | CallResult::NotSent { .. }) => true,
            Some(CallResult::Refused { code, .. }) => {
                code.is_some_and(|code| code == INVALID_TIMESTAMP.code || code == BAD_NONCE)
            }
            _ => false,
        };
        let outcome = if passing { Outcome::Unknown } else { outcome };
        let is_read = matches!(outcome, Outcome::Done(StateReport::Account(_)));
        if let (true, Some(CallResult::Done(body))) = (is_read, first)
            && let Some(positions) = account::stated(adapter, subject, body)
        {
            self.push(Reply::Stated(positions));
        }
        self.push(Reply::Read { subject, outcome });
        if let (true, Some(CallResult::Done(body))) = (is_read, first) {
            let margins = account::margins(adapter, subject, body);
            if !margins.is_empty() {
                self.push(Reply::Margins(margins));
            }
        }
    }

    /// The open orders of a surface: one list of all symbols, or one list for each symbol. All
    /// lists must succeed.
    fn open_orders(
        &mut self,
        surface: Surface,
        results: &[CallResult<'_>],
    ) -> Outcome<StateReport> {
        let adapter = self.adapter;
        let mut all = Vec::new();
        let mut left = results.iter().copied().map(Some).collect::<Vec<_>>();
        if left.is_empty() {
            left.push(None);
        }
        for answer in left {
            let listed = self.outcome("open_orders", answer, |body, notes| {
                account::open_orders(adapter, surface, body, notes)
            });
            match listed {
                Outcome::Done(orders) => all.extend(orders),
                Outcome::Refused(refusal) => return Outcome::Refused(refusal),
                Outcome::Unknown => return Outcome::Unknown,
            }
        }
        Outcome::Done(StateReport::OpenOrders(all))
    }

    /// The account and its two modes. A mode without a response stays unknown.
    fn futures_account(&mut self, results: &[CallResult<'_>]) -> Outcome<StateReport> {
        let adapter = self.adapter;
        let outcome = self.outcome("account", results.first().copied(), |body, notes| {
            account::futures(adapter, body, notes)
        });
        let mut account = match outcome {
            Outcome::Done(account) => account,
            Outcome::Refused(refusal) => return Outcome::Refused(refusal),
            Outcome::Unknown => return Outcome::Unknown,
        };
        let route = Of::<futures::GetPositionMode>::ROUTE.name;
        let mode = self.outcome(route, results.get(1).copied(), |body, _| {
            record::<futures::PositionMode>(body).map(|mode| mode.dual_side_position.0)
        });
        account.hedge_mode = self.part(route, "position mode", mode);
        let route = Of::<futures::GetMultiAssetsMode>::ROUTE.name;
        let mode = self.outcome(route, results.get(2).copied(), |body, _| {
            record::<futures::MultiAssetsMode>(body).map(|mode| mode.multi_assets_margin.0)
        });
        account.multi_assets = self.part(route, "multi-assets mode", mode);
        Outcome::Done(StateReport::Account(account))
    }

    fn part<T>(
        &mut self,
        route: &'static str,
        what: &'static str,
        outcome: Outcome<T>,
    ) -> Option<T> {
        if let Outcome::Done(part) = outcome {
            return Some(part);
        }
        self.decoded.notes.push(Note::Part { route, what });
        None
    }
}

impl Adapter {
    /// Parses an order object into the fields of a futures order.
    fn order_object(
        &self,
        id: InstrumentId,
        body: &str,
    ) -> Result<(&Instrument, futures::Order), DecodeError> {
        let rules = self.rules_of(id)?;
        let order = match rules.surface {
            Surface::Futures => record(body)?,
            Surface::Spot => order::as_futures(record::<spot::Order>(body)?),
        };
        Ok((rules, order))
    }

    pub(super) fn rules_of(&self, id: InstrumentId) -> Result<&Instrument, DecodeError> {
        let rules = self.names.rules(id);
        rules.ok_or_else(|| DecodeError::Record(format!("instrument {} is not configured", id.0)))
    }

    /// Checks that a response is about the requested symbol.
    pub(super) fn is_symbol(&self, id: InstrumentId, symbol: &str) -> Result<(), DecodeError> {
        let requested = &self.rules_of(id)?.symbol;
        if requested.eq_ignore_ascii_case(symbol) {
            return Ok(());
        }
        Err(DecodeError::Other {
            found: symbol.to_owned(),
            requested: requested.clone(),
        })
    }
}

fn simple(body: &str) -> Result<(), DecodeError> {
    record::<wire::SimpleResult>(body).map(drop)
}

fn small<T: TryFrom<i64>>(field: &'static str, value: i64) -> Result<T, DecodeError> {
    T::try_from(value).map_err(|_| DecodeError::Figure {
        field,
        value: value.into(),
        scale: 0,
    })
}

/// The refusal for a call that had no effect, with its reason.
fn refusal(result: &CallResult<'_>) -> Refusal {
    let (number, msg) = match *result {
        CallResult::NotSent { msg } => return Refusal::not_sent(msg),
        CallResult::Wait { code: number, msg } => (number.unwrap_or(TOO_MANY_REQUESTS.code), msg),
        CallResult::Refused { code: number, msg } => (number.unwrap_or_default(), msg),
        CallResult::Done(_) | CallResult::Unknown => (0, ""),
    };
    Refusal {
        code: code(number),
        msg: msg.to_owned(),
    }
}
