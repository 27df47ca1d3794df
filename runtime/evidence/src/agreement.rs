//! Whether two account snapshots differ from the books in the same way.
//!
//! - Usually they agree if positions differ by the same quantities, balances differ in the same
//!   direction, and no user event arrived between the first request and the last response.
//! - Outside parties may move the account all the time. From the fourth snapshot on, snapshots
//!   agree although events arrived, unless they may be older than own fills.
//! - While the user stream is down and no own order can have filled, outside parties may change a
//!   position between two snapshots.

use windvane_model::decimal::Amount;
use windvane_model::effect::Adjustment;
use windvane_model::ids::{AssetId, Time};
use windvane_model::order::Surface;
use windvane_model::orders::Order;
use windvane_model::planted;
use windvane_model::state_report::AccountSnapshot;

use crate::Evidence;
use crate::lag::READ_LAG_MS;

/// On an account that moves all the time, user events arrive between any two snapshots. After this
/// many snapshots, they agree although events arrived.
pub const MOVING_READS: u32 = 4;

/// How a snapshot that differs from the books relates to earlier snapshots.
#[derive(Clone, Copy, Debug, Default)]
pub struct Agreement {
    /// It agrees with the previous snapshot.
    pub agreed: bool,
    /// The engine has read the account's trades, or its open orders, for the same difference.
    pub was_searched: bool,
}

/// Whether the venue is ahead of the books by the same amounts in both lists. A trade that is
/// booked between the snapshots moves the books and the venue alike.
fn are_equal_gaps(before: &[Adjustment], now: &[Adjustment]) -> bool {
    let gap = |one: &Adjustment| match *one {
        Adjustment::Balance {
            surface,
            asset,
            from,
            to,
        } => Adjustment::Balance {
            surface,
            asset,
            from: Amount::ZERO,
            to: to - from,
        },
        Adjustment::Position {
            instrument,
            side,
            from,
            to,
        } => Adjustment::Position {
            instrument,
            side,
            from: 0,
            to: to - from,
        },
        other => other,
    };
    before.iter().map(gap).eq(now.iter().map(gap))
}

/// Whether the venue is ahead of the books by the same quantities of positions in both lists.
pub fn have_equal_positions(before: &[Adjustment], now: &[Adjustment]) -> bool {
    let is_position = |one: &&Adjustment| matches!(one, Adjustment::Position { .. });
    let positions = |all: &[Adjustment]| -> Vec<Adjustment> {
        all.iter().filter(is_position).copied().collect()
    };
    are_equal_gaps(&positions(before), &positions(now))
}

/// Whether two snapshots differ from the books alike: positions by the same quantities, balances in
/// the same direction. An outside party may move a balance between any two snapshots.
pub(crate) fn have_equal_direction(before: &[Adjustment], now: &[Adjustment]) -> bool {
    let balances = |all: &[Adjustment]| -> Vec<(Surface, AssetId, i128)> {
        let direction = |one: &Adjustment| match *one {
            Adjustment::Balance {
                surface,
                asset,
                from,
                to,
            } => Some((surface, asset, (to - from).0.signum())),
            _ => None,
        };
        all.iter().filter_map(direction).collect()
    };
    before.len() == now.len()
        && have_equal_positions(before, now)
        && balances(before) == balances(now)
}

/// Whether two snapshots of an account that moves all the time differ from the books alike:
/// positions by the same quantities, and the same balances. The direction of a balance may change
/// with the outside party's profit and loss. Where no own order can have filled, outside parties
/// may change positions all the time too.
fn are_equal_while_moving(
    before: &[Adjustment],
    now: &[Adjustment],
    only_others_trade: bool,
) -> bool {
    let balances = |all: &[Adjustment]| -> Vec<(Surface, AssetId)> {
        let key = |one: &Adjustment| match *one {
            Adjustment::Balance { surface, asset, .. } => Some((surface, asset)),
            _ => None,
        };
        all.iter().filter_map(key).collect()
    };
    let are_positions_equal = have_equal_positions(before, now)
        || (only_others_trade && have_equal_position_direction(before, now));
    are_positions_equal && balances(before) == balances(now)
}

