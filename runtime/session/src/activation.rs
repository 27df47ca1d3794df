//! The begin phase of a run. It applies the kill switches, starts the strategies with their saved
//! states and reports what can be trusted.
//!
//! The whole phase happens at one engine time, because the requests of the engine leave at its end.
//! If the time moved, a simulated account would receive the requests later than their records say.

use windvane_model::forced::OnLiquidation;
use windvane_model::live::LiveInput;
use windvane_model::{Input, InstrumentId, MarketEvent, StrategyId, Surface, Time};

use crate::account::Account;
use crate::driver::Driver;
use crate::guests::Guests;
use crate::kill_switch::KillSwitchState;

/// Inputs of the begin phase.
#[derive(Debug)]
pub(crate) struct Activation<'a> {
    /// The content of the kill switch file. If the data folder belongs to another account, a pause
    /// is added.
    pub kill_switch: &'a mut KillSwitchState,
    /// Set if the data folder belongs to another account.
    pub foreign: Option<Foreign<'a>>,
    /// The last saved state of each strategy.
    pub states: &'a [Option<Vec<u8>>],
    /// The strategies that started before with the same module and parameters.
    pub known: &'a [StrategyId],
    /// The reaction to a liquidation.
    pub on_liquidation: OnLiquidation,
    /// The surfaces that are traded.
    pub surfaces: &'a [Surface],
    /// Public data comes from streams. A simulated account missed the events before the connection.
    pub is_streamed: bool,
}

/// A journal of another account. The run continues with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign<'a> {
    /// How the accounts differ, for people.
    pub difference: &'a str,
    /// The operator's options, for people.
    pub what_to_do: &'a str,
}

/// Runs the begin phase at this time of the engine's clock. With the journal of another account,
/// the run begins paused: its positions and states may not exist on this account.
///
/// # Errors
/// The first strategy that refuses its parameters or instruments, with its reason.
pub(crate) fn activate<G: Guests>(
    now: Time,
    driver: &mut Driver<G>,
    account: &mut Account,
    with: &mut Activation<'_>,
) -> Result<(), (StrategyId, String)> {
    if let Some(foreign) = with.foreign {
        let (difference, what_to_do) = (foreign.difference, foreign.what_to_do);
        tracing::error!(
            "{difference}: the run begins paused, because the saved positions and states may \
             belong to another account"
        );
        with.kill_switch
            .pause(format!("{difference}; {what_to_do}"));
    }
    // Quarantines apply before the strategies start, so that a quarantined strategy is not started.
    // Inputs that send events to strategies wait until the strategies have started.
    apply_kill_switch(now, driver, with.kill_switch, |input| {
        matches!(input, Input::Fault { .. })
    });
    if !account.is_of_venue() {
        // A simulated account is a function of the journal. If the record of an order is lost, the
        // order never existed. So orders need not wait for the disk.
        driver.durable(now, u64::MAX);
    }
    driver.start(now, with.states, with.known)?;
    apply_kill_switch(now, driver, with.kill_switch, |_| true);
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
    // The configuration may have changed since the journal was written.
    if driver.engine().on_liquidation() != with.on_liquidation {
        driver.handle(now, Input::OnLiquidation(with.on_liquidation));
    }
    Ok(())
}

/// Applies each kill switch that the file has and the engine lacks, if `is_wanted` accepts it.
fn apply_kill_switch<G: Guests>(
    now: Time,
    driver: &mut Driver<G>,
    kill_switch: &KillSwitchState,
    is_wanted: impl Fn(&Input<'_>) -> bool,
) {
    for input in kill_switch.missing(driver.engine()) {
        if is_wanted(&input) {
            driver.handle(now, input);
        }
    }
}

#[cfg(test)]
mod tests {
    use windvane_engine::Engine;
    use windvane_model::config::EngineConfig;
    use windvane_model::kill_switch::{StoredKillSwitch, StoredKillSwitches};
    use windvane_model::run_state::KillSwitch;

    use super::*;
    use crate::guests::NoGuests;

    /// The engine's kill switch and the content of the kill switch file after the begin phase.
    fn activated(
        file: StoredKillSwitches,
        foreign: Option<Foreign<'_>>,
    ) -> (KillSwitch, StoredKillSwitch) {
        let engine = Engine::new(EngineConfig::default()).unwrap();
        let mut driver = Driver::new(engine, NoGuests, true);
        let mut kill_switch = KillSwitchState::new(file, std::iter::empty());
        let mut with = Activation {
            kill_switch: &mut kill_switch,
            foreign,
            states: &[],
            known: &[],
            on_liquidation: OnLiquidation::default(),
            surfaces: &[],
            is_streamed: false,
        };
        activate(Time(1), &mut driver, &mut Account::Venue, &mut with).unwrap();
        kill_switch.update_from(driver.engine());
        (
            driver.engine().kill_switch(),
            kill_switch.file_content().account.clone(),
        )
    }

    #[test]
    fn a_run_with_a_foreign_journal_begins_paused_with_a_reason() {
        assert_eq!(
            activated(StoredKillSwitches::default(), None),
            (KillSwitch::Clear, StoredKillSwitch::Clear)
        );
        let foreign = Foreign {
            difference: "the key is another one",
            what_to_do: "resume it",
        };
        let reason = "the key is another one; resume it".to_owned();
        assert_eq!(
            activated(StoredKillSwitches::default(), Some(foreign)),
            (KillSwitch::Paused, StoredKillSwitch::Paused { reason })
        );
        let account = StoredKillSwitch::Halted {
            reason: "a loss".to_owned(),
        };
        let file = StoredKillSwitches {
            account,
            ..StoredKillSwitches::default()
        };
        let reason = "a loss; the key is another one; resume it".to_owned();
        assert_eq!(
            activated(file, Some(foreign)),
            (KillSwitch::Halted, StoredKillSwitch::Halted { reason })
        );
    }
}
