//! Generates plausible sessions for the demo, the tests and the benchmarks, in the same text format
//! as a real recording. Everything comes from a seed and integer arithmetic, so every machine
//! writes the same bytes.

mod market;

use std::fmt::{Display, Write as _};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use windvane_model::random::SplitMix64;
use windvane_model::{Side, Surface, Time};

use market::{Market, Print, Touch};

/// A session to generate. Module `market` describes its market: a hidden fair value, informed and
/// uninformed orders, and a book of 250 levels per side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticSession {
    /// Surface. Only futures sessions contain mark prices.
    pub surface: Surface,
    /// Symbol, upper case. With exchange information it must end in `USDT`.
    pub symbol: String,
    /// The same seed gives the same bytes.
    pub seed: u64,
    /// Length in minutes.
    pub minutes: u32,
    /// Start time. Funding is due every 8 hours UTC.
    pub start: Time,
    /// First mid price, in ticks of 0.1.
    pub mid_ticks: i64,
    /// Whether the session starts with an exchange information line. Without it, rules are
    /// inferred.
    pub exchange_info: bool,
}

/// Mean time between two market actions, µs. 10 minutes have about 80,000 lines.
const ACTION_US: i64 = 9_000;
const DEPTH_US: i64 = 100_000;
const MARK_US: i64 = 1_000_000;
/// When the depth snapshot arrives, µs after the start.
const SNAPSHOT_US: i64 = 350_000;
const FUNDING_MS: i64 = 8 * 3_600_000;

impl SyntheticSession {
    /// Ten minutes around a funding time. The first price is 60,000 USDT.
    pub fn new(surface: Surface, symbol: &str, seed: u64) -> Self {
        Self {
            surface,
            symbol: symbol.to_owned(),
            seed,
            minutes: 10,
            // 2024-06-01 07:55 UTC.
            start: Time::from_millis(1_717_228_500_000),
            mid_ticks: 600_000,
            exchange_info: true,
        }
    }

    /// Writes the session as a gzip recording. Returns the number of lines.
    pub fn write(&self, path: &Path) -> io::Result<u64> {
        let file = BufWriter::new(std::fs::File::create(path)?);
        let mut out = GzEncoder::new(file, Compression::new(4));
        let lines = self.write_text(&mut out)?;
        out.finish()?
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        Ok(lines)
    }

    /// Writes the session as text. Returns the number of lines.
    pub fn write_text(&self, out: &mut impl Write) -> io::Result<u64> {
        let mut writer = Writer::new(self, out);
        let market = Market::new(SplitMix64::new(self.seed), self.mid_ticks, 5_000_000_000);
        writer.run(market)?;
        Ok(writer.lines)
    }
}

/// A JSON object. Its members are in the order in which a venue writes them.
struct Json(String);

impl Json {
    fn new() -> Self {
        Self("{".to_owned())
    }

    /// Adds a member with a quoted value.
    fn text(self, key: &str, value: impl Display) -> Self {
        self.plain(key, format_args!("\"{value}\""))
    }

    fn plain(mut self, key: &str, value: impl Display) -> Self {
        let comma = if self.0.len() == 1 { "" } else { "," };
        // Writing to a `String` cannot fail.
        let _ = write!(self.0, "{comma}\"{key}\":{value}");
        self
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

struct Writer<'a, W> {
    session: &'a SyntheticSession,
    out: &'a mut W,
    /// Randomness of the latency, separate from that of the market.
    random: SplitMix64,
    stream: String,
    frame: String,
    lines: u64,
    last_recv: i64,
    trade_id: i64,
    /// First update id of the current depth frame, and last update id of the previous frame.
    first_update: i64,
    previous_update: i64,
    /// The index price: a slow average of mid, in 1/64 tick.
    index: i64,
}

impl<'a, W: Write> Writer<'a, W> {
    fn new(session: &'a SyntheticSession, out: &'a mut W) -> Self {
        Self {
            session,
            out,
            random: SplitMix64::new(!session.seed),
            stream: session.symbol.to_ascii_lowercase(),
            frame: String::new(),
            lines: 0,
            last_recv: session.start.0,
            trade_id: 1_000_000,
            first_update: 0,
            previous_update: 0,
            index: session.mid_ticks * 64,
        }
    }

