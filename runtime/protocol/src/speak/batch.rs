//! Several orders in one call, and one answer for several orders (spec 2, Place multiple orders
//! and Cancel multiple orders). Spot has no such routes: there, each order is a call.

use std::ops::Range;

use windvane_model::protocol::{OrderReport, Outcome, Refusal};
use windvane_model::{ClientOrderId, NewOrder, Surface};

use super::{HearError, Names};
use crate::error::{Class, VenueError};
use crate::wire::futures::{BatchEntry, Order};

/// Orders that one call places (spec 2, Limits).
const PLACE_MAX: usize = 5;
/// Ids that one call cancels (spec 2, Limits).
const CANCEL_MAX: usize = 10;
/// `callbackRate` of a batch is at most 4 percent, of a single order 5 (spec 2, Limits).
const CALLBACK_PPM_MAX: u32 = 40_000;

/// How a list of orders is divided into calls: ranges in its order, those of one order being
/// calls of the single route.
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

/// An entry of a batch has a quantity and no `closePosition`.
fn fits_batch(names: &Names, order: &NewOrder) -> bool {
    let terms = &order.terms;
    let rules = names.rules(terms.instrument);
    rules.is_some_and(|rules| rules.surface == Surface::Futures)
        && terms.qty.is_some()
        && !terms.close_position
        && terms.callback_ppm.is_none_or(|ppm| ppm <= CALLBACK_PPM_MAX)
}

/// What became of each order of a batch.
///
/// An order object is found by its client order id. An error object names none: it belongs to the
/// order of its place, which the documents promise for placing; where any order object is not at
/// its place, or entries are missing, an error belongs to nobody and the outcome is unknown.
pub(super) fn outcomes(
    ids: &[ClientOrderId],
    entries: &[BatchEntry],
    report: impl Fn(&Order) -> Result<OrderReport, HearError>,
    mut note: impl FnMut(HearError),
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
                Some(BatchEntry(Err(error))) => HearError::Record(error.to_string()),
                _ => HearError::Other {
                    found: "other orders".to_owned(),
                    asked: id.to_string(),
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

/// A code that leaves 32 bits is none of the documents'.
pub(super) fn code(code: i64) -> i32 {
    i32::try_from(code).unwrap_or(i32::MIN)
}
