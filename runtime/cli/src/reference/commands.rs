//! `docs/commands.md`, from the definition of the command line.

use std::fmt::Write as _;

use clap::builder::Str;
use clap::builder::ValueRange;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::markdown::{code, table};
use crate::Arguments;

const INTRODUCTION: &str = "# Commands

`windvane COMMAND [OPTIONS]` runs one command. Results go to stdout. Logs, progress and errors go to stderr.
`windvane COMMAND --help` prints the same descriptions. The settings that `--config` and `--set` name are described in
[configuration.md](configuration.md), and the routes of `windvane call` in [interface/routes.md](interface/routes.md).

";

/// Environment variables that the program reads, besides those that a configuration names. A test
/// compares the names with the sources.
pub(super) const VARIABLES: &[(&str, &str)] = &[
    (
        "WINDVANE_LOG",
        "Log filter, such as `debug` or `windvane=debug,info`. Default: `info` for `run`, `warn` for other commands.",
    ),
    (
        "WINDVANE__SECTION__KEY",
        "Overrides a setting of the configuration: `WINDVANE__SIM__SEED=2` sets `sim.seed`. `--set` overrides it.",
    ),
    (
        "WINDVANE_TOOLCHAIN",
        "Compiler for strategies: `installed` (the one on `PATH`), `rustup` (adds the target), `debian` (a private \
         toolchain from Debian's packages), or `auto`, the default, which tries them in this order.",
    ),
    (
        "XDG_CACHE_HOME",
        "Folder of the caches. Private toolchains, built modules and decoded recordings are in its subfolder \
         `windvane`.",
    ),
    (
        "HOME",
        "Home folder. The caches are in `~/.cache/windvane` if `XDG_CACHE_HOME` is not set.",
    ),
    (
        "CARGO_HOME",
        "Cargo's folder. Its path is removed from the modules that are built.",
    ),
    (
        "PATH",
        "Where `cargo`, `rustc`, `rustup` and a linker for WebAssembly are searched.",
    ),
    (
        "SSL_CERT_FILE",
        "File of certificates for the downloads of a build, if the system's are elsewhere.",
    ),
    ("SSL_CERT_DIR", "The same for a folder of certificates."),
    (
        "NOTIFY_SOCKET",
        "Set by the service manager (systemd): `run` reports readiness, status and stop there.",
    ),
    (
        "WATCHDOG_USEC",
        "Set by the service manager: `run` sends a sign of life within this time.",
    ),
    (
        "WATCHDOG_PID",
        "Set by the service manager: the process that `WATCHDOG_USEC` is meant for.",
    ),
    (
        "CREDENTIALS_DIRECTORY",
        "Set by the service manager: the folder of the secrets that a configuration names as `{ credential = \"NAME\" }`.",
    ),
    (
        "RUNTIME_DIRECTORY",
        "Set by the service manager: a folder for sockets, which a confined `run` may write.",
    ),
    (
        "WINDVANE_SECRETS_FD",
        "Set by a command for itself when it erases secrets from its environment: the descriptor that has them.",
    ),
    (
        "TMPDIR",
        "Folder of temporary files. A build of a source folder gets one of its own.",
    ),
    (
        "RUSTUP_HOME",
        "Rustup's folder. A confined `run` that builds a source folder may use it.",
    ),
];

/// One command with the words that select it.
struct Verb<'a> {
    words: Vec<&'a str>,
    command: &'a Command,
}

pub(super) fn page() -> String {
    let mut root = Arguments::command();
    root.build();
    let mut verbs = Vec::new();
    collect(&root, &mut Vec::new(), &mut verbs);
    let (hidden, shown): (Vec<_>, Vec<_>) =
        verbs.iter().partition(|verb| verb.command.is_hide_set());
    let mut text = INTRODUCTION.to_owned();
    let rows: Vec<[String; 2]> = shown
        .iter()
        .map(|verb| {
            let name = verb.words.join(" ");
            let anchor = name.replace(' ', "-");
            let link = format!("[`windvane {name}`](#windvane-{anchor})");
            [link, about(verb.command)]
        })
        .collect();
    text.push_str(&table(["Command", "Description"], &rows));
    exit_codes(&root, &mut text);
    variables(&mut text);
    for verb in shown {
        describe(&root, verb, &mut text);
    }
    text.push_str(
        "\n## Internal commands\n\nNobody needs to call them. They may change at any time.\n\n",
    );
    for verb in hidden {
        let _ = writeln!(
            text,
            "- `windvane {}`: {}.",
            verb.words.join(" "),
            about(verb.command)
        );
    }
    text
}

