//! `docs/configuration.md`. The keys come from the types of `windvane_config`, the descriptions
//! from `configs/reference.toml`. A key without a description there is an error. Defaults and
//! permitted values come from what the parser accepts.

mod keys;
mod reference;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use windvane_config::{Config, ConfigError, Overrides};

use super::markdown::{code, table};
use reference::{Line, Section};

const REFERENCE: &str = include_str!("../../../../configs/reference.toml");

const INTRODUCTION: &str = "# Configuration

A configuration is one TOML file, which `--config` names. All sections are optional: a command requires only the
settings that it uses. An unknown key is an error. Relative paths are relative to the working directory.
[`configs/reference.toml`](../configs/reference.toml) has every setting in one file, and [`configs/`](../configs) has
ready configurations.

A later source overrides an earlier one:

1. the defaults,
2. the profile that `venue.profile` names, for the section `[venue]`,
3. the file,
4. environment variables `WINDVANE__SECTION__KEY`, such as `WINDVANE__SIM__SEED=2`,
5. `--set section.key=value`, such as `--set strategy.0.params.qty=0.02`,
6. other arguments of the command.

Decimals have at most 28 digits. They may be strings or numbers; both are read without rounding.

In the tables, *none* means that the setting has no value unless the configuration has one. An example follows it.
";

/// Sections whose defaults depend on other settings.
const DERIVED: &[(&str, &str)] = &[("venue.names", "derived from `venue.brand`")];

/// Names of keys whose values are other texts than the ones that the parser can name.
const SECTIONS_FREE: &[&str] = &["strategy.params"];

pub(super) fn page() -> Result<String, String> {
    let sections = reference::sections(REFERENCE)?;
    let keys = keys::all();
    described(&keys, &sections)?;
    let unchanged = parse(REFERENCE, None).map_err(|error| error.to_string())?;
    let mut text = INTRODUCTION.to_owned();
    for section in &sections {
        let title = if section.is_list {
            format!("[[{}]]", section.name)
        } else {
            format!("[{}]", section.name)
        };
        let _ = writeln!(text, "\n## {title}\n");
        if !section.about.is_empty() {
            let _ = writeln!(text, "{}\n", sentence(&section.about));
        }
        let rows: Result<Vec<[String; 5]>, String> = section
            .lines
            .iter()
            .map(|line| row(section, line, &unchanged))
            .collect();
        text.push_str(&table(
            ["Key", "Type", "Values", "Default", "Meaning"],
            &rows?,
        ));
        let prefix = format!("{}.", section.name);
        let unused = WITHOUT_EFFECT
            .iter()
            .filter_map(|key| key.strip_prefix(&prefix));
        let unused: Vec<String> = unused.map(code).collect();
        if !unused.is_empty() {
            let _ = writeln!(
                text,
                "\n{} are accepted, and have no effect.",
                unused.join(", ")
            );
        }
    }
    Ok(text)
}

/// Keys of the types that have no effect, because these surfaces have no streams and one way to
/// sign.
const WITHOUT_EFFECT: &[&str] = &[
    "venue.chain.ws",
    "venue.chain.user_ws",
    "venue.chain.api",
    "venue.rpc.ws",
    "venue.rpc.user_ws",
    "venue.rpc.api",
];

/// Every key must be described, or be part of a described one.
fn described(keys: &[String], sections: &[Section]) -> Result<(), String> {
    let known: BTreeSet<String> = sections
        .iter()
        .flat_map(|section| section.lines.iter().map(|line| section.full(line)))
        .collect();
    let is_part = |key: &str| {
        let mut parents = key.match_indices('.').map(|(at, _)| &key[..at]);
        known.contains(key) || parents.any(|parent| known.contains(parent))
    };
    let is_used = |key: &&String| !WITHOUT_EFFECT.contains(&key.as_str());
    let absent = keys.iter().filter(is_used).find(|key| !is_part(key));
    match absent {
        Some(key) => Err(format!(
            "`{key}` is missing in configs/reference.toml: add it with a comment"
        )),
        None => Ok(()),
    }
}

fn row(section: &Section, line: &Line, unchanged: &Config) -> Result<[String; 5], String> {
    let key = section.full(line);
    let rules = rules(section, &key);
    let (kind, values) = type_and_values(&rules);
    let value = code(&line.value);
    let derived = DERIVED.iter().find(|(name, _)| *name == section.name);
    let no_default = line.comment.contains("no default");
    let default = match without(line) {
        _ if line.is_alternative => format!("none; {value}"),
        Err(ConfigError::Value { rule, .. }) if rule.contains("add it") => {
            format!("required; {value}")
        }
        Err(error) => return Err(error.to_string()),
        Ok(config) if format!("{config:?}") == format!("{unchanged:?}") => value,
        Ok(_) if no_default => format!("none; {value}"),
        Ok(_) => match derived {
            Some((_, from)) => format!("{from}; {value}"),
            None if section.has_examples() => format!("none; {value}"),
            None => {
                return Err(format!(
                    "`{key}` in configs/reference.toml is not the default, and its comment does \
                     not say \"no default\""
                ));
            }
        },
    };
    if no_default && !default.starts_with("none") {
        return Err(format!(
            "`{key}` has a default, but its comment says \"no default\""
        ));
    }
    let meaning = line.comment.replace("; no default", "");
    if meaning.is_empty() {
        return Err(format!("`{key}` in configs/reference.toml has no comment"));
    }
    let begin = meaning.split([':', ' ']).next().unwrap_or_default();
    let meaning = if values.contains(&code(begin)) {
        stopped(&meaning)
    } else {
        sentence(&meaning)
    };
    Ok([code(&line.key), kind, values, default, meaning])
}

