//! Converts changes of the market to frames of topics. A frame without subscribers is not built.

use windvane_model::{ExecutionType, Time};
use windvane_sim::StreamEvent;

use super::frames;
use super::hub::Hub;
use super::topic::{Kind, Topic};
use windvane_sim_market::book::Difference;
use windvane_sim_market::interval::Interval;
use windvane_sim_market::ticker::Ticker;
use windvane_sim_market::{Board, Symbol, Update};

/// Seconds between two frames of `markPrice` without `@1s`.
const MARK_SECONDS: i64 = 3;
/// Prefix of the client order ids of liquidations
/// (docs/interface/user-stream.md#order_trade_update).
const LIQUIDATION: &str = "autoclose-";
/// Depths of the partial books.
const PARTIAL_DEPTHS: [u8; 3] = [5, 10, 20];

impl Hub {
    /// Publishes a change of a symbol.
    pub(crate) fn update(&mut self, now: Time, symbol: &Symbol, update: &Update) {
        let of = |kind| Topic::Of(symbol.id, kind);
        match update {
            Update::Trade(trade) => {
                let payload = || Some(frames::trade(now, symbol, trade));
                self.publish(of(Kind::Trade), payload);
                let payload = || Some(frames::trade_pro(now, symbol, trade));
                self.publish(of(Kind::TradePro), payload);
            }
            Update::AggTrade(trade) => {
                let payload = || Some(frames::agg_trade(now, symbol, trade));
                self.publish(of(Kind::AggTrade), payload);
            }
            Update::Top {
                update_id,
                bid,
                ask,
            } => {
                let top = (*bid, *ask);
                let payload = || Some(frames::book_ticker(now, symbol, *update_id, top));
                self.publish(of(Kind::BookTicker), payload);
            }
            Update::Depth(difference) => self.depth(now, symbol, difference),
            Update::Closed(interval, bar) => {
                let payload = || Some(frames::kline(now, symbol, *interval, bar, true));
                self.publish(of(Kind::Kline(*interval)), payload);
            }
        }
    }

    fn depth(&mut self, now: Time, symbol: &Symbol, difference: &Difference) {
        let payload = || Some(frames::depth(now, symbol, difference));
        self.publish(Topic::Of(symbol.id, Kind::Depth(difference.speed)), payload);
        for depth in PARTIAL_DEPTHS {
            let topic = Topic::Of(symbol.id, Kind::Partial(depth, difference.speed));
            let payload = || Some(frames::partial(now, symbol, difference, depth));
            self.publish(topic, payload);
        }
    }

    /// Called after a quarter of a second in which bars changed; publishes the open bars.
    pub(crate) fn refresh(&mut self, now: Time, symbol: &Symbol) {
        for interval in Interval::ALL {
            let topic = Topic::Of(symbol.id, Kind::Kline(interval));
            self.publish(topic, || {
                let bar = symbol.klines.of(interval).bars().back()?;
                Some(frames::kline(now, symbol, interval, bar, false))
            });
        }
    }

    /// Called every second; publishes tickers and marks.
    pub(crate) fn second(&mut self, now: Time, symbols: &[Symbol]) {
        let slow = now.millis() / 1000 % MARK_SECONDS == 0;
        for symbol in symbols {
            self.tickers(now, symbol);
            let mark = || frames::mark_price(now, symbol);
            self.publish(Topic::Of(symbol.id, Kind::MarkPriceFast), mark);
            if slow {
                self.publish(Topic::Of(symbol.id, Kind::MarkPrice), mark);
            }
        }
        let all = || Some(frames::all_marks(now, symbols));
        self.publish(Topic::AllMarks { fast: true }, all);
        if slow {
            self.publish(Topic::AllMarks { fast: false }, all);
        }
    }

    fn tickers(&mut self, now: Time, symbol: &Symbol) {
        let topics = [Kind::MiniTicker, Kind::Ticker].map(|kind| Topic::Of(symbol.id, kind));
        if !topics.iter().any(|topic| self.has_subscribers(*topic)) {
            return;
        }
        let ticker = Ticker::of(symbol, now.millis());
        let mini = || Some(frames::mini_ticker(now, symbol, &ticker));
        self.publish(topics[0], mini);
        let full = || Some(frames::ticker(now, symbol, &ticker));
        self.publish(topics[1], full);
    }

    /// Publishes a fill of a liquidation. Fills of auto-deleveraging are not published, because they
    /// belong to the liquidations of others.
    pub(crate) fn liquidated(&mut self, now: Time, board: &Board, event: &StreamEvent) {
        let StreamEvent::Order(event) = event else {
            return;
        };
        let id = event.update.client_order_id;
        let Some(fill) = &event.update.fill else {
            return;
        };
        if event.update.execution != ExecutionType::Calculated
            || !id.as_str().starts_with(LIQUIDATION)
        {
            return;
        }
        let instrument = event.update.instrument;
        if let Some(symbol) = board.symbol(instrument) {
            let payload = || Some(frames::force_order(now, symbol, event, fill));
            let topic = Topic::Of(instrument, Kind::ForceOrder);
            self.publish(topic, payload);
        }
    }
}
