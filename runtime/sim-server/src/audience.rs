//! The accounts and the public streams as the audience of the one market: every market event goes
//! to each account's venue, and what the accounts do comes back to the market.

use windvane_model::{InstrumentId, MarketEvent, Price, Qty, Side, Time, TradeId};
use windvane_sim::{Deal, StreamEvent};

use windvane_sim_market::{Board, Deed, Filled, Sink, Symbol, Update};

use crate::accounts::Account;
use crate::state::State;
use crate::stream::Hub;

/// Applies every market event up to `now` to the board, the accounts and the streams.
pub(crate) fn advance(state: &mut State, now: Time) {
    let (board, mut audience) = split(state);
    board.advance(now, &mut audience);
}

/// Applies an event that does not come from the source, as if it had happened now.
pub(crate) fn inject(state: &mut State, now: Time, id: InstrumentId, event: &MarketEvent<'_>) {
    let (board, mut audience) = split(state);
    board.inject(now, id, event, &mut audience);
}

/// Applies the latest actions of the accounts to the market.
pub(crate) fn settle(state: &mut State, now: Time) {
    let (board, mut audience) = split(state);
    board.settle(now, &mut audience);
}

fn split(state: &mut State) -> (&mut Board, Audience<'_>) {
    let audience = Audience {
        accounts: &mut state.accounts,
        hub: &mut state.hub,
    };
    (&mut state.board, audience)
}

/// The accounts' venues and the public streams.
struct Audience<'a> {
    accounts: &'a mut [Account],
    hub: &'a mut Hub,
}

impl Sink for Audience<'_> {
    fn accounts(&self) -> usize {
        self.accounts.len()
    }

    fn feed(&mut self, now: Time, account: usize, id: InstrumentId, event: &MarketEvent<'_>) {
        self.accounts[account].venue.market(now, id, event);
    }

    fn poll(&mut self, account: usize) -> Option<Deed> {
        let Account {
            venue, unpublished, ..
        } = &mut self.accounts[account];
        while let Some(event) = venue.poll_stream() {
            let deed = fill_of(&event, unpublished.len());
            unpublished.push_back(event);
            if deed.is_some() {
                return deed;
            }
        }
        let instrument = venue.poll_rested()?;
        let shown = |side| venue.shown(instrument, side).collect();
        Some(Deed::Rests {
            instrument,
            sides: [shown(Side::Buy), shown(Side::Sell)],
        })
    }

    fn number(&mut self, account: usize, place: usize, trade_id: i64) {
        let event = self.accounts[account].unpublished.get_mut(place);
        if let Some(StreamEvent::Order(event)) = event
            && let Some(fill) = &mut event.update.fill
        {
            fill.trade_id = TradeId(trade_id);
        }
    }

    fn meet(
        &mut self,
        now: Time,
        account: usize,
        id: InstrumentId,
        (side, price): (Side, i64),
        qty: i64,
        deal: Deal,
    ) -> i64 {
        let venue = &mut self.accounts[account].venue;
        let at = (side, Price(price));
        venue.meet(now, id, at, Qty(qty), deal).0
    }

    fn best(&self, account: usize, id: InstrumentId, side: Side) -> Option<(i64, i64)> {
        let (price, ahead) = self.accounts[account].venue.queue_ahead(id, side)?;
        Some((price, ahead.unwrap_or(i64::MAX)))
    }

    fn update(&mut self, now: Time, symbol: &Symbol, update: &Update) {
        self.hub.update(now, symbol, update);
    }

    fn refresh(&mut self, now: Time, symbol: &Symbol) {
        self.hub.refresh(now, symbol);
    }

    fn second(&mut self, now: Time, symbols: &[Symbol]) {
        self.hub.second(now, symbols);
    }
}

/// The fill in a user event.
fn fill_of(event: &StreamEvent, place: usize) -> Option<Deed> {
    let StreamEvent::Order(event) = event else {
        return None;
    };
    let (fill, met) = (event.update.fill?, event.met?);
    Some(Deed::Fill(Filled {
        place,
        instrument: event.update.instrument,
        side: event.update.side,
        price: fill.price.0,
        qty: fill.qty.0,
        maker: fill.maker,
        met,
    }))
}

#[cfg(test)]
mod tests;
