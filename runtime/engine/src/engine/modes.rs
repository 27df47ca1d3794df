//! What the account may do and how it counts: its trading right, its position mode and its asset mode.
//!
//! Two routes tell the modes, and they weigh much. Where little weight is left, the first readings of a run
//! come without them. An order for the wrong mode is refused, or opens a position with other margin than
//! configured. So a run opens nothing before it has read both modes. An earlier process of the same data
//! folder may have read them. A venue that does not tell them is waited for [`UNTOLD_MS`], once for a data folder.

use serde::{Deserialize, Serialize};

use crate::ids::Time;
use crate::order::Surface;
use crate::truth::AccountTruth;

use super::Engine;
use super::doubt::Doubt;

/// In this time a minute's weight began anew, so that the modes were asked for.
const UNTOLD_MS: i64 = 75_000;

/// Which modes are known, by this process or one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownModes {
    position: bool,
    assets: bool,
    /// When the account was read without them first.
    untold: Option<Time>,
}

impl KnownModes {
    /// Both are known.
    pub(super) const ALL: Self = Self {
        position: true,
        assets: true,
        untold: None,
    };

    const fn are_told(self) -> bool {
        self.position && self.assets
    }
}

impl Engine {
    /// Whether nothing opens before the account's modes are read.
    pub fn awaits_modes(&self) -> bool {
        let live = self.live.as_ref();
        live.is_some_and(|live| live.doubts_any(&[Doubt::Modes]))
    }

    pub(super) fn begin_modes(&mut self) {
        let live = self.live.as_ref();
        let has_modes = live.is_some_and(|live| live.config.surfaces.contains(&Surface::Futures));
        let is_open = has_modes && !self.known_modes.are_told();
        self.set_doubt(Doubt::Modes, is_open);
    }

    pub(super) fn compare_modes(&mut self, surface: Surface, account: &AccountTruth) {
        if let Some(can_trade) = account.can_trade {
            self.set_doubt(Doubt::CanTrade(surface), !can_trade);
            self.note_can_trade(surface, can_trade);
        }
        if let Some(hedge) = account.hedge_mode {
            self.take_position_mode(hedge);
        }
        if let Some(multi) = account.multi_assets {
            self.take_asset_mode(multi);
        }
        if surface == Surface::Futures && !self.known_modes.are_told() {
            self.known_modes.untold.get_or_insert(self.now);
        }
        self.update_state();
    }

    pub(super) fn take_position_mode(&mut self, hedge: bool) {
        self.set_doubt(Doubt::PositionMode, hedge != self.hedge_mode);
        self.known_modes.position = true;
        self.review_modes();
    }

    pub(super) fn take_asset_mode(&mut self, multi_assets: bool) {
        let live = self.live.as_ref();
        let differs = live.is_some_and(|live| live.config.multi_assets != multi_assets);
        self.set_doubt(Doubt::AssetMode, differs);
        self.known_modes.assets = true;
        self.review_modes();
    }

    fn review_modes(&mut self) {
        if self.known_modes.are_told() {
            self.set_doubt(Doubt::Modes, false);
        }
    }

    /// A venue that does not tell the modes is not waited for any longer.
    pub(super) fn watch_modes(&mut self) {
        let is_over = |read: Time| self.now > read.plus_ms(UNTOLD_MS);
        if self.known_modes.untold.is_some_and(is_over) {
            self.known_modes = KnownModes::ALL;
            self.review_modes();
        }
    }

    /// Takes over what an engine of another process knew. A mode that was not as configured may be by now.
    pub(super) fn inherit_modes(&mut self, from: &Self) {
        let doubted = [Doubt::PositionMode, Doubt::AssetMode];
        let differed = from.doubts().iter().any(|doubt| doubted.contains(doubt));
        let same = from.hedge_mode == self.hedge_mode
            && from.live.as_ref().map(|live| live.config.multi_assets)
                == self.live.as_ref().map(|live| live.config.multi_assets);
        if same && !differed {
            self.known_modes = from.known_modes;
            self.known_modes.untold = None;
        }
    }
}
