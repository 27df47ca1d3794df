//! Decodes inputs and effects. The functions mirror those of the writers, field by field.

use crate::event::{EventKind, Intent};
use crate::forced::OnLiquidation;
use crate::ids::{AssetId, InstrumentId, OrderSeq, Time, TradeId, VenueOrderId};
use crate::input::{Command, FaultKind, StartPhase};
use crate::instrument::SymbolStatus;
use crate::order::{
    ExecutionType, NewOrder, OrderStatus, OrderTerms, OrderType, PositionSide, Price, Qty, Side,
    Surface, TimeInForce, WorkingType,
};
use crate::protocol::{
    AccountReason, AccountUpdate, BalanceUpdate, Fill, OrderReport, OrderUpdate, Outcome,
    PositionUpdate, Refusal, Reply, Request, UserEvent,
};
use crate::rules::{Rejection, Rule};

use super::cursor::{Cursor, DecodeError, Read};
use super::form::Form;
use super::market::{self, MarketReader};
use super::recorded::{Record, RecordBody, RecordedEffect, RecordedInput, RecordedNotice};
use super::{HAS_TRANSACTION_TIME, kind};

/// The records of a block in order, each with its sequence. The iterator ends after an error,
/// because the start of the next record is then unknown.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    cursor: Cursor<'a>,
    /// The market part. Without it, only the order records are returned.
    market: Option<MarketReader<'a>>,
    form: Form,
    /// The next order record, which follows some market records.
    pending: Option<Pending>,
    /// The time of the previous order record.
    time: i64,
    /// The sequence of the last event that the order part delivered.
    event: i64,
    /// The sequence of the next record.
    next: u64,
    failed: bool,
}

/// The start of an order record.
#[derive(Clone, Debug)]
struct Pending {
    offset: usize,
    kind: u8,
    /// The number of market records before it.
    skip: u64,
}

impl<'a> Records<'a> {
    /// Reads a block of format 1, which has one stream.
    pub(crate) const fn fixed(bytes: &'a [u8], first: u64) -> Self {
        Self {
            cursor: Cursor::new(bytes, Form::Fixed),
            market: None,
            form: Form::Fixed,
            pending: None,
            time: 0,
            event: 0,
            next: first,
            failed: false,
        }
    }

    /// Reads an order part and a market part, which may be missing.
    pub(crate) fn parts(orders: &'a [u8], market: Option<&'a [u8]>, first: u64) -> Self {
        Self {
            cursor: Cursor::new(orders, Form::Short),
            market: market.map(MarketReader::new),
            form: Form::Short,
            ..Self::fixed(&[], first)
        }
    }

    /// The number of bytes of both parts that are not read yet.
    pub fn left(&self) -> usize {
        let market = self.market.as_ref().map_or(0, MarketReader::left);
        self.cursor.left() + market
    }

