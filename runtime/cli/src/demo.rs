//! `windvane demo`: from nothing to a report, without an argument.

use std::path::{Path, PathBuf};

use clap::Args;

use super::Failure;
use super::backtest::{check_quarantine, play, print_summary};
use super::data::generate;
use windvane_config::{Config, InstrumentName, Overrides};

/// The configuration that the demo runs; it is compiled in, so that the binary needs no folder.
const CONFIG: &str = include_str!("../../../configs/demo.toml");
/// The source tree that this binary was built from.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Length of the generated session.
const MINUTES: u32 = 30;
const SEED: u64 = 1;

#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Folder for the generated session and the results
    #[arg(long, value_name = "DIR", default_value = "var/demo")]
    out: PathBuf,
    /// Print the summary as JSON and nothing else
    #[arg(long)]
    json: bool,
}

impl Demo {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut config = Config::parse(CONFIG, "demo.toml", &Overrides::from_process(Vec::new()))?;
        "demo".clone_into(&mut config.name);
        for strategy in &mut config.strategies {
            strategy.module = source_of(&strategy.module)?;
        }
        let session = self.out.join("session.gz");
        let instrument = first_instrument(&config)?;
        eprintln!(
            "generating {MINUTES} minutes of {instrument} into {}",
            session.display()
        );
        generate(&session, &instrument, SEED, MINUTES)?;
        config.backtest.data = vec![session];
        config.backtest.cache = Some(self.out.join("cache"));
        let summary = play(&config, Some(&self.out))?;
        print_summary(&summary, Some(&self.out), self.json)?;
        check_quarantine(&summary)
    }
}

fn first_instrument(config: &Config) -> Result<InstrumentName, Failure> {
    let first = config
        .strategies
        .first()
        .and_then(|strategy| strategy.instruments.first());
    first
        .cloned()
        .ok_or_else(|| Failure::Usage("the demo has no strategy left to run".to_owned()))
}

/// A sample strategy's folder: below the working directory, else in the sources of this binary.
fn source_of(module: &Path) -> Result<PathBuf, Failure> {
    let built_from = Path::new(SOURCES).join(module);
    [module.to_owned(), built_from]
        .into_iter()
        .find(|dir| dir.join("Cargo.toml").is_file())
        .ok_or_else(|| {
            Failure::Usage(format!(
                "the sample strategy {} is neither below this folder nor where windvane was built; \
                 run the demo in the repository",
                module.display()
            ))
        })
}
