//! Decodes the content of an account: open orders, balances, positions, trades.
//!
//! A list of positions may have every symbol or only open positions. This module does not report
//! symbols that are absent from the list; the engine decides about them. A request for open orders
//! without `symbol` returns those of every symbol (docs/interface/orders.md#open-orders).

use rust_decimal::Decimal;
use windvane_model::protocol::{BalanceUpdate, Fill, MarginTerms, PositionUpdate};
use windvane_model::state_report::{
    AccountSnapshot, AccountTrade, Income, IncomeKind, OpenOrder, StateReport, StatedPosition,
    Subject, TradedOrder,
};
use windvane_model::{
    Amount, AssetId, ClientOrderId, Instrument, InstrumentId, PositionSide, Price, Qty, Surface,
    Time, TradeId, VenueOrderId,
};

use super::encode::{INCOME_PAGE, TRADES_PAGE};
use super::figures::{amount, exact, nearest, product, quantity, time};
use super::order;
use super::record::record;
use super::{Adapter, DecodeError, FuturesAccount, Note, known};
use crate::wire::enums::{AccountPrivacy, IncomeType};
use crate::wire::info::Envelope;
use crate::wire::market::PriceTicker;
use crate::wire::scalar::OneOrMany;
use crate::wire::{Exact, Flag, Whole, Word, futures, info, spot as spot_wire};