    fn run(&mut self, mut market: Market) -> io::Result<()> {
        if self.session.exchange_info {
            self.exchange_info();
            self.line(0)?;
        }
        let end = i64::from(self.session.minutes) * 60_000_000;
        let (mut now, mut next_depth, mut next_mark) = (0, DEPTH_US, 0);
        let mut snapshot = Some(SNAPSHOT_US);
        self.first_update = market.update_id + 1;
        self.previous_update = market.update_id;
        loop {
            now += 1 + self.random.below_signed(2 * ACTION_US);
            while next_depth.min(next_mark) <= now.min(end) {
                if next_mark <= next_depth {
                    self.mark(next_mark, market.touch())?;
                    next_mark += MARK_US;
                } else {
                    self.depth(next_depth, &mut market)?;
                    next_depth += DEPTH_US;
                }
            }
            if snapshot.is_some_and(|due| due <= now) {
                snapshot = None;
                self.snapshot(now, &market)?;
            }
            if now >= end {
                return Ok(());
            }
            let before = market.touch();
            for print in market.step() {
                self.trade(now, print)?;
            }
            if market.touch() != before {
                self.top(now, market.touch(), market.update_id)?;
            }
        }
    }

    fn ms(&self, now: i64) -> i64 {
        self.session.start.plus_ns(now * 1000).millis()
    }

    /// Writes the frame. It is received a few milliseconds after `now`, sometimes later, but never
    /// before an earlier frame.
    fn line(&mut self, now: i64) -> io::Result<()> {
        let late = if self.random.below_signed(500) == 0 {
            25_000_000
        } else {
            2_000_000
        };
        let latency = 1_500_000 + self.random.below_signed(late);
        let recv = (self.session.start.0 + now * 1000 + latency).max(self.last_recv + 100);
        self.last_recv = recv;
        writeln!(self.out, "{recv} {}", self.frame)?;
        self.lines += 1;
        self.frame.clear();
        Ok(())
    }

    fn is_futures(&self) -> bool {
        self.session.surface == Surface::Futures
    }

    fn price(&self, ticks: i64) -> String {
        if self.is_futures() {
            format!("{}.{}0", ticks / 10, ticks % 10)
        } else {
            format!("{}.{}0000000", ticks / 10, ticks % 10)
        }
    }

    fn qty(&self, steps: i64) -> String {
        if self.is_futures() {
            format!("{}.{:03}", steps / 1000, steps % 1000)
        } else {
            format!("{}.{:03}00000", steps / 1000, steps % 1000)
        }
    }

    fn trade(&mut self, now: i64, print: Print) -> io::Result<()> {
        self.trade_id += 1;
        let ms = self.ms(now);
        let maker = print.taker == Side::Sell;
        let mut data = Json::new().text("e", "trade").plain("E", ms);
        if self.is_futures() {
            data = data.plain("T", ms);
        }
        data = data
            .text("s", &self.session.symbol)
            .plain("t", self.trade_id)
            .text("p", self.price(print.price))
            .text("q", self.qty(print.qty));
        data = if self.is_futures() {
            data.text("X", "MARKET").plain("m", maker)
        } else {
            data.plain("T", ms).plain("m", maker).plain("M", true)
        };
        self.envelope("trade", data);
        self.line(now)
    }

    fn top(&mut self, now: i64, touch: Touch, update: i64) -> io::Result<()> {
        let ms = self.ms(now);
        let mut data = Json::new();
        if self.is_futures() {
            data = data.text("e", "bookTicker");
        }
        data = data
            .plain("u", update)
            .text("s", &self.session.symbol)
            .text("b", self.price(touch.bid.0))
            .text("B", self.qty(touch.bid.1))
            .text("a", self.price(touch.ask.0))
            .text("A", self.qty(touch.ask.1));
        if self.is_futures() {
            data = data.plain("T", ms).plain("E", ms);
        }
        self.envelope("bookTicker", data);
        self.line(now)
    }

    fn depth(&mut self, now: i64, market: &mut Market) -> io::Result<()> {
        let (first, last, previous) = (self.first_update, market.update_id, self.previous_update);
        if last < first {
            return Ok(());
        }
        let [bids, asks] = market.changes();
        let ms = self.ms(now);
        let mut data = Json::new().text("e", "depthUpdate").plain("E", ms);
        if self.is_futures() {
            data = data.plain("T", ms);
        }
        data = data
            .text("s", &self.session.symbol)
            .plain("U", first)
            .plain("u", last);
        if self.is_futures() {
            data = data.plain("pu", previous);
        }
        data = data
            .plain("b", self.levels(&bids))
            .plain("a", self.levels(&asks));
        self.envelope("depth@100ms", data);
        self.previous_update = last;
        self.first_update = last + 1;
        self.line(now)
    }

