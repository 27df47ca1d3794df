//! Margin of the futures account: the margin that an order needs, and when a position is in danger.
//!
//! Cross margin is computed per margin asset. Equity is the wallet without the isolated wallets
//! (see [`crate::isolated`]), plus the unrealized profit of crossed positions at the mark price.
//! - Initial margin of a position side with position P, open buys B and open sells S (notionals):
//!   `max(|P + B|, |P - S|) / leverage`. An order is refused if it raises the sum above equity, or
//!   the notional above the bracket of the leverage (-2027).
//! - Maintenance margin: by the brackets of the instrument (see [`crate::bracket`]), with a single
//!   bracket `maintenance_rate * |P|`. `MARGIN_CALL` is sent once when equity falls below 5/4 of
//!   it, and again only after equity has recovered.
//! - If equity is below the maintenance margin, the account is liquidated (see
//!   [`crate::liquidation`]).
//!
//! Mark prices change with every quote. To avoid a check each time, each market has a price range
//! in which the account is safe, as long as the other markets stay in their ranges too: the slack
//! is divided evenly between them.

use windvane_model::decimal::{div_half_even, pow10};
use windvane_model::{Amount, AssetId, InstrumentId, Side};

use crate::account::Position;
use crate::code::Code;
use crate::config::Rate;
use crate::market::{Market, SAFE};
use crate::order::Order;
use crate::venue::Venue;

/// Sums over the positions of one margin asset.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) equity: Amount,
    pub(crate) maintenance: Amount,
    markets: i128,
}

impl Market {
    /// Initial margin of all position sides.
    fn initial_margin(&self) -> Amount {
        self.initial_margin_with(0, Side::Buy, Amount::ZERO)
    }

    /// The part of it that the cross balance must carry. An isolated position carries its own
    /// margin.
    fn carried_margin(&self) -> Amount {
        let margin = self.initial_margin();
        if !self.isolated {
            return margin;
        }
        let own = self.positions.iter().map(|held| self.position_margin(held));
        margin - own.sum()
    }

    /// Initial margin of a position without its open orders.
    pub(crate) fn position_margin(&self, position: &Position) -> Amount {
        let notional = position.notional(self.mark_price(), self.instrument.qty_scale);
        self.at_leverage(notional.abs())
    }

    /// Initial margin of one position side with its open orders.
    pub(crate) fn side_margin(&self, slot: usize) -> Amount {
        self.at_leverage(self.exposure(slot, self.open_notional[slot].0))
    }

    #[inline]
    pub(crate) fn at_leverage(&self, notional: Amount) -> Amount {
        if notional == Amount::ZERO {
            return notional;
        }
        Amount(div_half_even(notional.0, i128::from(self.leverage)))
    }

    /// `max(|P + B|, |P - S|)`.
    #[inline]
    fn exposure(&self, slot: usize, open: [Amount; 2]) -> Amount {
        let position = &self.positions[slot];
        if position.qty == 0 && open == [Amount::ZERO; 2] {
            return Amount::ZERO;
        }
        let held = position.notional(self.mark_price(), self.instrument.qty_scale);
        (held + open[0]).abs().max((held - open[1]).abs())
    }

    /// Initial margin with `added` open notional on one side of a position slot.
    fn initial_margin_with(&self, slot: usize, side: Side, added: Amount) -> Amount {
        let mut total = Amount::ZERO;
        for (n, open) in self.open_notional.iter().enumerate() {
            let mut open = open.0;
            if n == slot {
                open[side as usize] += added;
            }
            total += self.at_leverage(self.exposure(n, open));
        }
        total
    }

    /// Whether the bracket of the leverage allows `added` more open notional.
    fn bracket_allows(&self, slot: usize, side: Side, added: Amount) -> bool {
        let max = self.brackets.notional_max(self.leverage);
        let mut open = self.open_notional[slot].0;
        open[side as usize] += added;
        max == Amount(i128::MAX) || self.exposure(slot, open) <= max
    }

    /// Whether position and open orders fit the bracket of a leverage.
    pub(crate) fn within_bracket(&self, leverage: u32) -> bool {
        let max = self.brackets.notional_max(leverage);
        let mut sides = self.open_notional.iter().enumerate();
        sides.all(|(slot, open)| self.exposure(slot, open.0) <= max)
    }

    pub(crate) fn has_position(&self) -> bool {
        self.positions.iter().any(|position| position.qty != 0)
    }

    pub(crate) fn margins(&self, asset: AssetId) -> bool {
        self.is_futures() && self.instrument.quote == asset
    }

