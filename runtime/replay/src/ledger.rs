//! The rows of the ledger: all orders, fills, fees and funding of each segment. They come from a
//! replay of the segment and stay when the segment is deleted.

use serde_json::{Value, json};
use windvane_engine::Engine;
use windvane_journal::{Directory, ExportError, LedgerError, StoredSegment};
use windvane_model::order_state::OrderState;
use windvane_model::{Amount, InstrumentId, Notice, StrategyId, Time};

use windvane_report::utc::utc_text;
use windvane_session::recovery::Replay;
use windvane_session::{Checkpoint, EngineLoop, Paper};

/// Why the ledger could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// The ledger's file cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The journal's folder cannot be read.
    #[error(transparent)]
    Journal(#[from] ExportError),
}

/// Enters every segment that is not in the ledger yet, and returns how many. The last segment is
/// left out: it is being written, or a start reads it.
///
/// # Errors
/// The disk refuses, or the ledger is damaged. Then no segment may be deleted.
pub fn update(directory: &Directory) -> Result<usize, UpdateError> {
    let mut ledger = directory.ledger()?;
    let segments = windvane_journal::segments(directory.path())?;
    let (_, ended) = segments.split_last().unwrap_or((&0, &[]));
    let last = ledger.last();
    let missing = ended
        .iter()
        .filter(|number| last.is_none_or(|last| **number > last));
    let mut entered = 0;
    for &number in missing {
        let lines = match windvane_journal::segment(directory.path(), number) {
            Ok(stored) => rows(number, stored),
            // A segment that cannot be read now will not be readable later either, so record the
            // gap.
            Err(ExportError::Segment { problem, .. }) => vec![gap(number, &problem)],
            Err(error) => return Err(error.into()),
        };
        let mut text = String::new();
        for line in lines {
            text.push_str(&line.to_string());
            text.push('\n');
        }
        ledger.enter(number, text.as_bytes())?;
        entered += 1;
    }
    Ok(entered)
}

/// A row that records that part of a segment is missing in the ledger.
fn gap(segment: u32, problem: &str) -> Value {
    json!({"row": "gap", "segment": segment, "problem": problem})
}

/// The rows of a segment, from a replay of it.
pub fn rows(number: u32, stored: StoredSegment) -> Vec<Value> {
    let checkpoint = Checkpoint::from_bytes(&stored.checkpoint);
    let engine = checkpoint
        .as_ref()
        .map(|checkpoint| Engine::restore(&checkpoint.engine));
    let (Some(checkpoint), Some(Ok(engine))) = (checkpoint, engine) else {
        return vec![gap(
            number,
            "its checkpoint cannot be read: damaged, or of another version?",
        )];
    };
    let paper = checkpoint.paper.as_deref().and_then(Paper::from_bytes);
    let mut replay = Replay::of(paper).keeping_notices();
    let (mut core, mut rows) = (EngineLoop::new(engine), Vec::new());
    for block in stored.blocks {
        replay.block(&mut core, block);
        for notice in replay.notices() {
            rows.extend(row(core.engine(), &notice));
        }
    }
    if let Some(tear) = stored.tear {
        rows.push(gap(number, &tear));
    }
    rows
}

fn time(time: Time) -> String {
    utc_text(time)
}

fn amount(amount: Amount) -> String {
    amount.to_string()
}

fn name(engine: &Engine, instrument: InstrumentId) -> String {
    let instrument = engine.instrument(instrument);
    instrument.map_or_else(String::new, windvane_model::Instrument::name)
}

fn strategy(engine: &Engine, strategy: StrategyId) -> &str {
    engine.strategy_name(strategy).unwrap_or_default()
}

fn asset(engine: &Engine, asset: windvane_model::AssetId) -> &str {
    let asset = engine.assets().get(usize::from(asset.0));
    asset.map_or("", String::as_str)
}

