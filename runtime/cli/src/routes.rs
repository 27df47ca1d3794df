//! `windvane routes`: the route table, with one row per version of a route.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use windvane_config::Venue;
use windvane_protocol::Brand;
use windvane_protocol::route::{self, Bounds, Kind, Listing, Need, Param, Route, Surface, Weight};

use super::Failure;
use super::printing::{print_json, print_lines};

#[derive(Debug, Args)]
pub(super) struct Routes {
    /// Print only this route, with its parameters and its response
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    /// The venue's short name in paths and names
    #[arg(long, value_name = "WORD")]
    brand: Option<String>,
    /// Configuration file; the profile and the names in its [venue] are used
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Profile of the venue, instead of venue.profile
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

/// One version of a route, as it is printed.
#[derive(Debug, Serialize)]
struct Row {
    surface: &'static str,
    version: Option<&'static str>,
    method: &'static str,
    path: String,
    security: &'static str,
    weight: Option<WeightText>,
    name: String,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<ParameterRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'static str>,
}

/// A weight: a number, or a rule as text.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum WeightText {
    Number(u32),
    Rule(String),
}

#[derive(Debug, Serialize)]
pub(crate) struct ParameterRow {
    pub(crate) name: &'static str,
    pub(crate) r#type: &'static str,
    pub(crate) need: &'static str,
    pub(crate) bounds: Option<String>,
    pub(crate) default: Option<&'static str>,
}

impl Routes {
    pub(super) fn run(self) -> Result<(), Failure> {
        let venue = self.venue()?;
        let brand = venue.brand().map_err(Failure::usage)?;
        let Some(name) = &self.name else {
            let rows: Vec<Row> = listings(&brand).map(|(row, _, _)| row).collect();
            return if self.json {
                print_json(&json(&rows)?)
            } else {
                print_lines((table(&rows) + &profile_text(&venue)).trim_end())
            };
        };
        let route = super::route_named(name, &brand)?;
        let rows = listings(&brand).filter(|(_, one, _)| one.name == route.name);
        let rows: Vec<Row> = rows
            .map(|(row, route, listing)| row.with_parameters(route, listing))
            .collect();
        if self.json {
            print_json(&json(&rows)?)
        } else {
            let mut text = table(&rows);
            describe(route, &mut text);
            print_lines(text.trim_end())
        }
    }

    fn venue(&self) -> Result<Venue, Failure> {
        let profile = self.profile.iter();
        let set: Vec<_> = profile
            .map(|name| format!("venue.profile={name}"))
            .collect();
        let mut venue = super::configuration(self.config.as_deref(), &set)?.venue;
        if let Some(word) = &self.brand {
            venue.brand.clone_from(word);
        }
        Ok(venue)
    }
}

/// The profile of a public venue with its addresses; empty for the default profile, which has none.
fn profile_text(venue: &Venue) -> String {
    if !venue.profile.is_public() {
        return String::new();
    }
    let mut text = format!("\nprofile {}\n", venue.profile);
    for surface in Surface::ALL {
        let endpoint = match surface {
            Surface::Spot => &venue.spot,
            Surface::Futures => &venue.futures,
            Surface::Chain => &venue.chain,
            Surface::Rpc => &venue.rpc,
        };
        let missing = format!("no address; set venue.{surface}.rest");
        let address = endpoint.rest.as_deref().unwrap_or(&missing);
        let _ = writeln!(text, "{:<8} {address}", surface.as_str());
    }
    text
}

fn json(rows: &[Row]) -> Result<String, Failure> {
    serde_json::to_string(rows).map_err(Failure::failed)
}

/// The listing of each route and version, with its row.
fn listings(brand: &Brand) -> impl Iterator<Item = (Row, &'static Route, &'static Listing)> {
    let with_listings = |route: &'static Route| route.listings.iter().map(move |one| (route, one));
    let pairs = route::all().flat_map(with_listings);
    pairs.map(move |(route, listing)| (Row::new(route, listing, brand), route, listing))
}

impl Row {
    fn new(route: &Route, listing: &Listing, brand: &Brand) -> Self {
        Self {
            surface: route.surface.as_str(),
            version: listing.version.map(route::Version::as_str),
            method: route.method.as_str(),
            path: brand.fill(listing.path),
            security: route.security.as_str(),
            weight: weight_text(route.weight),
            name: brand.fill(route.name),
            source: route.source.as_str(),
            parameters: None,
            answer: None,
        }
    }

