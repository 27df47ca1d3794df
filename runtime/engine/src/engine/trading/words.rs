//! The trading status as it is told to people (`windvane_supervision::words`).

use windvane_model::order::Surface;
use windvane_model::trading::{BlockState, TradingBlock};
use windvane_supervision::words::{BlockWords, Words};

use super::super::Engine;

impl Engine {
    /// Describes a block for people.
    pub fn block_words(&self, block: TradingBlock, state: &BlockState) -> BlockWords {
        self.words().block(block, state)
    }

    /// The names with which people know instruments and assets.
    pub(super) fn words(&self) -> Words<'_> {
        Words {
            instruments: &self.instruments,
            assets: &self.assets,
        }
    }

    /// Why an account is degraded because of its trading status, in one sentence.
    pub(in super::super) fn blocked_sentence(&self, surface: Surface) -> String {
        let of_surface = self.blocks().filter(|(block, _)| {
            let told = matches!(block, TradingBlock::CanTrade(_));
            let countdown = matches!(block, TradingBlock::Countdown(_));
            let of_account = block.account() == Some(surface);
            (of_account || countdown && surface == Surface::Futures) && !told
        });
        let sentences = of_surface.map(|(block, state)| {
            let words = self.block_words(block, state);
            format!(
                "{} cannot trade: {}; {}",
                words.what, words.reason, words.what_to_do
            )
        });
        sentences.collect::<Vec<_>>().join("; ")
    }
}