    fn snapshot(&mut self, now: i64, market: &Market) -> io::Result<()> {
        let ms = self.ms(now);
        let [bids, asks] = market.book();
        let mut data = Json::new().plain("lastUpdateId", market.update_id);
        if self.is_futures() {
            data = data.plain("E", ms).plain("T", ms);
        }
        let data = data
            .plain("bids", self.levels(&bids))
            .plain("asks", self.levels(&asks));
        self.frame = data.end();
        self.line(now)
    }

    fn levels(&self, levels: &[(i64, i64)]) -> String {
        let level = |&(price, qty): &(i64, i64)| {
            format!(r#"["{}","{}"]"#, self.price(price), self.qty(qty))
        };
        let levels: Vec<String> = levels.iter().map(level).collect();
        format!("[{}]", levels.join(","))
    }

    fn envelope(&mut self, topic: &str, data: Json) {
        let stream = format!("{}@{topic}", self.stream);
        self.frame = Json::new()
            .text("stream", stream)
            .plain("data", data.end())
            .end();
    }

    /// Writes a mark price: the average of mid and a slow index. The funding rate follows the
    /// premium, around 0.01 %.
    fn mark(&mut self, now: i64, touch: Touch) -> io::Result<()> {
        if !self.is_futures() {
            return Ok(());
        }
        let mid = (touch.bid.0 + touch.ask.0) * 32;
        self.index += (mid - self.index) / 16;
        let mark = i64::midpoint(mid, self.index);
        // A tick is 0.1, so 1/64 tick is 156,250 units of 1e-8.
        let text = |price: i64| {
            let units = price * 156_250;
            format!("{}.{:08}", units / 100_000_000, units % 100_000_000)
        };
        let premium = (mid - self.index) * 100_000_000 / self.index / 8;
        let rate = (10_000 + premium).clamp(-75_000, 75_000);
        let sign = if rate < 0 { "-" } else { "" };
        let ms = self.ms(now);
        let data = Json::new()
            .text("e", "markPriceUpdate")
            .plain("E", ms)
            .text("s", &self.session.symbol)
            .text("p", text(mark))
            .text("P", text(mark))
            .text("i", text(self.index))
            .text("r", format!("{sign}0.{:08}", rate.abs()))
            .plain("T", (ms / FUNDING_MS + 1) * FUNDING_MS);
        self.envelope("markPrice@1s", data);
        self.line(now)
    }

    /// Writes exchange information of the symbol, with the filters of a fixed example
    /// (`futures.json`, `spot.json`).
    fn exchange_info(&mut self) {
        let symbol = &self.session.symbol;
        let base = symbol.strip_suffix("USDT").unwrap_or(symbol);
        let text = if self.is_futures() {
            include_str!("futures.json")
        } else {
            include_str!("spot.json")
        };
        let named = text.replace("SYMBOL", symbol).replace("BASE", base);
        self.frame = named.lines().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Recording};

    fn text(session: &SyntheticSession) -> String {
        let mut out = Vec::new();
        session.write_text(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_session_depends_only_on_the_seed() {
        let one = SyntheticSession {
            minutes: 1,
            ..SyntheticSession::new(Surface::Futures, "BTCUSDT", 1)
        };
        let two = SyntheticSession {
            seed: 2,
            ..one.clone()
        };
        assert_eq!(text(&one), text(&one));
        assert_ne!(text(&one), text(&two));
    }

    #[test]
    fn sessions_of_both_surfaces_are_valid_recordings() {
        let dir = tempfile::tempdir().unwrap();
        for (surface, marks) in [(Surface::Futures, 601), (Surface::Spot, 0)] {
            let path = dir.path().join("session.gz");
            let session = SyntheticSession::new(surface, "BTCUSDT", 5);
            let lines = session.write(&path).unwrap();
            assert!((50_000..100_000).contains(&lines), "{lines}");
            let options = Options {
                cache_dir: Some(dir.path().join("cache")),
                ..Options::default()
            };
            let recording = Recording::open(&path, &options, &mut |_, _| {}).unwrap();
            let survey = recording.survey();
            assert_eq!(survey.notices(), [""; 0]);
            let known = survey.instrument(surface, "BTCUSDT").unwrap();
            assert!(known.trades > 10_000 && known.tops > 20_000, "{known:?}");
            assert!(known.depths > 5_900 && known.snapshots == 1 && known.gaps.count == 0);
            assert_eq!(known.marks, marks);
            assert!(known.exchange_info.is_some());
        }
    }
}
