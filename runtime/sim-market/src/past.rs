//! The time before the server's start: trades of a random walk that ends at the first price. So
//! klines, tickers, trades and fundings have a history from the first request on.

use windvane_model::Time;

use super::funding::{FUNDING_MS, Funded, INTEREST};
use super::interval::{DAY_MS, MINUTE_MS};
use super::listing::Character;
use super::symbol::Symbol;
use windvane_model::random::SplitMix64;

/// Age of the oldest dense trade. Tickers look back a day, and minute klines a little further.
const DENSE_MS: i64 = 26 * 60 * MINUTE_MS;
/// Time between two dense trades.
const DENSE_STEP_MS: i64 = 20_000;
/// Age of the oldest sparse trade, so that longer klines have some history.
const SPARSE_MS: i64 = 60 * DAY_MS;
/// Time between two sparse trades.
const SPARSE_STEP_MS: i64 = 30 * MINUTE_MS;
/// Number of past fundings.
const FUNDINGS: i64 = 270;

/// Gives a symbol its past, up to now.
pub fn fill(symbol: &mut Symbol, mut random: SplitMix64, character: &Character, now: Time) {
    let now_ms = now.millis();
    for (time_ms, price) in walk(&mut random, character, now_ms) {
        let size = (random.below_signed(30) + 1) << random.heads(7);
        let buyer_is_maker = random.below_signed(2) == 0;
        symbol.remember(time_ms, price, size * character.unit, buyer_is_maker);
    }
    symbol.open_bars(now_ms);
    if symbol.is_futures() {
        let mut funded = Funded::new(now_ms, symbol.at_mark_scale(character.price));
        for n in (1..=FUNDINGS).rev() {
            let rate = INTEREST + random.below_signed(8_000) - 4_000;
            funded.record(funded.next_ms - n * FUNDING_MS, rate);
        }
        symbol.funded = Some(funded);
    }
}

/// Times and prices, oldest first. The walk is generated backwards, so that it ends at the market's
/// first price.
fn walk(random: &mut SplitMix64, character: &Character, now_ms: i64) -> Vec<(i64, i64)> {
    let (mut time_ms, mut price) = (now_ms, character.price);
    let mut points = Vec::new();
    while time_ms > now_ms - SPARSE_MS {
        let dense = time_ms > now_ms - DENSE_MS;
        let step_ms = if dense { DENSE_STEP_MS } else { SPARSE_STEP_MS };
        time_ms -= 1 + random.below_signed(2 * step_ms);
        points.push((time_ms, price));
        // About 0.04 % per minute, so about 1.5 % per day: the step grows with the square root of
        // time.
        let parts = if dense { 4_000 } else { 450 };
        let reach = (price / parts / character.tick).max(1);
        let ticks = random.below_signed(2 * reach + 1) - reach;
        let floor = character.price / 2;
        price = (price + ticks * character.tick).clamp(floor, character.price * 2);
        price -= price % character.tick;
    }
    points.reverse();
    points
}