    fn read(&mut self) -> Read<Option<Record>> {
        if self.form == Form::Fixed {
            if self.cursor.is_empty() {
                return Ok(None);
            }
            let offset = self.cursor.offset();
            let kind = self.cursor.u8("kind")?;
            let time = self.cursor.time("time")?;
            return record(&mut self.cursor, offset, kind, time).map(Some);
        }
        if self.pending.is_none() && !self.cursor.is_empty() {
            self.pending = Some(Pending {
                offset: self.cursor.offset(),
                kind: self.cursor.u8("kind")?,
                skip: self.cursor.short("market records before")?,
            });
        }
        if let Some(pending) = &mut self.pending {
            if self.market.is_none() {
                self.next = self.next.saturating_add(pending.skip);
                pending.skip = 0;
            }
            if pending.skip == 0 {
                let (offset, kind) = (pending.offset, pending.kind);
                self.pending = None;
                let elapsed = self.cursor.short("time")?;
                self.time = self.time.wrapping_add(elapsed as i64);
                let mut record = record(&mut self.cursor, offset, kind, Time(self.time))?;
                // Accept only records that a writer puts into the order part.
                if is_of_market(&record.body) {
                    return Err(DecodeError::UnknownKind { offset, kind });
                }
                if let RecordBody::Effect(RecordedEffect::Deliver { sequence, .. }) =
                    &mut record.body
                {
                    let elapsed = self.cursor.short_signed("event sequence")?;
                    self.event = self.event.wrapping_add(elapsed);
                    *sequence = Some(self.event);
                }
                return Ok(Some(record));
            }
            pending.skip -= 1;
        }
        match &mut self.market {
            Some(market) if self.pending.is_some() || !market.is_empty() => {
                market.record().map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl Iterator for Records<'_> {
    type Item = (u64, Result<Record, DecodeError>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.read().transpose()?;
        self.failed = record.is_err();
        let sequence = self.next;
        self.next = sequence.saturating_add(1);
        Some((sequence, record))
    }
}

/// Whether a record belongs to the market part.
fn is_of_market(body: &RecordBody) -> bool {
    match body {
        RecordBody::Input(input) => matches!(input, RecordedInput::Market { .. }),
        RecordBody::Effect(RecordedEffect::Deliver { kind, .. }) => kind.is_of_market(),
        _ => false,
    }
}

fn record(cursor: &mut Cursor<'_>, offset: usize, kind: u8, time: Time) -> Read<Record> {
    let body = match kind {
        kind::CONFIG => RecordBody::Config(cursor.text("configuration")?.to_owned()),
        kind::DELIVER => RecordBody::Effect(RecordedEffect::Deliver {
            strategy: cursor.strategy()?,
            kind: cursor.code("event kind", EventKind::from_code)?,
            sequence: None,
        }),
        kind::SEND => RecordBody::Effect(RecordedEffect::Send {
            record: cursor.u64("record")?,
            request: request(cursor)?,
        }),
        kind::STATE => {
            let (from, to, reasons) = cursor.rare("state")?;
            RecordBody::Notice(RecordedNotice::State { from, to, reasons })
        }
        kind::ADJUSTED => {
            let (adjustment, cause) = cursor.rare("adjustment")?;
            RecordBody::Notice(RecordedNotice::Adjusted { adjustment, cause })
        }
        kind::FORCED_CLOSE => {
            RecordBody::Notice(RecordedNotice::ForcedClose(cursor.rare("forced close")?))
        }
        kind::RECONNECT => RecordBody::Effect(RecordedEffect::Reconnect {
            surface: cursor.code("surface", Surface::from_code)?,
        }),
        kind::BEAT => RecordBody::Effect(RecordedEffect::Heartbeat {
            number: cursor.u64("beat")?,
        }),
        _ => match input(cursor, kind)? {
            Some(input) => RecordBody::Input(input),
            None => return Err(DecodeError::UnknownKind { offset, kind }),
        },
    };
    Ok(Record { time, body })
}

fn input(cursor: &mut Cursor<'_>, kind: u8) -> Read<Option<RecordedInput>> {
    Ok(Some(match kind {
        kind::ANSWER => RecordedInput::Answer {
            strategy: cursor.strategy()?,
            intents: cursor.list("intents", intent)?,
        },
        kind::REPLY => RecordedInput::Reply(reply(cursor)?),
        kind::USER => RecordedInput::User(user_event(cursor)?),
        kind::TIMEOUT => RecordedInput::Timeout,
        kind::FAULT => RecordedInput::Fault {
            strategy: cursor.strategy()?,
            kind: cursor.code("fault", |code| {
                FaultKind::ALL.get(usize::from(code)).copied()
            })?,
        },
        kind::COMMAND => RecordedInput::Command(cursor.code("command", command)?),
        kind::STEER => RecordedInput::Steer {
            strategy: cursor.strategy()?,
            command: cursor.code("command", command)?,
        },
        kind::RENEW => RecordedInput::Renew {
            strategy: cursor.strategy()?,
        },
        kind::START => RecordedInput::Start {
            strategy: cursor.strategy()?,
            phase: cursor.code("phase", |code| {
                StartPhase::ALL.get(usize::from(code)).copied()
            })?,
        },
        kind::SAVED => RecordedInput::Saved {
            strategy: cursor.strategy()?,
            handled: cursor.i64("handled")?,
            state: cursor.option("state", |cursor| cursor.bytes("state"))?,
        },
        kind::RECONFIGURE => RecordedInput::Reconfigure(cursor.rare("reconfiguration")?),
        kind::LIVE => RecordedInput::Live(cursor.rare("live input")?),
        kind::SYMBOL_STATUS => RecordedInput::SymbolStatus {
            instrument: cursor.instrument()?,
            status: match cursor.text("status")? {
                "TRADING" => SymbolStatus::Trading,
                other => SymbolStatus::Other(other.to_owned()),
            },
        },
        kind::ON_LIQUIDATION => RecordedInput::OnLiquidation(cursor.code("reaction", |code| {
            OnLiquidation::ALL.get(usize::from(code)).copied()
        })?),
        _ => return market::read_fixed(cursor, kind),
    }))
}

const fn command(code: u8) -> Option<Command> {
    Some(match code {
        0 => Command::Pause,
        1 => Command::Resume,
        2 => Command::Halt,
        3 => Command::Flatten,
        _ => return None,
    })
}

const fn account_reason(code: u8) -> Option<AccountReason> {
    Some(match code {
        0 => AccountReason::Order,
        1 => AccountReason::FundingFee,
        2 => AccountReason::Other,
        3 => AccountReason::Charge,
        4 => AccountReason::InsuranceClear,
        _ => return None,
    })
}

fn terms(cursor: &mut Cursor<'_>) -> Read<OrderTerms> {
    let instrument = cursor.instrument()?;
    let side = cursor.code("side", Side::from_code)?;
    let position_side = cursor.code("position side", PositionSide::from_code)?;
    let order_type = cursor.code("order type", OrderType::from_code)?;
    let time_in_force = cursor.code_or_none("time in force", TimeInForce::from_code)?;
    let working_type = cursor.code_or_none("working type", WorkingType::from_code)?;
    let flags = cursor.code("flags of the terms", |flags| (flags < 8).then_some(flags))?;
    let mut present = Presence::read(cursor)?;
    Ok(OrderTerms {
        instrument,
        side,
        position_side,
        order_type,
        time_in_force,
        working_type,
        reduce_only: flags & 1 != 0,
        close_position: flags & 2 != 0,
        price_protect: flags & 4 != 0,
        qty: present
            .next(cursor, "quantity", |c| c.i64("quantity"))?
            .map(Qty),
        price: present.price(cursor, "price")?,
        stop_price: present.price(cursor, "stop price")?,
        activation_price: present.price(cursor, "activation price")?,
        callback_ppm: present.next(cursor, "callback rate", |c| c.narrow("callback rate"))?,
        quote_qty: present.next(cursor, "quote quantity", |c| c.amount("quote quantity"))?,
    })
}

/// Shows which optional fields of the terms are present: one byte before each field (format 1), or
/// one byte for all of them.
struct Presence(Option<u8>);

impl Presence {
    fn read(cursor: &mut Cursor<'_>) -> Read<Self> {
        Ok(Self(match cursor.form() {
            Form::Fixed => None,
            Form::Short => Some(cursor.code("presence", |bits| (bits < 64).then_some(bits))?),
        }))
    }

    fn next<'a, T>(
        &mut self,
        cursor: &mut Cursor<'a>,
        field: &'static str,
        value: impl FnOnce(&mut Cursor<'a>) -> Read<T>,
    ) -> Read<Option<T>> {
        let Some(bits) = &mut self.0 else {
            return cursor.option(field, value);
        };
        let is_there = *bits & 1 != 0;
        *bits >>= 1;
        is_there.then(|| value(cursor)).transpose()
    }

    fn price(&mut self, cursor: &mut Cursor<'_>, field: &'static str) -> Read<Option<Price>> {
        let price = self.next(cursor, field, |cursor| cursor.i64(field))?;
        Ok(price.map(Price))
    }
}

fn new_order(cursor: &mut Cursor<'_>) -> Read<NewOrder> {
    Ok(NewOrder {
        client_order_id: cursor.client_order_id()?,
        terms: terms(cursor)?,
    })
}

/// The error for an unknown tag.
fn bad_tag(field: &'static str, cursor: &Cursor<'_>, tag: u8) -> DecodeError {
    DecodeError::Code {
        field,
        offset: cursor.offset() - 1,
        code: tag.into(),
    }
}

fn intent(cursor: &mut Cursor<'_>) -> Read<Intent> {
    Ok(match cursor.u8("intent")? {
        0 => Intent::Submit {
            order: OrderSeq(cursor.u64("order")?),
            terms: terms(cursor)?,
        },
        1 => Intent::Rejected {
            terms: terms(cursor)?,
            rejection: rejection(cursor)?,
        },
        2 => Intent::Cancel {
            order: OrderSeq(cursor.u64("order")?),
        },
        3 => Intent::CancelAll {
            instrument: cursor
                .option("instrument", |c| c.narrow("instrument"))?
                .map(InstrumentId),
        },
        4 => Intent::SetTimer {
            time: cursor.time("time of the timer")?,
            token: cursor.i64("token")?,
        },
        5 => Intent::CancelTimer {
            token: cursor.i64("token")?,
        },
        tag => return Err(bad_tag("intent", cursor, tag)),
    })
}

fn rejection(cursor: &mut Cursor<'_>) -> Read<Rejection> {
    let offset = cursor.offset();
    let number = cursor.u16("rule")?;
    let Some(rule) = Rule::from_number(number) else {
        return Err(DecodeError::Code {
            field: "rule",
            offset,
            code: number.into(),
        });
    };
    Ok(Rejection {
        rule,
        value: cursor.decimal("value")?,
        limit: cursor.decimal("limit")?,
    })
}

fn request(cursor: &mut Cursor<'_>) -> Read<Request> {
    Ok(match cursor.u8("request")? {
        0 => Request::Place(new_order(cursor)?),
        1 => Request::PlaceBatch(cursor.list("orders", new_order)?),
        2 => Request::Cancel {
            instrument: cursor.instrument()?,
            client_order_id: cursor.client_order_id()?,
        },
        3 => Request::CancelBatch {
            instrument: cursor.instrument()?,
            client_order_ids: cursor.list("client order ids", Cursor::client_order_id)?,
        },
        4 => Request::CancelAll {
            instrument: cursor.instrument()?,
        },
        5 => Request::Countdown {
            instrument: cursor.instrument()?,
            countdown_ms: cursor.u64("countdown")?,
        },
        6 => Request::Query {
            instrument: cursor.instrument()?,
            client_order_id: cursor.client_order_id()?,
        },
        7 => Request::SetPositionMode {
            hedge: cursor.bool("hedge")?,
        },
        8 => Request::SetLeverage {
            instrument: cursor.instrument()?,
            leverage: cursor.u32("leverage")?,
        },
        9 => Request::Read(cursor.rare("subject")?),
        tag => return Err(bad_tag("request", cursor, tag)),
    })
}

fn outcome<T>(
    cursor: &mut Cursor<'_>,
    done: impl FnOnce(&mut Cursor<'_>) -> Read<T>,
) -> Read<Outcome<T>> {
    Ok(match cursor.u8("outcome")? {
        0 => Outcome::Done(done(cursor)?),
        1 => Outcome::Refused(Refusal {
            code: cursor.i32("refusal")?,
            msg: cursor.text("message")?.to_owned(),
        }),
        2 => Outcome::Unknown,
        tag => return Err(bad_tag("outcome", cursor, tag)),
    })
}

fn report(cursor: &mut Cursor<'_>) -> Read<OrderReport> {
    Ok(OrderReport {
        client_order_id: cursor.client_order_id()?,
        order_id: VenueOrderId(cursor.i64("order id")?),
        instrument: cursor.instrument()?,
        status: cursor.code("status", OrderStatus::from_code)?,
        orig_qty: Qty(cursor.i64("quantity")?),
        executed_qty: Qty(cursor.i64("executed quantity")?),
        cum_quote: cursor.amount("cumulated quote")?,
        update_time: cursor.time("update time")?,
    })
}

fn reply(cursor: &mut Cursor<'_>) -> Read<Reply> {
    let nothing = |_: &mut Cursor<'_>| Ok(());
    Ok(match cursor.u8("reply")? {
        0 => Reply::Placed {
            client_order_id: cursor.client_order_id()?,
            outcome: outcome(cursor, report)?,
        },
        1 => Reply::Canceled {
            client_order_id: cursor.client_order_id()?,
            outcome: outcome(cursor, report)?,
        },
        2 => Reply::Queried {
            client_order_id: cursor.client_order_id()?,
            outcome: outcome(cursor, report)?,
        },
        3 => Reply::CanceledAll {
            instrument: cursor.instrument()?,
            outcome: outcome(cursor, nothing)?,
        },
        4 => Reply::Countdown {
            instrument: cursor.instrument()?,
            outcome: outcome(cursor, |cursor| cursor.u64("countdown"))?,
        },
        5 => Reply::PositionMode {
            outcome: outcome(cursor, nothing)?,
        },
        6 => Reply::Leverage {
            instrument: cursor.instrument()?,
            outcome: outcome(cursor, |cursor| cursor.u32("leverage"))?,
        },
        7 => Reply::Read {
            subject: cursor.rare("subject")?,
            outcome: outcome(cursor, |cursor| cursor.rare("truth"))?,
        },
        8 => Reply::Margins(cursor.rare("margins")?),
        9 => Reply::Stated(cursor.rare("stated positions")?),
        tag => return Err(bad_tag("reply", cursor, tag)),
    })
}

fn user_event(cursor: &mut Cursor<'_>) -> Read<UserEvent> {
    Ok(match cursor.u8("user event")? {
        0 => UserEvent::Order(order_update(cursor)?),
        1 => UserEvent::Account(account_update(cursor)?),
        2 => UserEvent::MarginCall,
        3 => UserEvent::Leverage {
            instrument: cursor.instrument()?,
            leverage: cursor.u32("leverage")?,
        },
        4 => UserEvent::PositionMode {
            hedge: cursor.bool("hedge")?,
        },
        5 => UserEvent::AssetMode {
            multi_assets: cursor.bool("multi assets")?,
        },
        6 => UserEvent::MarginType {
            instrument: cursor.instrument()?,
            isolated: cursor.bool("isolated")?,
        },
        7 => UserEvent::Stated(cursor.rare("stated positions")?),
        tag => return Err(bad_tag("user event", cursor, tag)),
    })
}

fn order_update(cursor: &mut Cursor<'_>) -> Read<OrderUpdate> {
    let client_order_id = cursor.client_order_id()?;
    let order_id = VenueOrderId(cursor.i64("order id")?);
    let instrument = cursor.instrument()?;
    let side = cursor.code("side", Side::from_code)?;
    let position_side = cursor.code("position side", PositionSide::from_code)?;
    let order_type = cursor.code("order type", OrderType::from_code)?;
    let time_in_force = cursor.code("time in force", TimeInForce::from_code)?;
    let reduce_only = cursor.bool("reduce only")?;
    let execution = cursor.code("execution type", ExecutionType::from_code)?;
    let status = cursor.code("status", OrderStatus::from_code)?;
    let has_fill = cursor.bool("presence of a fill")?;
    Ok(OrderUpdate {
        client_order_id,
        order_id,
        instrument,
        side,
        position_side,
        order_type,
        time_in_force,
        reduce_only,
        execution,
        status,
        orig_qty: Qty(cursor.i64("quantity")?),
        price: Price(cursor.i64("price")?),
        stop_price: Price(cursor.i64("stop price")?),
        executed_qty: Qty(cursor.i64("executed quantity")?),
        transaction_time: cursor.time("transaction time")?,
        event_time: cursor.time("event time")?,
        fill: has_fill.then(|| fill(cursor)).transpose()?,
    })
}

fn fill(cursor: &mut Cursor<'_>) -> Read<Fill> {
    let trade_id = TradeId(cursor.i64("trade id")?);
    let price = Price(cursor.i64("price")?);
    let qty = Qty(cursor.i64("quantity")?);
    let quote_qty = cursor.amount("quote quantity")?;
    let fee = cursor.amount("fee")?;
    let fee_asset = AssetId(cursor.u16("fee asset")?);
    let maker = cursor.bool("maker")?;
    let realized_pnl = cursor.option("realized profit", |c| c.amount("realized profit"))?;
    Ok(Fill {
        trade_id,
        price,
        qty,
        quote_qty,
        fee,
        fee_asset,
        maker,
        realized_pnl,
    })
}

fn account_update(cursor: &mut Cursor<'_>) -> Read<AccountUpdate> {
    let surface = cursor.code("surface", Surface::from_code)?;
    let (reason, has_transaction_time) = cursor.code("reason", |code| {
        let reason = account_reason(code & !HAS_TRANSACTION_TIME)?;
        Some((reason, code & HAS_TRANSACTION_TIME != 0))
    })?;
    let event_time: Time = cursor.time("event time")?;
    let transaction_time = if has_transaction_time {
        cursor.time("transaction time")?
    } else {
        event_time
    };
    let balances = cursor.list("balances", |cursor| {
        Ok(BalanceUpdate {
            asset: AssetId(cursor.u16("asset")?),
            total: cursor.amount("total")?,
            locked: cursor.amount("locked")?,
            change: cursor.amount("change")?,
        })
    })?;
    let positions = cursor.list("positions", |cursor| {
        Ok(PositionUpdate {
            instrument: cursor.instrument()?,
            position_side: cursor.code("position side", PositionSide::from_code)?,
            qty: Qty(cursor.i64("quantity")?),
            cost: cursor.amount("cost")?,
        })
    })?;
    Ok(AccountUpdate {
        surface,
        reason,
        balances,
        positions,
        transaction_time,
        event_time,
    })
}
