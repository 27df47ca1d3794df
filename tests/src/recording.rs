//! Reads the events of a recording at given times, without any code of the runtime. This is enough
//! to check whether a fill was possible.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;

use crate::checker::Finding;
use crate::fixed::{QTY_SCALE, mantissa};
use crate::results::{Fill, Results};

/// A price level at scale 12.
type Level = (i128, i128);

/// One recorded event that may fill a resting order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Evidence {
    /// A trade: price and quantity.
    Trade(Level),
    /// Best bid and ask.
    Top(Level, Level),
    /// Levels of a depth frame: bids and asks.
    Depth(Vec<Level>, Vec<Level>),
}

/// The recorded events at the requested times.
#[derive(Debug, Default)]
pub struct Recording {
    moments: BTreeMap<i64, Vec<Evidence>>,
}

impl Recording {
    /// Reads the events at the times of the maker fills. The file has lines of the form `<receive
    /// time ns> <frame>`, plain or gzip.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn at_maker_fills(results: &Results, path: &Path) -> std::io::Result<Self> {
        let makers = results.fills.iter().filter(|fill| fill.maker);
        Self::at(&makers.map(|fill| fill.time_ns).collect(), open(path)?)
    }

    fn at(times: &BTreeSet<i64>, lines: impl BufRead) -> std::io::Result<Self> {
        let mut moments: BTreeMap<i64, Vec<Evidence>> = BTreeMap::new();
        for line in lines.split(b'\n') {
            let line = line?;
            let Some(space) = line.iter().position(|byte| *byte == b' ') else {
                continue;
            };
            let time = std::str::from_utf8(&line[..space])
                .ok()
                .and_then(|t| t.parse().ok());
            let Some(time) = time.filter(|time| times.contains(time)) else {
                continue;
            };
            let frame = serde_json::from_slice(&line[space + 1..]).unwrap_or(Value::Null);
            moments.entry(time).or_default().extend(evidence(&frame));
        }
        Ok(Self { moments })
    }

    /// Each maker fill needs an event at exactly its time that reaches its price: a trade at the
    /// price or through it, or the other side of the book touching or crossing it. If only trades
    /// explain the fills of a moment, these fills must not exceed the traded quantity.
    ///
    /// This holds for every queue model as long as the feed latency is constant: then the venue's
    /// time equals the time of the recording.
    pub fn check(&self, results: &Results) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut given: BTreeMap<(i64, bool), i128> = BTreeMap::new();
        for (fill, row) in results.fills.iter().zip(1..) {
            if !fill.maker {
                continue;
            }
            let place = format!("fills.csv row {row}");
            let events = self
                .moments
                .get(&fill.time_ns)
                .map_or(&[][..], Vec::as_slice);
            if !events.iter().any(|event| reaches(event, fill)) {
                findings.push(Finding {
                    place,
                    rule: "a maker fill needs an event that reaches its price",
                    message: format!("{} has {events:?}", fill.time_ns),
                });
                continue;
            }
            let book = |event: &&Evidence| !matches!(event, Evidence::Trade(_));
            if events.iter().filter(book).any(|event| reaches(event, fill)) {
                continue;
            }
            let given = given.entry((fill.time_ns, fill.buy)).or_default();
            *given += fill.qty;
            let traded = |event: &Evidence| match event {
                Evidence::Trade((_, qty)) if reaches(event, fill) => *qty,
                _ => 0,
            };
            let traded: i128 = events.iter().map(traded).sum();
            if *given > traded {
                findings.push(Finding {
                    place,
                    rule: "fills give no more than was traded",
                    message: format!("{given} of {traded} at {}", fill.time_ns),
                });
            }
        }
        findings
    }

    /// Number of moments that have events.
    pub fn moments(&self) -> usize {
        self.moments.len()
    }
}

/// Whether an event reaches an order with the side and price of this fill.
fn reaches(event: &Evidence, fill: &Fill) -> bool {
    let good = |price: i128| {
        if fill.buy {
            price <= fill.price
        } else {
            price >= fill.price
        }
    };
    let any = |levels: &[Level]| levels.iter().any(|(price, qty)| *qty > 0 && good(*price));
    match event {
        Evidence::Trade((price, _)) => good(*price),
        Evidence::Top(_, request) if fill.buy => any(&[*request]),
        Evidence::Top(bid, _) => any(&[*bid]),
        Evidence::Depth(_, asks) if fill.buy => any(asks),
        Evidence::Depth(bids, _) => any(bids),
    }
}

