//! The account's modes: its trading right, its position mode and its asset mode.
//!
//! Two routes return the modes, and they cost much request weight. If little weight is left, the
//! first account snapshots of a run come without them. An order for the wrong mode is refused, or
//! opens a position with another margin than configured. So a run opens nothing before it has read
//! both modes. An earlier process of the same data folder may have read them. If the venue refuses
//! to return them, the run does not wait.

use serde::{Deserialize, Serialize};
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::order::Surface;
use windvane_model::state_report::AccountSnapshot;

use super::Engine;

/// Which modes are known, from this process or an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownModes {
    position: bool,
    assets: bool,
    /// The next account snapshot lacks them, and a later one contains them.
    are_pending: bool,
}

impl KnownModes {
    /// Position mode and asset mode are known.
    pub(super) const ALL: Self = Self {
        position: true,
        assets: true,
        are_pending: false,
    };

    const fn are_known(self) -> bool {
        self.position && self.assets
    }
}

impl Engine {
    /// Whether opening orders wait until the account's modes are read.
    pub fn awaits_modes(&self) -> bool {
        let live = self.live.as_ref();
        live.is_some_and(|live| live.is_degraded_for(&[DegradedReason::Modes]))
    }

    pub(super) fn begin_account_modes(&mut self) {
        let live = self.live.as_ref();
        let has_modes = live.is_some_and(|live| live.config.surfaces.contains(&Surface::Futures));
        let is_open = has_modes && !self.known_modes.are_known();
        self.set_degraded(DegradedReason::Modes, is_open);
    }

    pub(super) fn compare_modes(&mut self, surface: Surface, account: &AccountSnapshot) {
        if let Some(can_trade) = account.can_trade {
            self.set_degraded(DegradedReason::CanTrade(surface), !can_trade);
            self.note_can_trade(surface, can_trade);
        }
        if let Some(hedge) = account.hedge_mode {
            self.take_position_mode(hedge);
        }
        if let Some(multi) = account.multi_assets {
            self.take_asset_mode(multi);
        }
        let are_pending = std::mem::take(&mut self.known_modes.are_pending);
        if surface == Surface::Futures && !are_pending {
            self.known_modes = KnownModes::ALL;
            self.review_modes();
        }
        self.update_state();
    }

    pub(super) fn take_position_mode(&mut self, hedge: bool) {
        self.set_degraded(DegradedReason::PositionMode, hedge != self.hedge_mode);
        self.known_modes.position = true;
        self.review_modes();
    }

    pub(super) fn take_asset_mode(&mut self, multi_assets: bool) {
        let live = self.live.as_ref();
        let differs = live.is_some_and(|live| live.config.multi_assets != multi_assets);
        self.set_degraded(DegradedReason::AssetMode, differs);
        self.known_modes.assets = true;
        self.review_modes();
    }

    fn review_modes(&mut self) {
        if self.known_modes.are_known() {
            self.set_degraded(DegradedReason::Modes, false);
        }
    }

    /// Notes that the next account snapshot comes without its modes.
    pub(super) const fn note_pending_modes(&mut self) {
        self.known_modes.are_pending = true;
    }

    /// Takes over the modes that an earlier process read. A mode that differed from the
    /// configuration is read again, because it may match by now.
    pub(super) fn inherit_modes(&mut self, from: &Self) {
        let mode_reasons = [DegradedReason::PositionMode, DegradedReason::AssetMode];
        let differed = from
            .degraded_reasons()
            .iter()
            .any(|reason| mode_reasons.contains(reason));
        let same = from.hedge_mode == self.hedge_mode
            && from.live.as_ref().map(|live| live.config.multi_assets)
                == self.live.as_ref().map(|live| live.config.multi_assets);
        if same && !differed {
            self.known_modes = from.known_modes;
            self.known_modes.are_pending = false;
        }
    }
}
