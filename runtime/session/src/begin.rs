//! The first moment of a run: what is latched, the strategies with what they saved, and what is to be
//! trusted. Everything in it happens at one time, for what the engine wants sent leaves at its end. A
//! simulated account would meet it later than its record says.

use windvane_engine::forced::OnLiquidation;
use windvane_engine::live::LiveInput;
use windvane_engine::{Input, InstrumentId, MarketEvent, StrategyId, Surface, Time};

use crate::account::Account;
use crate::driver::Driver;
use crate::guests::Guests;
use crate::latches::LatchState;

/// What a run begins with.
#[derive(Debug)]
pub(crate) struct Begin<'a> {
    /// What is latched by the file beside the journal.
    pub latches: &'a LatchState,
    /// What each strategy saved last.
    pub states: &'a [Option<Vec<u8>>],
    /// What follows a liquidation.
    pub on_liquidation: OnLiquidation,
    /// What is traded.
    pub surfaces: &'a [Surface],
    /// The market is watched by streams; a simulated account missed what they said before.
    pub is_streamed: bool,
}

/// Begins a run at this time of the engine's clock.
///
/// # Errors
/// A strategy refuses to begin, for this reason.
pub(crate) fn begin<G: Guests>(
    now: Time,
    driver: &mut Driver<G>,
    account: &mut Account,
    with: &Begin<'_>,
) -> Result<(), (StrategyId, String)> {
    // Quarantines hold before the strategies begin. What tells strategies something waits until they
    // did.
    latch(now, driver, with.latches, |input| {
        matches!(input, Input::Fault { .. })
    });
    if !account.is_of_venue() {
        // The simulated account is a function of the journal: an order whose record does not
        // become durable never was, so that it need not wait.
        driver.durable(now, u64::MAX);
    }
    driver.start(now, with.states)?;
    latch(now, driver, with.latches, |_| true);
    driver.handle(now, Input::Live(&LiveInput::Begin));
    if let Account::Paper(paper) = account {
        if with.is_streamed {
            let instruments = driver.engine().instruments().len();
            for instrument in (0..instruments).map(|id| InstrumentId(id as u16)) {
                let event = MarketEvent::Gap;
                paper.market(now, instrument, &event);
                driver.handle(now, Input::Market { instrument, event });
            }
        }
        paper.connect(now, with.surfaces);
    }
    // The configuration may have changed it.
    if driver.engine().on_liquidation() != with.on_liquidation {
        driver.handle(now, Input::OnLiquidation(with.on_liquidation));
    }
    Ok(())
}

/// Latches what the file has and the engine has not.
fn latch<G: Guests>(
    now: Time,
    driver: &mut Driver<G>,
    latches: &LatchState,
    is_wanted: impl Fn(&Input<'_>) -> bool,
) {
    for input in latches.missing(driver.engine()) {
        if is_wanted(&input) {
            driver.handle(now, input);
        }
    }
}