    fn with_parameters(mut self, route: &Route, listing: &Listing) -> Self {
        let params = route.params.iter();
        let params = params.filter(|param| param.only.is_none() || param.only == listing.version);
        self.parameters = Some(params.map(ParameterRow::new).collect());
        self.answer = Some(route.answer);
        self
    }
}

impl ParameterRow {
    pub(crate) fn new(param: &Param) -> Self {
        Self {
            name: param.name,
            r#type: type_text(param.kind),
            need: match param.need {
                Need::Required => "required",
                Need::Optional => "optional",
                Need::OneOf => "one of",
            },
            bounds: bounds_text(param),
            default: param.default,
        }
    }
}

pub(crate) fn weight_text(weight: Weight) -> Option<WeightText> {
    let rule = match weight {
        Weight::Fixed(weight) => return Some(WeightText::Number(weight)),
        Weight::NotShown => return None,
        Weight::BySymbol { with, without } => format!("{with} with symbol, {without} without"),
        Weight::ByLimit { default, steps } => {
            let steps = steps
                .iter()
                .map(|(limit, weight)| format!("{weight} to {limit}"));
            let steps: Vec<String> = steps.collect();
            format!("by limit (default {default}): {}", steps.join(", "))
        }
    };
    Some(WeightText::Rule(rule))
}

fn type_text(kind: Kind) -> &'static str {
    match kind {
        Kind::String | Kind::Address => "STRING",
        Kind::Long => "LONG",
        Kind::Int => "INT",
        Kind::Decimal => "DECIMAL",
        Kind::Boolean => "BOOLEAN",
        Kind::Enum(_) => "ENUM",
        Kind::List => "LIST",
    }
}

fn bounds_text(param: &Param) -> Option<String> {
    Some(match (param.bounds, param.kind) {
        (Bounds::Range(from, to), _) => format!("from {from} to {to}"),
        (Bounds::Values(values), _) => {
            let values: Vec<String> = values.iter().map(i64::to_string).collect();
            values.join(", ")
        }
        (Bounds::Length(from, to), _) => format!("{from} to {to} characters"),
        (Bounds::Entries(most), _) => format!("at most {most} entries"),
        (Bounds::AboveZero, _) => "greater than 0".to_owned(),
        (Bounds::NotNegative, _) => "0 or more".to_owned(),
        (Bounds::ClientOrderId, _) => "1 to 36 letters, digits and . : / _ -".to_owned(),
        (Bounds::SolanaAddress, _) => "a Solana address".to_owned(),
        (Bounds::Any, Kind::Enum(values)) => values.join(", "),
        (Bounds::Any, Kind::Address) => "a wallet address".to_owned(),
        (Bounds::Any, Kind::Boolean) => "true, false".to_owned(),
        (Bounds::Any, _) => return None,
    })
}

const HEADINGS: [&str; 7] = [
    "name", "version", "method", "path", "security", "weight", "source",
];

/// Formats the rows in aligned columns.
fn table(rows: &[Row]) -> String {
    let cells: Vec<[String; 7]> = rows
        .iter()
        .map(|row| {
            let weight = match &row.weight {
                None => "-".to_owned(),
                Some(WeightText::Number(weight)) => weight.to_string(),
                Some(WeightText::Rule(rule)) => rule.clone(),
            };
            [
                row.name.clone(),
                row.version.unwrap_or("-").to_owned(),
                row.method.to_owned(),
                row.path.clone(),
                row.security.to_owned(),
                weight,
                row.source.to_owned(),
            ]
        })
        .collect();
    aligned(&HEADINGS, &cells)
}