/// The commands without subcommands, in the order of the help.
fn collect<'a>(command: &'a Command, words: &mut Vec<&'a str>, verbs: &mut Vec<Verb<'a>>) {
    for one in command.get_subcommands() {
        if one.get_name() == "help" {
            continue;
        }
        words.push(one.get_name());
        if one.has_subcommands() {
            collect(one, words, verbs);
        } else {
            verbs.push(Verb {
                words: words.clone(),
                command: one,
            });
        }
        words.pop();
    }
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    about.unwrap_or_default()
}

fn exit_codes(root: &Command, text: &mut String) {
    let after = root.get_after_help().map(ToString::to_string);
    let after = after.unwrap_or_default();
    let list = after.strip_prefix("Exit codes: ").unwrap_or_default();
    let list = list.split_once(". ").map_or(list, |(list, _)| list);
    let codes = list.split(", ").filter_map(|one| one.split_once(' '));
    let rows: Vec<[String; 2]> = codes
        .map(|(number, meaning)| [number.to_owned(), meaning.to_owned()])
        .collect();
    text.push_str("\n## Exit codes\n\nThey are the same for all commands.\n\n");
    text.push_str(&table(["Code", "Meaning"], &rows));
}

fn variables(text: &mut String) {
    text.push_str(
        "\n## Environment variables\n\nA configuration may name further variables, as sources of secrets: \
         `api_key = { env = \"NAME\" }`.\n\n",
    );
    let rows: Vec<[String; 2]> = VARIABLES
        .iter()
        .map(|(name, meaning)| [code(name), (*meaning).to_owned()])
        .collect();
    text.push_str(&table(["Variable", "Meaning"], &rows));
}

fn describe(root: &Command, verb: &Verb<'_>, text: &mut String) {
    let name = verb.words.join(" ");
    let usage = verb.command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let _ = write!(
        text,
        "\n## windvane {name}\n\n{}.\n\n```text\n{usage}\n```\n",
        about(verb.command)
    );
    let arguments = verb.command.get_arguments();
    let rows: Vec<[String; 3]> = arguments
        .filter(|one| !one.is_hide_set() && one.get_id() != "help" && one.get_id() != "version")
        .map(|argument| row(root, verb, argument))
        .collect();
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&table(["Argument", "Default", "Meaning"], &rows));
    }
}

fn row(root: &Command, verb: &Verb<'_>, argument: &Arg) -> [String; 3] {
    let defaults = argument.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|value| code(value.display())).collect();
    let default = if argument.is_required_set() {
        "required".to_owned()
    } else if takes_value(argument) {
        defaults.join(", ")
    } else {
        String::new()
    };
    let mut notes = vec![
        argument
            .get_help()
            .map_or(String::new(), ToString::to_string),
    ];
    let values = argument.get_possible_values();
    if takes_value(argument) && !values.is_empty() {
        let values: Vec<String> = values.iter().map(|value| code(value.get_name())).collect();
        notes.push(format!("one of {}", values.join(", ")));
    }
    notes.extend(range(root, verb, argument));
    let is_repeatable = matches!(argument.get_action(), ArgAction::Append);
    if is_repeatable && !argument.is_positional() && !notes[0].contains("can be repeated") {
        notes.push("can be repeated".to_owned());
    }
    let needed = needed(root, verb, argument);
    if !needed.is_empty() {
        notes.push(format!("needs {}", needed.join(", ")));
    }
    let conflicts = verb.command.get_arg_conflicts_with(argument);
    let conflicts: Vec<String> = conflicts.iter().map(|other| code(flag(other))).collect();
    if !conflicts.is_empty() {
        notes.push(format!("not with {}", conflicts.join(", ")));
    }
    [code(spelled(argument)), default, notes.join("; ")]
}

fn takes_value(argument: &Arg) -> bool {
    argument
        .get_num_args()
        .is_some_and(|count: ValueRange| count.takes_values())
}

/// How an option is named: `--json`.
fn flag(argument: &Arg) -> String {
    match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => spelled(argument),
    }
}

/// The argument with the names of its values: `--config FILE`, `[NAME]`.
fn spelled(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let values: Vec<&str> = values.iter().map(Str::as_str).collect();
    let values = values.join(" ");
    match argument.get_long() {
        Some(long) if takes_value(argument) => format!("--{long} {values}"),
        Some(long) => format!("--{long}"),
        None if argument.is_required_set() => values,
        None => format!("[{values}]"),
    }
}

