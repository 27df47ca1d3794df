//! Tests of the command line's structure.

use clap::{CommandFactory, Parser};

use super::*;

#[test]
fn the_command_line_is_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn backtest_arguments_can_be_repeated() {
    let line = "windvane backtest --config c.toml --data a.gz --data b.gz --set sim.seed=2 \
                --set a.b=c --out dir --cache cache --json";
    let arguments = Arguments::try_parse_from(line.split(' ')).unwrap();
    let Verb::Backtest(backtest) = arguments.verb else {
        panic!("not a backtest");
    };
    let shown = format!("{backtest:?}");
    for part in [
        "a.gz",
        "b.gz",
        "sim.seed=2",
        "a.b=c",
        "dir",
        "cache",
        "json: true",
    ] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
}

#[test]
fn a_wrong_argument_is_refused() {
    for line in [
        "windvane",
        "windvane backtest",
        "windvane backtest --config c.toml --colour",
        "windvane data generate --out x.gz --minutes 0",
        "windvane data generate --out x.gz --surface margin",
        "windvane data list",
        "windvane build",
    ] {
        let error = Arguments::try_parse_from(line.split(' ')).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}
