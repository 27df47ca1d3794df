//! `windvane demo`: generates data, runs two strategies and writes a report, without any argument.

use std::path::{Path, PathBuf};

use clap::Args;

use super::Failure;
use super::backtest::{check_quarantine, play, print_summary};
use super::data::generate;
use super::printing::note;
use windvane_config::{Config, InstrumentName, Overrides};

/// The configuration of the demo. It is compiled in, so that the binary needs no folder.
const CONFIG: &str = include_str!("../../../configs/demo.toml");
/// The source tree from which this binary was built.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Length of the generated session, minutes.
const MINUTES: u32 = 30;
const SEED: u64 = 1;

#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Folder for the generated session and the results
    #[arg(long, value_name = "DIR", default_value = "var/demo")]
    out: PathBuf,
    /// Print only the summary, as JSON
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
        note(format!(
            "generating {MINUTES} minutes of {instrument} into {}",
            session.display()
        ));
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
    first.cloned().ok_or_else(|| {
        Failure::Usage("the demo's configuration has no strategy with an instrument".to_owned())
    })
}

/// The folder of a sample strategy: below the working directory, or in the sources of this binary.
fn source_of(module: &Path) -> Result<PathBuf, Failure> {
    let built_from = Path::new(SOURCES).join(module);
    [module.to_owned(), built_from]
        .into_iter()
        .find(|dir| dir.join("Cargo.toml").is_file())
        .ok_or_else(|| {
            Failure::Usage(format!(
                "cannot find the sample strategy {} below this folder or where windvane was built; \
                 run the demo in the root of the repository",
                module.display()
            ))
        })
}
