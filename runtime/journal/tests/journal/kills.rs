//! `kill -9` at random moments: no acknowledged record is lost.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use windvane_journal::{AppendError, Event, Options, Verdict, open, verify};

use super::support::{Guard, Rng, Source, child, child_folder, locked, times};

/// Appends until it is killed, and prints the events.
#[test]
fn appender() {
    let Some(folder) = child_folder() else {
        return; // runs only as the child process of the test below
    };
    let say = |line: String| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").unwrap();
        out.flush().unwrap();
    };
    let directory = locked(&folder);
    // The clock never advances, so only the file keeps the epochs apart.
    say(format!("epoch {}", directory.reserve_epoch(1_000).unwrap()));
    let (ready, recovered) = open(directory).unwrap();
    say(format!("recovered {:?}", recovered.verdict));
    let listener = std::sync::Arc::new(move |event| match event {
        Event::Durable { chain, .. } | Event::Rolled { chain, .. } => {
            say(format!("durable {} {:?}", chain.last_record, chain.hash));
        }
        Event::Failed(failure) => panic!("{failure}"),
        Event::Stalled { .. } | Event::Healthy { .. } | Event::Packed { .. } => {}
    });
    let options = Options {
        queue_blocks: 16,
        ..Options::default()
    };
    let mut journal = ready
        .begin(b"head", recovered.next, &options, listener)
        .unwrap();
    let mut source = Source::new(recovered.next, recovered.next.last_record + 3);
    loop {
        let mut block = source.block();
        while let Err(error) = journal.append(block) {
            let AppendError::Full { block: back } = error else {
                panic!("{error}");
            };
            block = *back;
            std::thread::yield_now();
        }
        while source.chain().next_block.is_multiple_of(40)
            && journal.roll(vec![1; 30_000], source.chain()).is_err()
        {
            std::thread::yield_now();
        }
    }
}

/// The output of a child until it was killed.
#[derive(Default)]
struct ChildOutput {
    epoch: Option<u64>,
    durable: Option<(u64, String)>,
}

/// Runs a child, kills it after this many lines, and reads its output to the end.
fn run_and_kill(folder: &Path, lines: usize) -> ChildOutput {
    let mut command = child("kills::appender", folder, "exec \"$@\"");
    let mut child = Guard(command.spawn().unwrap());
    let out = BufReader::new(child.0.stdout.take().unwrap());
    let mut output = ChildOutput::default();
    for (i, line) in out.lines().enumerate() {
        let line = line.unwrap();
        if i == lines {
            child.0.kill().unwrap();
        }
        if let Some(epoch) = line.strip_prefix("epoch ") {
            output.epoch = Some(epoch.parse().unwrap());
        } else if let Some(durable) = line.strip_prefix("durable ") {
            // The kill may have cut the last line. Then it does not count as acknowledged.
            if let Some((record, hash)) = durable.split_once(' ')
                && hash.ends_with(']')
            {
                output.durable = Some((record.parse().unwrap(), hash.to_owned()));
            }
        }
    }
    output
}

#[test]
fn no_acknowledged_record_is_lost_and_no_epoch_is_reused() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Rng(0x5eed);
    let mut epoch = 0;
    let mut durable = 0;
    let kills = times("WINDVANE_KILLS", 50);
    for kill in 0..kills {
        // The first lines come from the test runner and from the recovery.
        let lines = rng.below([6, 20, 150][kill % 3]);
        let output = run_and_kill(folder.path(), lines);
        if let Some(output) = output.epoch {
            assert!(output > epoch, "kill {kill}: epoch {output} after {epoch}");
            epoch = output;
        }
        let (_, recovered) = open(locked(folder.path())).unwrap();
        assert!(
            matches!(recovered.verdict, Verdict::Clean | Verdict::Fresh),
            "kill {kill}: {:?}",
            recovered.verdict
        );
        assert!(recovered.found.last_record >= durable, "kill {kill}");
        durable = recovered.found.last_record;
        let Some((record, hash)) = output.durable else {
            continue;
        };
        assert!(durable >= record, "kill {kill}: {durable} of {record}");
        let known = format!("{:?}", recovered.base.hash) == hash
            || recovered
                .blocks
                .into_iter()
                .any(|block| format!("{:?}", block.hash) == hash);
        assert!(known, "kill {kill}: the chain differs");
    }
    println!("{kills} kills, {durable} records, last epoch {epoch}");
    assert!(
        durable > 1_000,
        "{durable} records are too few to prove anything"
    );
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.problems, []);
    assert!(report.segments.len() > kills / 3);
}
