//! The configuration before it is converted to typed settings: a tree of values. Each value knows
//! where it was set. Overrides are applied to this tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Place};

/// Prefix of environment variables that override settings.
const ENV_PREFIX: &str = "WINDVANE__";

/// A value and where it was set.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) place: Place,
}

/// A TOML value. Numbers stay text, so that decimals are read without rounding.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    /// An integer in decimal digits.
    Integer(String),
    Float(String),
    Boolean(bool),
    Datetime(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key of a table. Entries keep the order of the file.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) node: Node,
}

impl Value {
    /// The kind of the value, for error messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Boolean(_) => "a boolean",
            Self::Datetime(_) => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// The value as TOML, or `None` if it is long.
    pub(super) fn shown(&self) -> Option<String> {
        const SHORT: usize = 60;
        let text = match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Integer(text) | Self::Float(text) | Self::Datetime(text) => text.clone(),
            Self::Boolean(value) => value.to_string(),
            Self::List(_) | Self::Table(_) => return None,
        };
        (text.len() <= SHORT).then_some(text)
    }
}

impl Node {
    /// The value of a table's key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Value::Table(entries) = &self.value else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key == key)?;
        Some(&entry.node)
    }

    /// [`Self::get`], to change the value.
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        let Value::Table(entries) = &mut self.value else {
            return None;
        };
        let entry = entries.iter_mut().find(|entry| entry.key == key)?;
        Some(&mut entry.node)
    }

    /// The place where the value at a dotted path was set. If the path does not exist, the place of
    /// the innermost existing table or list on it.
    pub(super) fn place_of(&self, path: &str) -> Place {
        let mut at = self;
        for step in path.split('.') {
            let next = match &at.value {
                Value::Table(entries) => entries
                    .iter()
                    .find(|entry| entry.key == step)
                    .map(|entry| &entry.node),
                Value::List(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
                _ => None,
            };
            match next {
                Some(node) => at = node,
                None => break,
            }
        }
        at.place.clone()
    }
}

/// Parses a document. Error messages call it `file`.
pub(super) fn parse(text: &str, file: &str) -> Result<Node, ConfigError> {
    // Counted once: every value has a place, and a file may have very many.
    let line_ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line_of = |offset: usize| Place::Line {
        file: file.to_owned(),
        line: 1 + line_ends.partition_point(|end| *end < offset),
    };
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        place: line_of(error.span().map_or(0, |span| span.start)),
        reason: error.message().replace('\n', ", "),
    })?;
    let place = line_of(0);
    let value = table_of(table.into_inner(), &|span| line_of(span.start));
    Ok(Node { value, place })
}

type PlaceOf<'a> = dyn Fn(std::ops::Range<usize>) -> Place + 'a;

fn table_of(table: DeTable<'_>, place_of: &PlaceOf<'_>) -> Value {
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entry = |(key, value): (Spanned<_>, Spanned<DeValue<'_>>)| Entry {
        place: place_of(key.span()),
        node: node_of(value, place_of),
        key: std::borrow::Cow::<str>::into_owned(key.into_inner()),
    };
    Value::Table(entries.into_iter().map(entry).collect())
}

fn node_of(value: Spanned<DeValue<'_>>, place_of: &PlaceOf<'_>) -> Node {
    let place = place_of(value.span());
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(integer) => Value::Integer(
            i128::from_str_radix(integer.as_str(), integer.radix())
                .map_or_else(|_| integer.as_str().to_owned(), |value| value.to_string()),
        ),
        DeValue::Float(float) => Value::Float(float.as_str().to_owned()),
        DeValue::Boolean(value) => Value::Boolean(value),
        DeValue::Datetime(value) => Value::Datetime(value.to_string()),
        DeValue::Array(list) => Value::List(
            list.into_iter()
                .map(|item| node_of(item, place_of))
                .collect(),
        ),
        DeValue::Table(table) => table_of(table, place_of),
    };
    Node { value, place }
}

/// Parses the value of an override as TOML. Text that is not TOML becomes a string.
fn override_value(text: &str, place: &Place) -> Node {
    let document = format!("value = {text}");
    let parsed = DeTable::parse(&document).ok().map(Spanned::into_inner);
    match parsed {
        Some(table) if table.len() == 1 => {
            let value = table.into_iter().next().map(|(_, value)| value);
            value.map(|value| node_of(value, &|_| place.clone()))
        }
        _ => None,
    }
    .unwrap_or_else(|| Node {
        value: Value::Text(text.to_owned()),
        place: place.clone(),
    })
}

/// Applies `WINDVANE__SECTION__KEY` variables to the tree, in the order of their names.
pub(super) fn apply_env(
    root: &mut Node,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<(), ConfigError> {
    let mut overrides: Vec<_> = variables
        .filter(|(name, _)| name.starts_with(ENV_PREFIX))
        .collect();
    overrides.sort();
    for (name, text) in overrides {
        let path: Vec<String> = name[ENV_PREFIX.len()..]
            .split("__")
            .map(str::to_ascii_lowercase)
            .collect();
        let place = Place::Env(name);
        let node = override_value(&text, &place);
        insert(root, &path, node)?;
    }
    Ok(())
}

/// Applies one `--set key.path=value` to the tree.
pub(super) fn apply_set(root: &mut Node, argument: &str) -> Result<(), ConfigError> {
    let Some((key, text)) = argument.split_once('=') else {
        return Err(ConfigError::Override {
            place: Place::Argument(format!("--set {argument}")),
            reason: "has no value; write --set key.path=value".to_owned(),
        });
    };
    let key = key.trim();
    let place = Place::Argument(format!("--set {key}"));
    let path: Vec<String> = key
        .split('.')
        .map(|part| part.trim_matches('"').to_owned())
        .collect();
    let node = override_value(text.trim(), &place);
    insert(root, &path, node)
}

/// Puts a node at a path. A name selects a key of a table, a number selects an item of a list.
/// Missing tables and lists on the path are created. An index equal to a list's length appends an
/// item.
fn insert(at: &mut Node, path: &[String], node: Node) -> Result<(), ConfigError> {
    let Some((step, rest)) = path.split_first() else {
        *at = node;
        return Ok(());
    };
    let refuse = |reason: String| ConfigError::Override {
        place: node.place.clone(),
        reason,
    };
    if step.is_empty() {
        return Err(refuse(
            "has an empty step in its path; write section.key=value".to_owned(),
        ));
    }
    let empty = || Node {
        value: match rest.first() {
            Some(next) if next.parse::<usize>().is_ok() => Value::List(Vec::new()),
            _ => Value::Table(Vec::new()),
        },
        place: node.place.clone(),
    };
    match &mut at.value {
        Value::Table(entries) => {
            let found = entries.iter().position(|entry| entry.key == *step);
            let index = found.unwrap_or_else(|| {
                entries.push(Entry {
                    key: step.clone(),
                    place: node.place.clone(),
                    node: empty(),
                });
                entries.len() - 1
            });
            let entry = &mut entries[index];
            if rest.is_empty() {
                entry.place = node.place.clone();
            }
            insert(&mut entry.node, rest, node)
        }
        Value::List(items) => {
            let length = items.len();
            match step.parse::<usize>() {
                Ok(index) if index < length => insert(&mut items[index], rest, node),
                Ok(index) if index == length => {
                    items.push(empty());
                    insert(&mut items[index], rest, node)
                }
                _ => Err(refuse(format!(
                    "`{step}` is not an index of a list of length {length}; write 0 to {length}"
                ))),
            }
        }
        other => Err(refuse(format!(
            "`{step}` cannot be set: its parent is {}",
            other.kind()
        ))),
    }
}