/// Parses a command line with only this argument.
fn attempt(root: &Command, verb: &Verb<'_>, argument: &Arg, value: &str) -> Option<clap::Error> {
    let mut line = vec!["windvane".to_owned()];
    line.extend(verb.words.iter().map(|word| (*word).to_owned()));
    match argument.get_long() {
        Some(long) if takes_value(argument) => line.push(format!("--{long}={value}")),
        Some(long) => line.push(format!("--{long}")),
        None => line.push(value.to_owned()),
    }
    root.clone().try_get_matches_from(line).err()
}

/// The permitted numbers, which clap states only in its error.
fn range(root: &Command, verb: &Verb<'_>, argument: &Arg) -> Option<String> {
    let probes = ["0", "99999999999"].into_iter();
    let mut errors = probes.filter_map(|value| attempt(root, verb, argument, value));
    errors.find_map(|error| {
        let text = error.to_string();
        let (_, range) = text.split_once(" is not in ")?;
        let range = range.lines().next()?;
        Some(match range.split_once("..=") {
            Some((from, to)) if to.len() > 9 => format!("at least {from}"),
            Some((from, to)) => format!("from {from} to {to}"),
            None => format!("at least {}", range.trim_end_matches("..")),
        })
    })
}

/// The arguments that this one requires, besides those that the command always requires.
fn needed(root: &Command, verb: &Verb<'_>, argument: &Arg) -> Vec<String> {
    let always = |id: &str| {
        let of_verb = verb.command.get_arguments();
        let required = of_verb.filter(|other| other.is_required_set());
        required
            .into_iter()
            .any(|other| id.starts_with(&*shown(other)))
    };
    let values = ["1", "x", "spot"].into_iter();
    let mut errors = values.filter_map(|value| attempt(root, verb, argument, value));
    let missing = errors.find(|error| error.kind() == ErrorKind::MissingRequiredArgument);
    let missing = missing.and_then(|error| match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => Some(names.clone()),
        _ => None,
    });
    let missing = missing.unwrap_or_default();
    let missing = missing.iter().filter(|name| !always(name));
    missing
        .map(|name| code(name.split([' ', '<']).next().unwrap_or(name)))
        .collect()
}

/// How clap names an argument in its errors, without the values of options.
fn shown(argument: &Arg) -> String {
    match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => argument.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Names in sources that read the environment, but which the program only sets, removes or uses
    /// in tests.
    const NOT_READ: &[&str] = &["CARGO", "RUSTC", "NAME"];
    const NOT_READ_PREFIXES: &[&str] = &[
        "CARGO_",
        "RUST",
        "MAKEFLAGS",
        "MFLAGS",
        "NUM_JOBS",
        "LD_",
        "WINDVANE_TEST_",
    ];

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("tests") {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn the_page_names_every_environment_variable() {
        let mut files = Vec::new();
        let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for entry in std::fs::read_dir(runtime).unwrap() {
            let folder = entry.unwrap().path().join("src");
            if folder.is_dir() {
                sources(&folder, &mut files);
            }
        }
        let mut read = BTreeSet::new();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let reads = ["env::var(", "env::var_os("];
            if !reads.iter().any(|call| code.contains(call)) || file.ends_with("tests.rs") {
                continue;
            }
            let is_name = |text: &&str| {
                text.len() > 3 && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
            };
            let literals = code.split('"').skip(1).step_by(2).filter(is_name);
            read.extend(literals.map(str::to_owned));
        }
        let is_known = |name: &String| VARIABLES.iter().any(|(known, _)| known == name);
        let is_set = |name: &String| {
            NOT_READ.contains(&name.as_str())
                || NOT_READ_PREFIXES
                    .iter()
                    .any(|prefix| name.starts_with(prefix))
        };
        let missing: Vec<_> = read
            .iter()
            .filter(|name| !is_known(name) && !is_set(name))
            .collect();
        assert!(
            missing.is_empty(),
            "describe these in VARIABLES: {missing:?}"
        );
        for (name, _) in VARIABLES
            .iter()
            .filter(|(name, _)| *name != "WINDVANE__SECTION__KEY")
        {
            assert!(read.contains(*name), "no source reads {name}");
        }
    }

    #[test]
    fn exit_codes_come_from_the_help() {
        let text = page();
        for code in ["| 0 | success |", "| 4 | verification failed |"] {
            assert!(text.contains(code), "{text}");
        }
    }
}
