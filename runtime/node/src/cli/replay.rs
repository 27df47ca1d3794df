//! `windvane replay`: a journal again.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{Failure, print_line};
use crate::live::replay;

#[derive(Debug, Args)]
pub(super) struct Replay {
    /// Data folder of an instance that does not run
    #[arg(value_name = "DIR")]
    data_dir: PathBuf,
    /// Compare what comes out with what was recorded, to the byte
    #[arg(long, required = true)]
    verify: bool,
    /// Print JSON and nothing else
    #[arg(long)]
    json: bool,
}

impl Replay {
    pub(super) fn run(self) -> Result<(), Failure> {
        if !self.data_dir.join("journal").is_dir() {
            return Err(Failure::Usage(format!(
                "{} holds no journal: name the run.data_dir of an instance",
                self.data_dir.display()
            )));
        }
        let verified = replay::verify(&self.data_dir).map_err(Failure::failed)?;
        let difference = verified.difference.as_ref();
        if self.json {
            let shown = json!({
                "equal": difference.is_none(),
                "segments": verified.segments,
                "blocks": verified.blocks,
                "records": verified.records,
                "difference": difference.map(|(segment, difference)| json!({
                    "segment": segment,
                    "block": difference.block,
                    "record": difference.record,
                    "recorded": difference.recorded,
                    "made": difference.made,
                })),
            });
            print_line(&shown.to_string())?;
        } else if difference.is_none() {
            print_line(&format!(
                "equal: {} records in {} blocks of {} segments",
                verified.records, verified.blocks, verified.segments
            ))?;
        }
        match difference {
            None => Ok(()),
            Some((segment, difference)) => Err(Failure::Differs(format!(
                "segment {segment:08x}, {difference}"
            ))),
        }
    }
}