/// The type of a value, and the permitted values, from what the parser says about wrong ones.
fn type_and_values(rules: &[String]) -> (String, String) {
    let Some((first, rest)) = rules.split_first() else {
        return ("true or false".to_owned(), String::new());
    };
    if let Some(words) = first.strip_prefix("one of ") {
        return ("word".to_owned(), words.replace('"', "`"));
    }
    if let Some((sources, _)) = first.split_once(" (the configuration never") {
        let sources = sources.replace(" or {", ", {").replace("}, {", "}`, `{");
        return ("secret".to_owned(), code(sources));
    }
    let kind = first.split(" such as").next().unwrap_or(first);
    let kind = kind.strip_suffix(" as a string").unwrap_or(kind);
    let kind = match rest {
        [] => kind,
        // The permitted range says more than the type's own.
        _ => kind.strip_suffix(", 0 or more").unwrap_or(kind),
    };
    let kind = kind.strip_prefix("a ").unwrap_or(kind);
    let values = rest
        .iter()
        .map(|rule| rule.strip_prefix("must ").unwrap_or(rule));
    let values: Vec<&str> = values.collect();
    (kind.to_owned(), values.join("; "))
}

/// The reference without one line.
fn without(line: &Line) -> Result<Config, ConfigError> {
    let rest = REFERENCE.lines().enumerate();
    let rest = rest.filter(|(number, _)| *number != line.number);
    let rest: Vec<&str> = rest.map(|(_, text)| text).collect();
    parse(&rest.join("\n"), None)
}

fn parse(text: &str, set: Option<String>) -> Result<Config, ConfigError> {
    let overrides = Overrides {
        env: Vec::new(),
        set: set.into_iter().collect(),
    };
    Config::parse(text, "configs/reference.toml", &overrides)
}

/// Values that a setting may refuse: of another type, out of range, or empty. The first one shows
/// the type.
const PROBES: &[&str] = &["true", "\"?\"", "-1", "0", "2", "99999999999", "\"\"", "[]"];

/// The rules that the parser names for wrong values of a setting, without repetitions.
fn rules(section: &Section, key: &str) -> Vec<String> {
    let path = if section.is_list {
        key.replacen('.', ".0.", 1)
    } else {
        key.to_owned()
    };
    let mut rules: Vec<String> = Vec::new();
    if SECTIONS_FREE.contains(&key) {
        return vec!["a table".to_owned()];
    }
    for probe in PROBES {
        let refused = parse(REFERENCE, Some(format!("{path}={probe}")));
        let Err(ConfigError::Value {
            rule, key: refused, ..
        }) = refused
        else {
            continue;
        };
        if refused != path && !refused.starts_with(&format!("{path}.")) {
            continue;
        }
        let rule = rule.strip_prefix("must be ").unwrap_or(&rule);
        let rule = rule.split(" (did you mean").next().unwrap_or(rule);
        let rule = rule.split(", not a").next().unwrap_or(rule).to_owned();
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

/// The text with an upper-case first letter and a full stop.
fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut letters = text.chars();
    let Some(first) = letters.next() else {
        return String::new();
    };
    stopped(&format!("{}{}", first.to_uppercase(), letters.as_str()))
}

/// The text with a full stop.
fn stopped(text: &str) -> String {
    let stop = if text.ends_with('.') { "" } else { "." };
    format!("{text}{stop}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_a_description_is_refused() {
        let sections = reference::sections("[run]\nmode = \"paper\" # a word\n").unwrap();
        let key = |text: &str| [text.to_owned()];
        assert!(described(&key("run.mode"), &sections).is_ok());
        assert!(described(&key("run.mode.part"), &sections).is_ok());
        let refused = described(&key("run.data_dir"), &sections).unwrap_err();
        assert!(refused.contains("`run.data_dir` is missing"), "{refused}");
    }

    #[test]
    fn keys_come_from_the_types() {
        let keys = keys::all();
        for key in [
            "run.mode",
            "venue.futures.api",
            "strategy.limits.memory_mb",
            "sim.fees.maker",
        ] {
            assert!(
                keys.iter().any(|known| known == key),
                "{key} is not in {keys:?}"
            );
        }
    }
}
