//! Actions on the use of weight by other programs, and on the venue's weight counters.

use serde_json::json;
use windvane_protocol::route::Surface;

use super::arguments::Done;
use crate::faults::{Fields, required};
use crate::limits::Counters;
use crate::state::State;

/// The surfaces, all of which have weights.
const WEIGHED: &[(&str, Surface)] = &[
    ("spot", Surface::Spot),
    ("futures", Surface::Futures),
    ("chain", Surface::Chain),
    ("rpc", Surface::Rpc),
];

const COUNTERS: &[(&str, Counters)] = &[
    ("apart", Counters::Apart),
    ("info", Counters::Info),
    ("all", Counters::All),
];

/// Sets the weight of a counter that other programs use per minute from now on; 0 stops it.
pub(super) fn others(state: &mut State, mut fields: Fields) -> Done {
    let surface = fields.word("surface", WEIGHED)?.unwrap_or(Surface::Futures);
    let weight = required("weight", fields.whole("weight"))?;
    fields.finish()?;
    let weight = u32::try_from(weight).unwrap_or(u32::MAX);
    state.limits.use_for_others(surface, weight);
    Ok(json!({}))
}

/// Sets which surfaces share a counter, and whether responses have its header.
pub(super) fn counters(state: &mut State, mut fields: Fields) -> Done {
    let shared = fields.word("shared", COUNTERS)?;
    let headers = fields.boolean("headers")?;
    fields.finish()?;
    state.limits.count_as(shared, headers);
    Ok(json!({}))
}