/// Formats columns as wide as their widest cell, with two spaces between them.
fn aligned<const N: usize>(headings: &[&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    let headings = std::array::from_fn(|column| headings[column].to_owned());
    for row in std::iter::once(&headings).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Describes the parameters and the response of a route, for people.
fn describe(route: &Route, text: &mut String) {
    if route.params.is_empty() {
        text.push_str("\nNo parameters except those for authentication.\n");
    } else {
        let rows: Vec<[String; 5]> = route
            .params
            .iter()
            .map(|param| {
                let row = ParameterRow::new(param);
                let version = param
                    .only
                    .map_or("all".to_owned(), |version| version.to_string());
                let mut bounds = row.bounds.unwrap_or_default();
                if let Some(default) = row.default {
                    let comma = if bounds.is_empty() { "" } else { "; " };
                    let _ = write!(bounds, "{comma}default {default}");
                }
                [
                    row.name.to_owned(),
                    row.r#type.to_owned(),
                    row.need.to_owned(),
                    version,
                    bounds,
                ]
            })
            .collect();
        let headings = ["parameter", "type", "need", "versions", "bounds"];
        let _ = write!(text, "\n{}", aligned(&headings, &rows));
    }
    let _ = writeln!(text, "\nanswers {}", route.answer);
}

#[cfg(test)]
mod tests {
    use windvane_config::Profile;

    use super::*;

    fn rows(word: &str) -> serde_json::Value {
        let brand = Brand::new(word).unwrap();
        let rows: Vec<Row> = listings(&brand).map(|(row, _, _)| row).collect();
        serde_json::from_str(&json(&rows).unwrap()).unwrap()
    }

    fn row<'a>(rows: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
        let rows = rows.as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()
    }

    #[test]
    fn a_row_has_the_eight_fields_and_no_other() {
        for row in rows("svc").as_array().unwrap() {
            let mut keys: Vec<&str> = row
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .collect();
            keys.sort_unstable();
            let fields = [
                "method", "name", "path", "security", "source", "surface", "version", "weight",
            ];
            assert_eq!(keys, fields);
        }
    }

    #[test]
    fn weights_are_numbers_else_text_and_null_where_not_shown() {
        let rows = rows("svc");
        assert_eq!(row(&rows, "spot.account")["weight"], 5);
        let text = &row(&rows, "futures.open_orders")["weight"];
        assert_eq!(text, "1 with symbol, 40 without");
        let text = row(&rows, "futures.depth")["weight"].as_str().unwrap();
        assert!(text.starts_with("by limit"), "{text}");
        assert!(row(&rows, "futures.approve_agent")["weight"].is_null());
    }

    #[test]
    fn a_route_has_one_row_for_each_of_its_versions() {
        let rows = rows("svc");
        let mut seen = std::collections::BTreeSet::new();
        for row in rows.as_array().unwrap() {
            let key = (row["name"].to_string(), row["version"].to_string());
            assert!(seen.insert(key), "{row} twice");
        }
        let paths = rows.as_array().unwrap().iter().map(|row| &row["path"]);
        let paths: Vec<_> = paths
            .filter(|path| path.as_str().unwrap().ends_with("/account"))
            .collect();
        assert_eq!(
            paths,
            [
                "/api/v1/account",
                "/api/v3/account",
                "/fapi/v4/account",
                "/fapi/v3/account"
            ]
        );
    }

    #[test]
    fn the_brand_is_in_paths_and_methods() {
        let rows = rows("acme");
        let staking = row(&rows, "chain.locked_staking");
        assert_eq!(staking["path"], "/acme-chain/v3/staking/getLockedAcme");
        let balance = row(&rows, "acme_getBalance");
        assert_eq!(balance["path"], "/info");
        assert!(balance["version"].is_null());
    }

    #[test]
    fn a_public_profile_is_shown_with_its_addresses() {
        let text = |profile: Profile| profile_text(&profile.venue().unwrap());
        assert_eq!(text(Profile::Simulated), "");
        let shown = text(Profile::AsterTestnet);
        assert!(shown.starts_with("\nprofile aster-testnet\n"), "{shown}");
        assert!(
            shown.contains("\nfutures  https://fapi.asterdex-testnet.com\n"),
            "{shown}"
        );
        assert!(
            shown.contains("\nchain    no address; set venue.chain.rest\n"),
            "{shown}"
        );
    }

    #[test]
    fn one_route_is_described_with_its_parameters() {
        let route = route::named("spot.withdraw").unwrap();
        let mut text = String::new();
        describe(route, &mut text);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert!(
            lines.contains(&vec!["userNonce", "STRING", "required", "v3"]),
            "{text}"
        );
        assert!(text.contains("1, 56, 42161"), "{text}");
        assert!(
            text.ends_with("answers Withdraw result {withdrawId, hash}\n"),
            "{text}"
        );
    }
}