    /// The range of mark prices that a share of the slack covers.
    fn safe_range(&self, slack: Amount, sharers: i128) -> (i64, i64) {
        let qty = |position: &Position| i128::from(position.qty.abs());
        let held: i128 = self.positions.iter().map(qty).sum();
        if held == 0 {
            return SAFE;
        }
        // Per unit of price, equity moves by q. The margin that equity is compared with moves by at
        // most 5/4 of the maintenance rate, for which twice the rate is used here.
        let scale = i128::from(pow10(self.instrument.qty_scale));
        let per_unit = held * i128::from(Rate::ONE + 2 * self.brackets.steepest().0);
        let room = (slack.0 / sharers).saturating_mul(scale * i128::from(Rate::ONE)) / per_unit;
        let room = i64::try_from(room).unwrap_or(i64::MAX);
        let mark = self.mark_price();
        (mark.saturating_sub(room), mark.saturating_add(room))
    }
}

impl Venue {
    /// Checks that equity carries the initial margins including this order, and that the bracket
    /// allows it. An order that does not raise the margins always passes.
    pub(crate) fn check_margin_of(&self, order: &Order) -> Result<(), Code> {
        let terms = &order.terms;
        let market = self.at(terms.instrument);
        let notional = match order.limit() {
            Some(price) => market.instrument.notional(price, order.remaining()),
            None => market.cost(terms.side, order.remaining()),
        };
        let slot = terms.position_side as usize;
        let raise =
            market.initial_margin_with(slot, terms.side, notional) - market.initial_margin();
        let asset = market.instrument.quote;
        if raise.0 <= 0 {
            return Ok(());
        }
        if self.initial_margins(asset) + raise > self.standing(asset).equity {
            return Err(Code::MarginNotSufficient);
        }
        if market.bracket_allows(slot, terms.side, notional) {
            Ok(())
        } else {
            Err(Code::PositionLimit)
        }
    }

    /// Whether equity carries the present initial margins.
    pub(crate) fn margin_suffices(&self, asset: AssetId) -> bool {
        self.initial_margins(asset) <= self.standing(asset).equity
    }

    /// The initial margin that the cross balance of a margin asset must carry.
    pub(crate) fn initial_margins(&self, asset: AssetId) -> Amount {
        let markets = self.markets.iter().filter(|market| market.margins(asset));
        markets.map(Market::carried_margin).sum()
    }

    /// Equity and maintenance margin of the crossed positions.
    pub(crate) fn standing(&self, asset: AssetId) -> Standing {
        let mut standing = Standing {
            equity: self.account.wallet(asset),
            ..Standing::default()
        };
        for market in &self.markets {
            if !market.margins(asset) || !market.has_position() {
                continue;
            }
            if market.isolated {
                standing.equity -= market.isolated_wallet.iter().copied().sum();
                continue;
            }
            standing.markets += 1;
            let (mark, scale) = (market.mark_price(), market.instrument.qty_scale);
            for position in &market.positions {
                standing.equity += position.unrealized(mark, scale);
                let notional = position.notional(mark, scale).abs();
                standing.maintenance += market.brackets.maintenance(notional);
            }
        }
        standing
    }

    /// Compares the equity of a margin asset with its maintenance margin, then computes new safe
    /// ranges.
    pub(crate) fn check_margin(&mut self) {
        while let Some(asset) = self.margin.dirty.take() {
            let standing = self.standing(asset);
            if standing.markets > 0 && standing.equity < standing.maintenance {
                self.liquidate(asset);
                continue;
            }
            if self.check_isolated(asset) {
                self.margin.dirty = Some(asset);
                continue;
            }
            let called = self.margin.called.contains(&asset);
            let call_level = Amount(standing.maintenance.0 * 5 / 4);
            let in_danger = standing.markets > 0 && standing.equity < call_level;
            if in_danger && !called {
                self.margin.called.push(asset);
                self.emit_margin_call(asset, None);
            } else if called && !in_danger {
                self.margin.called.retain(|other| *other != asset);
            }
            let level = if in_danger {
                standing.maintenance
            } else {
                call_level
            };
            self.watch_margin(asset, standing.equity - level, standing.markets);
        }
    }

    fn watch_margin(&mut self, asset: AssetId, slack: Amount, sharers: i128) {
        for market in &mut self.markets {
            if !market.margins(asset) {
                continue;
            }
            market.safe = if market.isolated {
                market.safe_range(market.isolated_slack(), 1)
            } else {
                market.safe_range(slack, sharers)
            };
            market.watch_mid();
        }
    }

    /// Requests a margin check if the mark price of an instrument left the safe range.
    #[inline]
    pub(crate) fn watch_mark(&mut self, instrument: InstrumentId) {
        let market = self.at(instrument);
        if market.safe != SAFE {
            let mark = market.mark_price();
            if mark <= market.safe.0 || mark >= market.safe.1 {
                self.margin.dirty = Some(market.instrument.quote);
            }
        }
    }
}
