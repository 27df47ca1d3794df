//! The first moment of a run: what is latched, the strategies with what they saved, and what is to be
//! trusted. Everything in it happens at one time, for what the engine wants sent leaves at its end. A
//! simulated account would meet it later than its record says.

use windvane_model::forced::OnLiquidation;
use windvane_model::live::LiveInput;
use windvane_model::{Input, InstrumentId, MarketEvent, StrategyId, Surface, Time};

use crate::account::Account;
use crate::driver::Driver;
use crate::guests::Guests;
use crate::latches::LatchState;

/// What a run begins with.
#[derive(Debug)]
pub(crate) struct Begin<'a> {
    /// What is latched by the file beside the journal. A pause of another account is added.
    pub latches: &'a mut LatchState,
    /// What was left in the data folder is of another account.
    pub foreign: Option<Foreign<'a>>,
    /// What each strategy saved last.
    pub states: &'a [Option<Vec<u8>>],
    /// What follows a liquidation.
    pub on_liquidation: OnLiquidation,
    /// What is traded.
    pub surfaces: &'a [Surface],
    /// The market is watched by streams; a simulated account missed what they said before.
    pub is_streamed: bool,
}

/// A journal of another account, which the run goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign<'a> {
    /// In what the accounts differ, in words.
    pub difference: &'a str,
    /// What a person decides about it, in words.
    pub what_to_do: &'a str,
}

/// Begins a run at this time of the engine's clock. With what is of another account it begins paused:
/// its positions and states may be of nothing.
///
/// # Errors
/// A strategy refuses to begin, for this reason.
pub(crate) fn begin<G: Guests>(
    now: Time,
    driver: &mut Driver<G>,
    account: &mut Account,
    with: &mut Begin<'_>,
) -> Result<(), (StrategyId, String)> {
    if let Some(foreign) = with.foreign {
        let (difference, what_to_do) = (foreign.difference, foreign.what_to_do);
        tracing::error!("{difference}: it begins paused, and what it remembers may be of nothing");
        with.latches.pause(format!("{difference}; {what_to_do}"));
    }
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

#[cfg(test)]
mod tests {
    use windvane_engine::Engine;
    use windvane_model::config::EngineConfig;
    use windvane_model::latches::{Latch as Latched, Latches};
    use windvane_model::run_state::Latch;

    use super::*;
    use crate::guests::NoGuests;

    /// The latch of an engine after the first moment, and what its file says then.
    fn begun(file: Latches, foreign: Option<Foreign<'_>>) -> (Latch, Latched) {
        let engine = Engine::new(EngineConfig::default()).unwrap();
        let mut driver = Driver::new(engine, NoGuests, true);
        let mut latches = LatchState::new(file, std::iter::empty());
        let mut with = Begin {
            latches: &mut latches,
            foreign,
            states: &[],
            on_liquidation: OnLiquidation::default(),
            surfaces: &[],
            is_streamed: false,
        };
        begin(Time(1), &mut driver, &mut Account::Venue, &mut with).unwrap();
        latches.look(driver.engine());
        (driver.engine().latch(), latches.said().account.clone())
    }

    #[test]
    fn what_is_of_another_account_begins_paused_and_says_why() {
        assert_eq!(
            begun(Latches::default(), None),
            (Latch::None, Latched::Clear)
        );
        let foreign = Foreign {
            difference: "the key is another one",
            what_to_do: "resume it",
        };
        let reason = "the key is another one; resume it".to_owned();
        assert_eq!(
            begun(Latches::default(), Some(foreign)),
            (Latch::Paused, Latched::Paused { reason })
        );
        let account = Latched::Halted {
            reason: "a loss".to_owned(),
        };
        let file = Latches {
            account,
            ..Latches::default()
        };
        let reason = "a loss; the key is another one; resume it".to_owned();
        assert_eq!(
            begun(file, Some(foreign)),
            (Latch::Halted, Latched::Halted { reason })
        );
    }
}
