//! Converts snapshots of earlier program versions to the present format.
//!
//! A snapshot is the engine in postcard's format: its fields in order, without names. So a new
//! field goes to the end of [`Engine`](super::Engine), and a migration appends the value that an
//! older engine would have had. A new enum variant goes to the end of its enum and needs no
//! migration. Any other change needs a copy of the old types here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use windvane_evidence::asset_prices::AssetPrices;
use windvane_evidence::close_gains::DueGains;
use windvane_evidence::close_values::CloseValues;
use windvane_evidence::comparison::ConfirmedEntries;
use windvane_evidence::fee_costs::FeeCosts;
use windvane_evidence::fills_from_totals::FillsFromTotals;
use windvane_evidence::forced::ForcedCloses;
use windvane_evidence::forced_close_evidence::ForcedCloseEvidence;
use windvane_evidence::forced_out_of_order::{ListedShifts, OutOfOrder};
use windvane_evidence::income::Incomes;
use windvane_evidence::instances::Instances;
use windvane_evidence::late_fees::LateFees;
use windvane_evidence::mark_price_age::MarkPriceAges;
use windvane_evidence::newest_orders::NewestOrders;
use windvane_evidence::outside_closes::{
    ExplainedCloses, ListedCloses, OutsideCloses, StatedCloses,
};
use windvane_evidence::outside_orders::OutsideOrders;
use windvane_evidence::payments::StatedPayments;
use windvane_evidence::recent_orders::RecentOrders;
use windvane_evidence::reconciled_fills::SnapshotChanges;
use windvane_evidence::stated_balances::StatedBalances;
use windvane_evidence::stated_positions::StatedPositions;
use windvane_evidence::unconfigured_positions::UnconfiguredPositions;
use windvane_model::decimal::Amount;
use windvane_model::ids::Time;
use windvane_model::order::Surface;
use windvane_supervision::blocks::TradingStatus;
use windvane_supervision::margin_terms::Margins;
use windvane_supervision::refusals::{Crossings, ExitRefusals};
use windvane_supervision::rules_refresh::RulesRefresh;
use windvane_supervision::stale_markets::MarketFeeds;
use windvane_supervision::venue_wait::VenueWait;

use super::known_modes::KnownModes;

/// Version of the serialized engine. Every change of its layout raises it; [`migrate`] converts
/// earlier versions.
pub(super) const SNAPSHOT_VERSION: u32 = 17;

/// The oldest version that can be read.
pub(super) const OLDEST: u32 = 8;

/// The fields that each version after the oldest appended.
const ADDED: [fn() -> Vec<u8>; (SNAPSHOT_VERSION - OLDEST) as usize] = [
    added_in_9,
    added_in_10,
    added_in_11,
    added_in_12,
    added_in_13,
    added_in_14,
    added_in_15,
    added_in_16,
    added_in_17,
];

/// The content of a snapshot in the present format; `None` for a version that cannot be read.
pub(super) fn migrate(version: u32, content: &[u8]) -> Option<Cow<'_, [u8]>> {
    if version == SNAPSHOT_VERSION {
        return Some(Cow::Borrowed(content));
    }
    let written = usize::try_from(version.checked_sub(OLDEST)?).ok()?;
    let missing = ADDED.get(written..)?;
    let fields = missing.iter().flat_map(|added| added());
    Some(Cow::Owned(content.iter().copied().chain(fields).collect()))
}

/// The fields that version 9 appended, as an engine of version 8 would have had them.
fn added_in_9() -> Vec<u8> {
    // Writing to memory cannot fail, and every length in our types is known.
    let fields = (
        TradingStatus::default(),
        OutsideCloses::default(),
        Instances::unlisted(),
        ForcedCloses::default(),
        RulesRefresh::default(),
        Margins::default(),
        BTreeMap::<Surface, VenueWait>::new(),
    );
    postcard::to_stdvec(&fields).unwrap_or_default()
}

/// The fields that version 10 appended, as an engine of version 9 would have had them.
fn added_in_10() -> Vec<u8> {
    let fields = (
        Incomes::default(),
        UnconfiguredPositions::default(),
        Crossings::default(),
        MarkPriceAges::default(),
        FeeCosts::default(),
        MarketFeeds::default(),
    );
    postcard::to_stdvec(&fields).unwrap_or_default()
}

/// The fields that version 11 appended, as an engine of version 10 would have had them.
fn added_in_11() -> Vec<u8> {
    let fields = (
        BTreeMap::<Surface, SnapshotChanges>::new(),
        OutOfOrder::default(),
        LateFees::default(),
        BTreeMap::<Surface, Time>::new(),
        BTreeMap::<Surface, i64>::new(),
    );
    postcard::to_stdvec(&fields).unwrap_or_default()
}

/// The fields that version 12 appended, as an engine of version 11 would have had them.
fn added_in_12() -> Vec<u8> {
    let fields: (ConfirmedEntries, ExplainedCloses) = Default::default();
    postcard::to_stdvec(&fields).unwrap_or_default()
}

/// The fields that version 13 appended, as an engine of version 12 would have had them.
fn added_in_13() -> Vec<u8> {
    let fields: (StatedCloses, AssetPrices, StatedPositions) = Default::default();
    postcard::to_stdvec(&fields).unwrap_or_default()
}

/// The fields that version 14 appended, as an engine of version 13 would have had them.
fn added_in_14() -> Vec<u8> {
    let fields: (
        ListedCloses,
        Amount,
        ListedShifts,
        OutsideOrders,
        ExitRefusals,
    ) = Default::default();
    postcard::to_stdvec(&fields).unwrap_or_default()
}

/// The fields that version 15 appended, as an engine of version 14 would have had them.
fn added_in_15() -> Vec<u8> {
    let fields: (StatedBalances, DueGains, RecentOrders) = Default::default();
    postcard::to_stdvec(&fields).unwrap_or_default()
}

/// The fields that version 16 appended, as an engine of version 15 would have had them.
fn added_in_16() -> Vec<u8> {
    let fields: (
        FillsFromTotals,
        ForcedCloseEvidence,
        StatedPayments,
        NewestOrders,
        Option<Time>,
    ) = Default::default();
    postcard::to_stdvec(&fields).unwrap_or_default()
}

/// The fields that version 17 appended, as an engine of version 16 would have had them.
fn added_in_17() -> Vec<u8> {
    // An older run did not wait for the modes.
    let fields = (CloseValues::default(), KnownModes::ALL);
    postcard::to_stdvec(&fields).unwrap_or_default()
}