/// Every open order of a surface.
pub(super) fn open_orders(
    adapter: &Adapter,
    surface: Surface,
    body: &str,
    notes: &mut Vec<Note>,
) -> Result<Vec<OpenOrder>, DecodeError> {
    let orders: Vec<futures::Order> = match surface {
        Surface::Futures => record(body)?,
        Surface::Spot => {
            let orders: Vec<spot_wire::Order> = record(body)?;
            orders.into_iter().map(order::as_futures).collect()
        }
    };
    let mut open = Vec::with_capacity(orders.len());
    for listed in &orders {
        let order = ClientOrderId::from_venue(&listed.client_order_id);
        let symbol = &listed.symbol;
        if adapter.names.instrument(surface, symbol).is_none() && order.parse_own().is_some() {
            notes.push(Note::Elsewhere {
                surface,
                symbol: symbol.clone(),
                order,
            });
            continue;
        }
        let symbol = adapter.configured(surface, symbol, "open order", notes);
        if let Some((id, rules)) = symbol {
            match order::open_order(id, rules, listed) {
                Ok(order) => open.push(order),
                // An unreadable order from outside must not hide our own orders.
                Err(error) if order.parse_own().is_none() => notes.push(Note::Foreign {
                    surface,
                    symbol: listed.symbol.clone(),
                    order,
                    error,
                }),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(open)
}

/// The latest orders with which the venue itself closed positions of a symbol.
pub(super) fn forced_orders(
    adapter: &Adapter,
    id: InstrumentId,
    body: &str,
) -> Result<Vec<OpenOrder>, DecodeError> {
    let rules = adapter.rules_of(id)?;
    let orders: Vec<futures::Order> = record(body)?;
    let orders = orders.iter().map(|listed| {
        adapter.is_symbol(id, &listed.symbol)?;
        order::open_order(id, rules, listed)
    });
    orders.collect()
}

/// One order from outside this program.
pub(super) fn outside_order(
    adapter: &Adapter,
    id: InstrumentId,
    body: &str,
) -> Result<OpenOrder, DecodeError> {
    let rules = adapter.rules_of(id)?;
    let listed: futures::Order = record(body)?;
    adapter.is_symbol(id, &listed.symbol)?;
    order::open_order(id, rules, &listed)
}

/// The client order id of one order.
pub(super) fn traded_order(
    adapter: &Adapter,
    id: InstrumentId,
    body: &str,
) -> Result<TradedOrder, DecodeError> {
    let rules = adapter.rules_of(id)?;
    let listed: futures::Order = match rules.surface {
        Surface::Futures => record(body)?,
        Surface::Spot => order::as_futures(record::<spot_wire::Order>(body)?),
    };
    placed_order(adapter, id, &listed)
}

/// The newest orders of an instrument, oldest first.
pub(super) fn newest_orders(
    adapter: &Adapter,
    id: InstrumentId,
    body: &str,
) -> Result<Vec<TradedOrder>, DecodeError> {
    let rules = adapter.rules_of(id)?;
    let listed: Vec<futures::Order> = match rules.surface {
        Surface::Futures => record(body)?,
        Surface::Spot => {
            let orders = record::<Vec<spot_wire::Order>>(body)?;
            orders.into_iter().map(order::as_futures).collect()
        }
    };
    let orders = listed.iter().map(|order| placed_order(adapter, id, order));
    orders.collect()
}

fn placed_order(
    adapter: &Adapter,
    id: InstrumentId,
    listed: &futures::Order,
) -> Result<TradedOrder, DecodeError> {
    adapter.is_symbol(id, &listed.symbol)?;
    Ok(TradedOrder {
        client_order_id: ClientOrderId::from_venue(&listed.client_order_id),
        placed: time("time", listed.time.unwrap_or_default().0)?,
    })
}

/// One page of the income history, oldest first. Entries in assets that are not configured are
/// skipped: the engine keeps no balance for them.
pub(super) fn income(adapter: &Adapter, body: &str) -> Result<StateReport, DecodeError> {
    let rows: Vec<futures::Income> = record(body)?;
    let more = rows.len() >= INCOME_PAGE;
    let mut entries = Vec::with_capacity(rows.len());
    for row in &rows {
        let Some(asset) = adapter.names.asset(&row.asset) else {
            continue;
        };
        let symbol = row.symbol.as_deref();
        entries.push(Income {
            kind: income_kind(&row.income_type),
            instrument: symbol.and_then(|name| adapter.names.instrument(Surface::Futures, name)),
            asset,
            amount: amount("income", row.income.0)?,
            time: time("time", row.time.0)?,
        });
    }
    entries.sort_by_key(|entry| entry.time);
    Ok(StateReport::Income { entries, more })
}

/// The latest price of one symbol.
pub(super) fn asset_price(body: &str) -> Result<StateReport, DecodeError> {
    let ticker = match record::<OneOrMany<PriceTicker>>(body)? {
        OneOrMany::One(ticker) => ticker,
        OneOrMany::Many(tickers) => tickers.into_iter().next().ok_or_else(|| {
            DecodeError::Record(
                "the list of prices is empty, but one price was requested".to_owned(),
            )
        })?,
    };
    Ok(StateReport::AssetPrice(amount("price", ticker.price.0)?))
}

/// The documents' list of income types ends with dots, so it is open. An unlisted type counts as a
/// transfer if its name contains a word for one.
fn income_kind(word: &Word<IncomeType>) -> IncomeKind {
    match word {
        Word::Known(IncomeType::Transfer | IncomeType::WelcomeBonus) => IncomeKind::Transfer,
        Word::Known(IncomeType::FundingFee) => IncomeKind::Funding,
        Word::Known(_) => IncomeKind::Other,
        Word::Other(text) => {
            let moves = ["TRANSFER", "DEPOSIT", "WITHDRAW"];
            if moves.iter().any(|part| text.contains(part)) {
                IncomeKind::Transfer
            } else {
                IncomeKind::Other
            }
        }
    }
}

/// Spot account information; `total` is free plus locked.
pub(super) fn spot(
    adapter: &Adapter,
    body: &str,
    notes: &mut Vec<Note>,
) -> Result<AccountSnapshot, DecodeError> {
    let account: spot_wire::Account = record(body)?;
    let mut snapshot = AccountSnapshot {
        can_trade: account.can_trade.map(|flag| flag.0),
        updated: newest([account.update_time])?,
        ..AccountSnapshot::default()
    };
    for listed in &account.balances {
        let raw = listed.free.0.max(listed.locked.0);
        if let Some(asset) = adapter.asset(&listed.asset, raw, notes) {
            let balance = spot_balance(asset, listed.free, listed.locked)?;
            snapshot.balances.push(balance);
        }
    }
    Ok(snapshot)
}

/// A spot balance from the free and the locked part.
pub(super) fn spot_balance(
    asset: AssetId,
    free: Exact,
    locked: Exact,
) -> Result<BalanceUpdate, DecodeError> {
    let locked = amount("locked", locked.0)?;
    Ok(BalanceUpdate {
        asset,
        total: amount("free", free.0)? + locked,
        locked,
        change: Amount::ZERO,
    })
}

/// The futures account, without its modes.
pub(super) fn futures(
    adapter: &Adapter,
    body: &str,
    notes: &mut Vec<Note>,
) -> Result<AccountSnapshot, DecodeError> {
    match adapter.futures_account {
        FuturesAccount::Routes => account_information(adapter, body, notes),
        FuturesAccount::Info { .. } => info_balance(adapter, body, notes),
    }
}

fn account_information(
    adapter: &Adapter,
    body: &str,
    notes: &mut Vec<Note>,
) -> Result<AccountSnapshot, DecodeError> {
    let account: futures::Account = record(body)?;
    let assets = account.assets.iter().map(|asset| asset.update_time);
    let positions = account.positions.iter().map(|listed| listed.update_time);
    let times = assets.chain(positions).chain([account.update_time]);
    let mut snapshot = AccountSnapshot {
        can_trade: account.can_trade.map(|flag| flag.0),
        updated: newest(times)?,
        ..AccountSnapshot::default()
    };
    for listed in &account.assets {
        let wallet = listed
            .wallet_balance
            .ok_or(DecodeError::Missing("walletBalance"))?;
        if let Some(asset) = adapter.asset(&listed.asset, wallet.0, notes) {
            let available = listed.available_balance;
            snapshot
                .balances
                .push(wallet_balance(asset, wallet, available)?);
        }
    }
    for listed in &account.positions {
        let raw = RawPosition {
            symbol: &listed.symbol,
            side: &listed.position_side,
            qty: listed.position_amt.0,
            entry_price: listed.entry_price.map(|price| price.0),
        };
        snapshot.positions.extend(adapter.position(&raw)?);
    }
    Ok(snapshot)
}

/// Leverage and margin type of configured symbols, if the response to a read of the futures account
/// has them.
pub(super) fn margins(adapter: &Adapter, subject: Subject, body: &str) -> Vec<MarginTerms> {
    let surface = Surface::Futures;
    if subject != (Subject::Account { surface }) {
        return Vec::new();
    }
    let terms = |symbol: &str, leverage: Option<Whole>, isolated: Option<Flag>| {
        let instrument = adapter.names.instrument(Surface::Futures, symbol)?;
        let leverage = leverage.and_then(|whole| u32::try_from(whole.0).ok());
        let isolated = isolated.map(|flag| flag.0);
        let is_known = leverage.is_some() || isolated.is_some();
        is_known.then_some(MarginTerms {
            instrument,
            leverage: leverage.filter(|leverage| *leverage > 0),
            isolated,
        })
    };
    let mut all: Vec<MarginTerms> = match adapter.futures_account {
        FuturesAccount::Routes => {
            let account = record::<futures::Account>(body);
            let listed = account.map(|account| account.positions).unwrap_or_default();
            let listed = listed.iter();
            listed
                .filter_map(|one| terms(&one.symbol, one.leverage, one.isolated))
                .collect()
        }
        FuturesAccount::Info { .. } => {
            let answer = record::<Envelope<info::Balance>>(body).ok();
            let balance = answer.and_then(|answer| answer.into_result().ok());
            let groups = balance.map(|balance| balance.positions).unwrap_or_default();
            let listed = groups.iter().flat_map(|group| &group.positions);
            listed
                .filter_map(|one| terms(&one.symbol, Some(one.leverage), Some(one.isolated)))
                .collect()
        }
    };
    // In hedge mode a symbol is listed once for each side.
    all.dedup_by_key(|terms| terms.instrument);
    all
}

/// Every position that is not flat, with its unrealized profit, if the response to a read of the
/// futures account has them. A position whose numbers cannot be parsed is left out: this list only
/// completes the account, and no order depends on it.
pub(super) fn stated(
    adapter: &Adapter,
    subject: Subject,
    body: &str,
) -> Option<Vec<StatedPosition>> {
    let surface = Surface::Futures;
    if subject != (Subject::Account { surface }) {
        return None;
    }
    let all: Vec<_> = match adapter.futures_account {
        FuturesAccount::Routes => {
            let account = record::<futures::Account>(body).ok()?;
            let listed = account.positions.into_iter();
            listed
                .filter_map(|one| {
                    let figures = [
                        Some(one.position_amt),
                        one.entry_price,
                        one.unrealized_profit,
                    ];
                    adapter.stated(&one.symbol, &one.position_side, figures)
                })
                .collect()
        }
        FuturesAccount::Info { .. } => {
            let answer = record::<Envelope<info::Balance>>(body).ok()?;
            let balance = answer.into_result().ok()?;
            let listed = balance.positions.iter().flat_map(|group| &group.positions);
            listed
                .filter_map(|one| {
                    let figures = [one.position_amount, one.entry_price, one.unrealized_profit];
                    adapter.stated(&one.symbol, &one.position_side, figures.map(Some))
                })
                .collect()
        }
    };
    let is_held = |position: &StatedPosition| position.qty != Amount::ZERO;
    Some(all.into_iter().filter(is_held).collect())
}

/// The newest of the known times; 0 counts as absent.
fn newest(times: impl IntoIterator<Item = Option<Whole>>) -> Result<Option<Time>, DecodeError> {
    let latest_ms = times.into_iter().flatten().map(|ms| ms.0).max();
    let latest_ms = latest_ms.filter(|ms| *ms > 0);
    latest_ms.map(|ms| time("updateTime", ms)).transpose()
}

fn info_balance(
    adapter: &Adapter,
    body: &str,
    notes: &mut Vec<Note>,
) -> Result<AccountSnapshot, DecodeError> {
    let answer: Envelope<info::Balance> = record(body)?;
    let balance = answer.into_result();
    let balance = balance.map_err(|error| DecodeError::Record(error.to_string()))?;
    if balance.account_privacy != Word::Known(AccountPrivacy::Disabled) {
        return Err(DecodeError::Private(balance.account_privacy.to_string()));
    }
    if let FuturesAccount::Info { address } = &adapter.futures_account
        && !address.eq_ignore_ascii_case(&balance.address)
    {
        return Err(DecodeError::Other {
            found: balance.address,
            requested: address.clone(),
        });
    }
    let mut snapshot = AccountSnapshot {
        lags: true,
        ..AccountSnapshot::default()
    };
    for listed in &balance.perp_assets {
        if let Some(asset) = adapter.asset(&listed.asset, listed.wallet_balance.0, notes) {
            snapshot
                .balances
                .push(wallet_balance(asset, listed.wallet_balance, None)?);
        }
    }
    for listed in balance.positions.iter().flat_map(|group| &group.positions) {
        let raw = RawPosition {
            symbol: &listed.symbol,
            side: &listed.position_side,
            qty: listed.position_amount.0,
            entry_price: Some(listed.entry_price.0),
        };
        snapshot.positions.extend(adapter.position(&raw)?);
    }
    Ok(snapshot)
}

/// A futures balance. If the available part is not stated, the whole balance counts as available.
fn wallet_balance(
    asset: AssetId,
    wallet: Exact,
    available: Option<Exact>,
) -> Result<BalanceUpdate, DecodeError> {
    let total = amount("walletBalance", wallet.0)?;
    let available = available.map_or(Ok(total), |text| amount("availableBalance", text.0))?;
    Ok(BalanceUpdate {
        asset,
        total,
        locked: total - available,
        change: Amount::ZERO,
    })
}

/// A position in the form that all records share.
pub(super) struct RawPosition<'a> {
    pub(super) symbol: &'a str,
    pub(super) side: &'a Word<PositionSide>,
    /// Negative when short.
    pub(super) qty: Decimal,
    pub(super) entry_price: Option<Decimal>,
}

impl Adapter {
    /// A position with the values that the venue reports: quantity, entry price and unrealized
    /// profit.
    pub(super) fn stated(
        &self,
        symbol: &str,
        side: &Word<PositionSide>,
        [qty, entry_price, unrealized]: [Option<Exact>; 3],
    ) -> Option<StatedPosition> {
        let figure = |value: Option<Exact>| Amount::from_decimal(value.unwrap_or_default().0);
        Some(StatedPosition {
            symbol: symbol.to_owned(),
            instrument: self.names.instrument(Surface::Futures, symbol),
            position_side: *side.known()?,
            qty: figure(qty)?,
            entry_price: figure(entry_price)?,
            unrealized: figure(unrealized)?,
        })
    }

    /// The position of a configured symbol.
    pub(super) fn position(
        &self,
        raw: &RawPosition<'_>,
    ) -> Result<Option<PositionUpdate>, DecodeError> {
        let id = self.names.instrument(Surface::Futures, raw.symbol);
        // Positions on other symbols are reported separately (`stated`).
        let Some((instrument, rules)) = id.and_then(|id| Some((id, self.names.rules(id)?))) else {
            return Ok(None);
        };
        let cost = match raw.entry_price {
            Some(price) => product("entryPrice", price, raw.qty)?,
            None if raw.qty.is_zero() => Amount::ZERO,
            None => return Err(DecodeError::Missing("entryPrice")),
        };
        Ok(Some(PositionUpdate {
            instrument,
            position_side: known("positionSide", raw.side)?,
            qty: Qty(exact("positionAmt", raw.qty, rules.qty_scale)?),
            cost,
        }))
    }

    /// The instrument of a symbol; for an unknown symbol a note.
    pub(super) fn configured(
        &self,
        surface: Surface,
        symbol: &str,
        what: &'static str,
        notes: &mut Vec<Note>,
    ) -> Option<(InstrumentId, &Instrument)> {
        let id = self.names.instrument(surface, symbol);
        let found = id.and_then(|id| Some((id, self.names.rules(id)?)));
        if found.is_none() {
            notes.push(Note::Symbol {
                surface,
                symbol: symbol.to_owned(),
                what,
            });
        }
        found
    }

    /// The asset of a balance; for an unknown asset with a non-zero balance a note.
    pub(super) fn asset(
        &self,
        name: &str,
        balance: Decimal,
        notes: &mut Vec<Note>,
    ) -> Option<AssetId> {
        let asset = self.names.asset(name);
        if asset.is_none() && !balance.is_zero() {
            notes.push(Note::Asset {
                asset: name.to_owned(),
                what: "balance",
            });
        }
        asset
    }

    /// Fee and its asset. A fee in an asset that is not configured changes no balance of the
    /// engine: it counts as 0, and a note reports it.
    pub(super) fn fee(
        &self,
        rules: &Instrument,
        commission: Option<Exact>,
        asset: Option<&str>,
        notes: &mut Vec<Note>,
    ) -> Result<(Amount, AssetId), DecodeError> {
        let commission = commission.unwrap_or_default().0;
        let named = match asset {
            None | Some("") => Some(rules.quote),
            Some(name) => self.names.asset(name),
        };
        if let Some(asset) = named {
            return Ok((amount("commission", commission)?, asset));
        }
        if !commission.is_zero() {
            notes.push(Note::Asset {
                asset: asset.unwrap_or_default().to_owned(),
                what: "fee",
            });
        }
        Ok((Amount::ZERO, rules.quote))
    }
}

/// One page of the list of the account's trades, oldest first.
pub(super) fn trades(
    adapter: &Adapter,
    id: InstrumentId,
    body: &str,
    notes: &mut Vec<Note>,
) -> Result<StateReport, DecodeError> {
    let rules = adapter.rules_of(id)?;
    let rows: Vec<futures::UserTrade> = match rules.surface {
        Surface::Futures => record(body)?,
        Surface::Spot => {
            let rows: Vec<spot_wire::UserTrade> = record(body)?;
            rows.into_iter().map(as_futures).collect()
        }
    };
    let mut trades = Vec::with_capacity(rows.len());
    for row in &rows {
        adapter.is_symbol(id, &row.symbol)?;
        trades.push(trade(adapter, rules, row, notes)?);
    }
    trades.sort_by_key(|trade| trade.fill.trade_id);
    Ok(StateReport::Trades {
        more: trades.len() >= TRADES_PAGE,
        trades,
    })
}

fn trade(
    adapter: &Adapter,
    rules: &Instrument,
    row: &futures::UserTrade,
    notes: &mut Vec<Note>,
) -> Result<AccountTrade, DecodeError> {
    let commission = Some(row.commission);
    let (fee, fee_asset) = adapter.fee(rules, commission, Some(&row.commission_asset), notes)?;
    let quote_qty = match row.quote_qty {
        Some(quote) => amount("quoteQty", quote.0)?,
        None => product("price", row.price.0, row.qty.0)?,
    };
    let realized = row
        .realized_pnl
        .filter(|_| rules.surface == Surface::Futures);
    let fill = Fill {
        trade_id: TradeId(row.id.0),
        price: Price(nearest("price", row.price.0, rules.price_scale)?),
        qty: Qty(quantity("qty", row.qty.0, rules.qty_scale)?),
        quote_qty,
        fee,
        fee_asset,
        maker: row.maker.0,
        realized_pnl: realized
            .map(|pnl| amount("realizedPnl", pnl.0))
            .transpose()?,
    };
    let position_side = match &row.position_side {
        Some(word) => known("positionSide", word)?,
        None => PositionSide::Both,
    };
    Ok(AccountTrade {
        order_id: VenueOrderId(row.order_id.0),
        side: known("side", &row.side)?,
        position_side,
        fill,
        time: time("time", row.time.0)?,
    })
}

/// Copies a spot trade into the fields of a futures trade.
fn as_futures(row: spot_wire::UserTrade) -> futures::UserTrade {
    futures::UserTrade {
        buyer: Flag(row.buyer.0),
        commission: row.commission,
        commission_asset: row.commission_asset,
        id: row.id,
        maker: row.maker,
        order_id: row.order_id,
        price: row.price,
        qty: row.qty,
        quote_qty: row.quote_qty,
        realized_pnl: None,
        side: row.side,
        position_side: None,
        symbol: row.symbol,
        time: row.time,
    }
}
