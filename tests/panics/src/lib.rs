//! A strategy that panics at its first trade, as a programming error would.
//!
//! The end-to-end test `panic` uses it. It must not depend on anything but the SDK.

use windvane_sdk::prelude::*;

/// The strategy.
#[derive(Debug)]
pub struct Panics;

impl Strategy for Panics {
    fn new(_: Params, _: &[Instrument]) -> Result<Self, String> {
        Ok(Self)
    }

    #[expect(clippy::panic, reason = "the strategy must panic")]
    fn on_trade(&mut self, _: &Ctx, trade: &Trade) {
        panic!("no position for the first trade, of {:?}", trade.qty);
    }
}

windvane_sdk::export!(Panics);
