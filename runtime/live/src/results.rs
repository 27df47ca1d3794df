//! The results of a run on recordings: the same rows and summary as a backtest, from the same
//! tally.

use std::path::PathBuf;
use std::time::Instant;

use windvane_engine::Engine;
use windvane_model::{Input, Notice, Time};
use windvane_session::Driver;

use super::guests::LiveGuests;
use windvane_backtest::guests::HostedGuests;
use windvane_backtest::session::{Clock, Finished};
use windvane_backtest::summary::{self, Timing};
use windvane_backtest::tally::Tally;
use windvane_config::Config;
use windvane_recording::{Recording, RulesSource};
use windvane_report::{ResultError, Summary};

const SECOND_NS: i64 = 1_000_000_000;

/// Collects the results of a run on recordings.
pub struct Results {
    config: Config,
    recordings: Vec<Recording>,
    sources: Vec<RulesSource>,
    tally: Tally,
    next_second: Time,
    began: Instant,
}

impl Results {
    /// Starts empty. The files are written to `out`, if it is given.
    ///
    /// The files cannot be created.
    /// The files cannot be made.
    pub fn new(
        config: &Config,
        recordings: &[Recording],
        sources: &[RulesSource],
        out: Option<&PathBuf>,
        start: Time,
    ) -> Result<Self, ResultError> {
        let names = windvane_config::assembly::instrument_names(config);
        let mut tally = windvane_backtest::tally(config, &names, out.map(PathBuf::as_path))?;
        tally.start(start);
        Ok(Self {
            config: config.clone(),
            recordings: recordings.to_vec(),
            sources: sources.to_vec(),
            tally,
            next_second: Time((start.0.div_euclid(SECOND_NS) + 1) * SECOND_NS),
            began: Instant::now(),
        })
    }

    /// Counts a public event that goes to the engine.
    pub fn event(&mut self, input: &Input<'_>, feed_ns: i64) {
        self.tally.event(input);
        self.tally.feed_latency(feed_ns);
    }

    /// Counts a notice of the engine.
    pub fn notice(&mut self, engine: &Engine, notice: &Notice) {
        self.tally.notice(engine, notice);
    }

    /// The end of the current second.
    pub const fn next_second(&self) -> Time {
        self.next_second
    }

    /// Takes the sample at the end of a second.
    pub fn sample(&mut self, engine: &Engine) {
        self.tally.sample(engine, self.next_second);
        self.next_second = self.next_second.plus_ns(SECOND_NS);
    }

    /// Writes the files and returns the summary.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn finish(mut self, driver: Driver<LiveGuests>) -> Result<Summary, ResultError> {
        let wall = self.began.elapsed();
        let (engine, guests) = driver.into_parts();
        self.tally.end(&engine);
        let parts: Vec<_> = guests.into_parts().collect();
        for (tally, (_, events, _)) in self.tally.strategies.iter_mut().zip(&parts) {
            tally.events = *events;
        }
        let ended = parts.into_iter().map(|(guest, _, fault)| (guest, fault));
        let finished = Finished {
            engine,
            guests: HostedGuests::ended(ended),
            tally: self.tally,
            clock: Clock::default(),
        };
        let timing = Timing {
            wall,
            reading: std::time::Duration::ZERO,
        };
        let (config, recordings) = (&self.config, &self.recordings);
        let (writer, summary) =
            summary::summarize(config, recordings, &self.sources, finished, &timing);
        writer.finish(&summary)?;
        Ok(summary)
    }
}
