//! Several orders in one call, and one response for several orders
//! (docs/interface/orders.md#place-several-orders, docs/interface/orders.md#cancel-several-orders).
//! Spot has no such routes: there, each order is a call.

use std::ops::Range;

use windvane_model::protocol::{OrderReport, Outcome, Refusal};
use windvane_model::{ClientOrderId, NewOrder, Surface};

use super::{DecodeError, Names};
use crate::error::{Class, VenueError};
use crate::wire::futures::{BatchEntry, Order};

/// The most orders that one call places (docs/interface/orders.md#place-several-orders).
const PLACE_MAX: usize = 5;
/// The most ids that one call cancels (docs/interface/orders.md#cancel-several-orders).
const CANCEL_MAX: usize = 10;
/// `callbackRate` of a batch is at most 4 percent, of a single order 5
/// (docs/interface/orders.md#place-several-orders).
const CALLBACK_PPM_MAX: u32 = 40_000;

/// Divides a list of orders into calls: index ranges in list order. A range with one order uses the
/// route for single orders.
pub(super) struct Calls(std::vec::IntoIter<Range<usize>>);

impl Calls {
    pub(super) fn placing(names: &Names, orders: &[NewOrder]) -> Self {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut open = false;
        for (n, order) in orders.iter().enumerate() {
            let fits = fits_batch(names, order);
            match ranges.last_mut() {
                Some(last) if open && fits && last.len() < PLACE_MAX => last.end = n + 1,
                _ => ranges.push(n..n + 1),
            }
            open = fits;
        }
        Self(ranges.into_iter())
    }

    pub(super) fn cancelling(surface: Surface, count: usize) -> Self {
        let most = match surface {
            Surface::Spot => 1,
            Surface::Futures => CANCEL_MAX,
        };
        let starts = (0..count).step_by(most);
        let ranges: Vec<_> = starts.map(|at| at..count.min(at + most)).collect();
        Self(ranges.into_iter())
    }
}

impl Iterator for Calls {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        self.0.next()
    }
}

/// Whether an order can be an entry of a batch: it has a quantity and no `closePosition`.
fn fits_batch(names: &Names, order: &NewOrder) -> bool {
    let terms = &order.terms;
    let rules = names.rules(terms.instrument);
    rules.is_some_and(|rules| rules.surface == Surface::Futures)
        && terms.qty.is_some()
        && !terms.close_position
        && terms.callback_ppm.is_none_or(|ppm| ppm <= CALLBACK_PPM_MAX)
}

/// The outcome of each order of a batch.
///
/// An order object is matched by its client order id. An error object has no id, so it is matched
/// by its position in the list, which the documents promise for placing. If any order object is at
/// another position, or entries are missing, an error cannot be matched and the outcome is unknown.
pub(super) fn outcomes(
    ids: &[ClientOrderId],
    entries: &[BatchEntry],
    report: impl Fn(&Order) -> Result<OrderReport, DecodeError>,
    mut note: impl FnMut(DecodeError),
) -> Vec<Outcome<OrderReport>> {
    let is = |order: &Order, id: &ClientOrderId| order.client_order_id == id.as_str();
    let in_place = entries.len() == ids.len()
        && entries.iter().zip(ids).all(|(entry, id)| match &entry.0 {
            Ok(order) => is(order, id),
            Err(_) => true,
        });
    let outcomes = ids.iter().enumerate().map(|(n, id)| {
        let found = entries.iter().find_map(|entry| {
            let order = entry.0.as_ref().ok()?;
            is(order, id).then_some(order)
        });
        let unknown = match found.map(&report) {
            Some(Ok(report)) => return Outcome::Done(report),
            Some(Err(error)) => error,
            None => match entries.get(n).filter(|_| in_place) {
                Some(BatchEntry(Err(error))) if error.class() != Class::Unknown => {
                    return Outcome::Refused(refusal(error));
                }
                Some(BatchEntry(Err(error))) => DecodeError::Record(error.to_string()),
                _ => DecodeError::Other {
                    found: "other orders".to_owned(),
                    requested: id.to_string(),
                },
            },
        };
        note(unknown);
        Outcome::Unknown
    });
    outcomes.collect()
}

fn refusal(error: &VenueError) -> Refusal {
    Refusal {
        code: code(error.code),
        msg: error.msg.clone(),
    }
}

/// The documents list no code beyond 32 bits.
pub(super) fn code(code: i64) -> i32 {
    i32::try_from(code).unwrap_or(i32::MIN)
}