fn open(path: &Path) -> std::io::Result<Box<dyn BufRead>> {
    let file = std::fs::File::open(path)?;
    let gzip = path.extension().is_some_and(|extension| extension == "gz");
    let bytes: Box<dyn Read> = if gzip {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    };
    Ok(Box::new(BufReader::with_capacity(1 << 20, bytes)))
}

fn evidence(frame: &Value) -> Option<Evidence> {
    let data = frame.get("data").unwrap_or(frame);
    let number = |value: Option<&Value>| mantissa(value?.as_str()?, QTY_SCALE);
    let levels = |field: &str| -> Vec<Level> {
        let list = data.get(field).and_then(Value::as_array);
        let level = |level: &Value| Some((number(level.get(0))?, number(level.get(1))?));
        list.map_or_else(Vec::new, |list| list.iter().filter_map(level).collect())
    };
    let pair = |price, qty| Some((number(data.get(price))?, number(data.get(qty))?));
    if data.get("lastUpdateId").is_some() {
        return Some(Evidence::Depth(levels("bids"), levels("asks")));
    }
    match data.get("e").and_then(Value::as_str) {
        Some("trade") => pair("p", "q").map(Evidence::Trade),
        Some("depthUpdate") => Some(Evidence::Depth(levels("b"), levels("a"))),
        _ => Some(Evidence::Top(pair("b", "B")?, pair("a", "A")?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"5 {"stream":"btcusdt@trade","data":{"e":"trade","s":"BTCUSDT","t":1,"p":"100.0","q":"0.3","m":true}}
6 {"stream":"btcusdt@bookTicker","data":{"u":1,"s":"BTCUSDT","b":"99.0","B":"1","a":"99.5","A":"2"}}
7 {"stream":"btcusdt@depth","data":{"e":"depthUpdate","b":[["99.0","0"]],"a":[["98.0","1"]]}}
8 {"lastUpdateId":1,"bids":[["101.0","1"]],"asks":[["102.0","1"]]}
9 half a li"#;

    fn fill(time_ns: i64, buy: bool, price: i128, milli: i128) -> Fill {
        Fill {
            time_ns,
            strategy: "mm".to_owned(),
            instrument: "futures:BTCUSDT".to_owned(),
            client_order_id: "mm.1.1".to_owned(),
            order_id: 1,
            trade_id: 1,
            buy,
            position_side: "BOTH".to_owned(),
            price: price * 10_i128.pow(QTY_SCALE),
            qty: milli * 10_i128.pow(QTY_SCALE - 3),
            quote_qty: 0,
            fee: 0,
            fee_asset: "USDT".to_owned(),
            maker: true,
            realized_pnl: 0,
        }
    }

    fn rules(fills: Vec<Fill>) -> Vec<&'static str> {
        let times = fills.iter().map(|fill| fill.time_ns).collect();
        let recording = Recording::at(&times, LINES.as_bytes()).unwrap();
        let results = Results {
            fills,
            orders: Vec::new(),
            equity: Vec::new(),
            summary: Value::Null,
        };
        recording
            .check(&results)
            .iter()
            .map(|finding| finding.rule)
            .collect()
    }

    #[test]
    fn trades_tops_and_depth_that_reach_the_price_allow_a_fill() {
        let allowed = vec![
            fill(5, true, 100, 100),
            fill(5, true, 101, 200),
            fill(5, false, 100, 300),
            fill(6, true, 100, 9_000),
            fill(6, false, 99, 9_000),
            fill(7, true, 98, 1_000),
            fill(8, false, 101, 1_000),
        ];
        assert_eq!(rules(allowed), [""; 0]);
    }

    #[test]
    fn a_fill_outside_the_market_is_found() {
        let needs = "a maker fill needs an event that reaches its price";
        for fill in [
            fill(4, true, 100, 1),
            fill(5, true, 99, 1),
            fill(5, false, 101, 1),
            fill(6, true, 99, 1),
            fill(7, false, 99, 1),
            fill(9, true, 100, 1),
        ] {
            assert_eq!(rules(vec![fill.clone()]), [needs], "{fill:?}");
        }
    }

    #[test]
    fn more_than_was_traded_is_found() {
        let more = vec![fill(5, true, 100, 200), fill(5, true, 100, 101)];
        assert_eq!(rules(more), ["fills give no more than was traded"]);
    }
}
