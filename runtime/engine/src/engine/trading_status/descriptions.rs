//! The trading status as shown to people (`windvane_supervision::descriptions`).

use windvane_model::order::Surface;
use windvane_model::trading::{BlockState, TradingBlock};
use windvane_supervision::descriptions::{BlockDescription, DisplayNames};

use super::super::Engine;

impl Engine {
    /// Describes a block for people.
    pub fn describe_block(&self, block: TradingBlock, state: &BlockState) -> BlockDescription {
        self.display_names().describe_block(block, state)
    }

    /// The names with which people know instruments and assets.
    pub(super) fn display_names(&self) -> DisplayNames<'_> {
        DisplayNames {
            instruments: &self.instruments,
            assets: &self.assets,
        }
    }

    /// Why an account is degraded because of its trading status, in one sentence.
    pub(in super::super) fn blocked_sentence(&self, surface: Surface) -> String {
        let of_surface = self.blocks().filter(|(block, _)| {
            let reported = matches!(block, TradingBlock::CanTrade(_));
            let countdown = matches!(block, TradingBlock::Countdown(_));
            let of_account = block.account() == Some(surface);
            (of_account || countdown && surface == Surface::Futures) && !reported
        });
        let sentences = of_surface.map(|(block, state)| {
            let described = self.describe_block(block, state);
            format!(
                "{} cannot trade: {}; {}",
                described.what, described.reason, described.what_to_do
            )
        });
        sentences.collect::<Vec<_>>().join("; ")
    }
}