/// Whether both snapshots show more, or both show less, of the same positions than the books.
fn have_equal_position_direction(before: &[Adjustment], now: &[Adjustment]) -> bool {
    let direction = |one: &Adjustment| match *one {
        Adjustment::Position {
            instrument,
            side,
            from,
            to,
        } => Some((instrument, side, from, to > from)),
        _ => None,
    };
    let before = before.iter().filter_map(direction);
    before.eq(now.iter().filter_map(direction))
}

/// Whether the quantity of a position in the books changed between two lists of differences.
fn has_fill_between(before: &[Adjustment], now: &[Adjustment]) -> bool {
    let own = |one: &Adjustment| match *one {
        Adjustment::Position {
            instrument,
            side,
            from,
            ..
        } => Some((instrument, side, from)),
        _ => None,
    };
    let before: Vec<_> = before.iter().filter_map(own).collect();
    now.iter().filter_map(own).any(|one| !before.contains(&one))
}

impl Evidence<'_> {
    /// Compares the differences of a snapshot with those of earlier snapshots in its reconciliation
    /// round.
    pub fn agreement(
        &self,
        surface: Surface,
        account: &AccountSnapshot,
        differences: &[Adjustment],
    ) -> Agreement {
        let connection = self.connection(surface);
        let Some(connection) = connection else {
            return Agreement::default();
        };
        let only_others_trade = self.only_others_trade(surface);
        // Snapshots that each lag by one fill differ from the books by the same quantity every
        // time.
        let searched_trades_for = connection.round.searched_trades_for.as_deref();
        let is_past = searched_trades_for
            .is_some_and(|before| has_fill_between(before, differences))
            && self.lists_stale_positions(surface, account);
        let quiet = connection.events == connection.round.events_when_asked;
        let is_same = |events: u64| quiet && events == connection.events;
        let (seen, had_event) = match &connection.round.last_differences {
            Some((seen, events)) => (Some(seen), !is_same(*events)),
            None => (None, false),
        };
        let moves = had_event || only_others_trade;
        let are_equal = |before: &[Adjustment]| {
            have_equal_direction(before, differences)
                || (moves && are_equal_while_moving(before, differences, only_others_trade))
        };
        // A snapshot older than own fills lacks their effects. Positions may still be equal by
        // chance.
        let may_be_behind = connection.history.may_precede(connection.round.asked_at);
        // If a fill moves the books and the snapshot alike, the snapshot is not behind.
        let keeps_gaps =
            seen.is_some_and(|seen| *seen != *differences && are_equal_gaps(seen, differences));
        let agrees_beside_events = connection.round.snapshots_read >= MOVING_READS
            && (!may_be_behind || keeps_gaps)
            && !planted!(MovingAccountWaits);
        let may_agree = !had_event || agrees_beside_events;
        let is_seen = may_agree && seen.is_some_and(|seen| are_equal(seen));
        Agreement {
            agreed: is_seen && !is_past,
            was_searched: searched_trades_for.is_some_and(are_equal),
        }
    }

    /// Whether only outside parties can move a position now. The user stream is down, so no event
    /// reports their trades, and no own order can have filled after the moment that the last
    /// snapshot shows.
    fn only_others_trade(&self, surface: Surface) -> bool {
        let connection = self.connection(surface);
        let Some(connection) = connection.filter(|connection| !connection.stream_up) else {
            return false;
        };
        let is_here = |order: &&Order| self.surface_of(order.instrument()) == surface;
        let asked = connection.round.asked_at;
        // The previous snapshot was requested some seconds earlier.
        let is_old = |ended: Time| ended.plus_ms(2 * READ_LAG_MS) <= asked;
        let (live, ended) = self.orders.all();
        live.filter(is_here).count() == 0
            && (ended.filter(is_here)).all(|order| order.ended.is_none_or(is_old))
    }
}