fn row(engine: &Engine, notice: &Notice) -> Option<Value> {
    Some(match notice {
        Notice::Ended { time: at, order } => {
            let instrument = engine.instrument(order.instrument())?;
            let average = order.average_price(instrument);
            let terms = &order.terms;
            json!({
                "row": "order",
                "time": time(*at),
                "submitted": time(order.submitted),
                "strategy": strategy(engine, order.strategy),
                "instrument": instrument.name(),
                "id": order.client_order_id.as_str(),
                "order_id": order.venue_order_id.map(|id| id.0),
                "side": terms.side.as_str(),
                "position_side": terms.position_side.as_str(),
                "type": terms.order_type.as_str(),
                "price": terms.price.map(|price| instrument.price(price.0)),
                "stop_price": terms.stop_price.map(|price| instrument.price(price.0)),
                "qty": terms.qty.map(|qty| instrument.qty(qty.0)),
                "executed_qty": instrument.qty(order.executed_qty),
                "avg_price": average.map(amount),
                "state": state(order.state),
                "code": (order.refusal_code != 0).then_some(order.refusal_code),
            })
        }
        Notice::Filled {
            executed,
            order,
            fill,
            realized_pnl,
            ..
        } => {
            let instrument = engine.instrument(order.instrument())?;
            json!({
                "row": "fill",
                "time": time(*executed),
                "strategy": strategy(engine, order.strategy),
                "instrument": instrument.name(),
                "id": order.client_order_id.as_str(),
                "trade_id": fill.trade_id.0,
                "side": order.terms.side.as_str(),
                "price": instrument.price(fill.price.0),
                "qty": instrument.qty(fill.qty.0),
                "fee": amount(fill.fee),
                "fee_asset": asset(engine, fill.fee_asset),
                "maker": fill.maker,
                "realized_pnl": amount(*realized_pnl),
            })
        }
        Notice::External {
            update,
            realized_pnl,
            ..
        } => {
            let fill = update.fill.as_ref()?;
            let instrument = engine.instrument(update.instrument)?;
            json!({
                "row": "external_fill",
                "time": time(update.transaction_time),
                "instrument": instrument.name(),
                "id": update.client_order_id.as_str(),
                "order_id": update.order_id.0,
                "trade_id": fill.trade_id.0,
                "side": update.side.as_str(),
                "price": instrument.price(fill.price.0),
                "qty": instrument.qty(fill.qty.0),
                "fee": amount(fill.fee),
                "fee_asset": asset(engine, fill.fee_asset),
                "realized_pnl": amount(*realized_pnl),
            })
        }
        Notice::LateFee {
            time: at,
            strategy: owner,
            instrument,
            order_id,
            trade_id,
            fee,
            asset: of,
            estimate,
            ..
        } => json!({
            "row": "late_fee",
            "time": time(*at),
            "strategy": owner.map(|owner| strategy(engine, owner)),
            "instrument": name(engine, *instrument),
            "order_id": order_id.0,
            "trade_id": trade_id.0,
            "fee": amount(*fee),
            "fee_asset": asset(engine, *of),
            "booked_before": amount(*estimate),
        }),
        Notice::Funding {
            time: at,
            amount: paid,
        } => json!({
            "row": "funding",
            "time": time(*at),
            "amount": amount(*paid),
        }),
        _ => return None,
    })
}

fn state(state: OrderState) -> Value {
    serde_json::to_value(state).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use windvane_model::record::Format;

    use super::*;

    fn archives() -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
        let mut archives = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let fixture = entry.unwrap().path();
            archives.extend(
                ["live.tar.gz", "paper.tar.gz"]
                    .map(|name| fixture.join(name))
                    .into_iter()
                    .filter(|archive| archive.exists()),
            );
        }
        archives
    }

    /// The data folder inside an unpacked archive.
    fn data_folder(folder: &Path) -> PathBuf {
        if folder.join("journal").is_dir() {
            return folder.to_owned();
        }
        let mut entries = std::fs::read_dir(folder).unwrap();
        entries
            .find_map(|entry| {
                let path = entry.unwrap().path();
                path.join("journal").is_dir().then_some(path)
            })
            .unwrap()
    }

    #[test]
    fn journals_of_each_format_are_read_and_entered_once() {
        let mut formats = BTreeSet::new();
        for archive in archives() {
            let folder = tempfile::tempdir().unwrap();
            let unpacked = Command::new("tar")
                .arg("-xzf")
                .arg(&archive)
                .arg("-C")
                .arg(folder.path())
                .status();
            assert!(unpacked.unwrap().success());
            let data = data_folder(folder.path());
            let numbers = windvane_journal::segments(&data).unwrap();
            let mut orders = 0;
            for number in &numbers {
                let stored = windvane_journal::segment(&data, *number).unwrap();
                assert_eq!(stored.tear, None, "{}", archive.display());
                assert!(stored.lost.is_empty());
                formats.insert(stored.format == Format::V3);
                for row in rows(*number, stored) {
                    assert_ne!(row["row"], "gap", "{}: {row}", archive.display());
                    orders += usize::from(row["row"] == "order" || row["row"] == "fill");
                }
            }
            assert!(orders > 0, "{}", archive.display());
            // A run that ended a segment has entered it.
            let _ = std::fs::remove_file(data.join("ledger"));
            let directory = Directory::lock(&data).unwrap();
            let entered = update(&directory).unwrap();
            assert_eq!(entered, numbers.len() - 1);
            assert_eq!(update(&directory).unwrap(), 0);
        }
        assert!(formats.contains(&false));
    }
}
