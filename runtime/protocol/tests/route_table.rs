//! Compares the route table with `route_documents.txt`, a second list of the interface's routes
//! that was written by hand. The table has exactly its lines, with label, weight and parameters.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

use std::collections::BTreeSet;

use windvane_model::OrderType;
use windvane_protocol::Brand;
use windvane_protocol::route::{
    self, Bounds, Counted, InnerSignature, Kind, Listing, Method, Need, Param, Route, Scheme,
    Security, Source, Surface, Version, Weight,
};
use windvane_protocol::wire::futures::BatchOrder;

const DOCUMENTS: &str = include_str!("route_documents.txt");

/// One version of a route as the documents print it: `METHOD path label weight parameters`.
fn documented() -> BTreeSet<String> {
    let lines = DOCUMENTS.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.flat_map(one_line_per_version).collect()
}

fn one_line_per_version(line: &str) -> Vec<String> {
    let mut words = line.split_whitespace();
    let mut next = || words.next().expect("method, path, label, weight");
    let head = (next(), next(), next(), next());
    let params: Vec<&str> = words.collect();
    let versions = match head.1.split_once('{') {
        None => vec![("", head.1.to_owned())],
        Some((before, rest)) => {
            let (versions, after) = rest.split_once('}').expect("a closing brace");
            let versions = versions.split(',');
            versions
                .map(|version| (version, format!("{before}{version}{after}")))
                .collect()
        }
    };
    let row = |(version, path): (&str, String)| {
        let params = params
            .iter()
            .filter_map(|param| match param.split_once('@') {
                None => Some(*param),
                Some((name, only)) => (only == version).then_some(name),
            });
        row_text(head.0, &path, head.2, head.3, params)
    };
    versions.into_iter().map(row).collect()
}

/// The lines of all routes, from the table in the code.
fn listed() -> Vec<String> {
    let brand = Brand::new("svc").unwrap();
    let row = |(route, listing): (&Route, &Listing)| {
        let path = match route.surface {
            Surface::Rpc => format!("{}#{}", listing.path, route.name),
            _ => listing.path.to_owned(),
        };
        let params = route.params.iter();
        let params = params.filter(|param| param.only.is_none() || param.only == listing.version);
        let params: Vec<String> = params
            .map(|param| match param.need {
                Need::Required => format!("{}*", param.name),
                Need::OneOf => format!("{}|", param.name),
                Need::Optional => param.name.to_owned(),
            })
            .collect();
        row_text(
            route.method.as_str(),
            &brand.fill(&path),
            route.security.as_str(),
            &weight_text(route.weight),
            params.iter().map(String::as_str),
        )
    };
    rows().map(row).collect()
}

fn rows() -> impl Iterator<Item = (&'static Route, &'static Listing)> {
    route::all().flat_map(|route| route.listings.iter().map(move |listing| (route, listing)))
}

fn row_text<'a>(
    method: &str,
    path: &str,
    label: &str,
    weight: &str,
    params: impl Iterator<Item = &'a str>,
) -> String {
    let params: Vec<&str> = params.collect();
    format!("{method} {path} {label} {weight} {}", params.join(" "))
}

fn weight_text(weight: Weight) -> String {
    match weight {
        Weight::Fixed(weight) => weight.to_string(),
        Weight::BySymbol { with, without } => format!("{with}/{without}"),
        Weight::ByLimit { .. } => "limit".to_owned(),
        Weight::NotShown => "-".to_owned(),
    }
}

#[test]
fn the_table_equals_the_documents() {
    let (documented, listed) = (documented(), listed());
    let table: BTreeSet<String> = listed.iter().cloned().collect();
    let missing: Vec<&String> = documented.difference(&table).collect();
    let invented: Vec<&String> = table.difference(&documented).collect();
    assert!(
        missing.is_empty() && invented.is_empty(),
        "{missing:#?}\n{invented:#?}"
    );
    assert_eq!(listed.len(), table.len(), "a row occurs twice");
}

#[test]
fn names_are_unique_and_begin_with_their_surface() {
    let mut names = BTreeSet::new();
    for route in route::all() {
        assert!(names.insert(route.name), "{} occurs twice", route.name);
        let prefix = match route.surface {
            Surface::Rpc => "{rpc}".to_owned(),
            surface => format!("{surface}."),
        };
        assert!(route.name.starts_with(&prefix), "{}", route.name);
        assert_eq!(route::named(route.name), Some(route));
        assert!(!route.answer.is_empty(), "{} has no response", route.name);
    }
    assert_eq!(
        route::named("svc_userFills").map(|route| route.name),
        Some("{rpc}userFills")
    );
    assert_eq!(route::named("spot.order"), None);
}

#[test]
fn a_method_and_path_identify_one_route() {
    let mut seen = BTreeSet::new();
    for (route, listing) in rows().filter(|(route, _)| route.surface != Surface::Rpc) {
        assert!(
            seen.insert((route.method, listing.path)),
            "{} {}",
            route.method,
            listing.path
        );
    }
}

#[test]
fn the_number_of_routes_equals_the_documents() {
    let count = |surface, version| {
        let in_version = |(route, listing): &(&Route, &Listing)| {
            route.surface == surface && listing.version == version
        };
        rows().filter(in_version).count()
    };
    // Spot: 14 signed pairs (with openOrder, a public fact), the fee estimate, and three routes
    // only in v1; 13 rows of market data.
    assert_eq!(count(Surface::Spot, Some(Version::V1)), 14 + 1 + 3);
    assert_eq!(count(Surface::Spot, Some(Version::V3)), 14 + 1 + 13);
    // Futures: 14 signed pairs, three of listen keys, 16 rows of market data, 8 of agents and
    // builders. Public facts: 11 pairs in v1 and v3, two in v2 and v3, the account, one only in v1.
    assert_eq!(
        count(Surface::Futures, Some(Version::V1)),
        14 + 3 + 16 + 11 + 1
    );
    assert_eq!(count(Surface::Futures, Some(Version::V2)), 2);
    assert_eq!(
        count(Surface::Futures, Some(Version::V3)),
        14 + 3 + 1 + 8 + 11 + 2 + 2
    );
    assert_eq!(count(Surface::Futures, Some(Version::V4)), 1);
    assert_eq!(count(Surface::Chain, Some(Version::V3)), 14);
    assert_eq!(count(Surface::Rpc, None), 3);
}

#[test]
fn the_v3_account_route_uses_its_later_name() {
    let route = route::named("futures.account").unwrap();
    let listing = route.listing(Some(Version::V3)).unwrap();
    assert_eq!(listing.path, "/fapi/v3/accountWithJoinMargin");
    let earlier = route::named("futures.earlier_account").unwrap();
    assert_eq!(earlier.listings[0].path, "/fapi/v3/account");
    for route in route::all() {
        let versions: BTreeSet<_> = route.listings.iter().map(|one| one.version).collect();
        assert_eq!(versions.len(), route.listings.len(), "{}", route.name);
    }
}

#[test]
fn labels_and_versions_decide_how_a_request_is_authenticated() {
    for (route, listing) in rows() {
        let wanted = match (listing.version, route.security) {
            // These routes have a scheme of their own.
            _ if matches!(listing.scheme, Scheme::Typed(_) | Scheme::WalletMessage) => continue,
            _ if route.name == "spot.noop" => Scheme::Message,
            (_, Security::None) | (Some(Version::V3), Security::MarketData) => Scheme::Open,
            (Some(Version::V3), _) => Scheme::Message,
            (_, Security::UserStream | Security::MarketData) => Scheme::ApiKey,
            _ => Scheme::Hmac,
        };
        assert_eq!(listing.scheme, wanted, "{} {}", route.name, listing.path);
    }
}

#[test]
fn management_routes_use_the_documented_primary_types() {
    let typed: Vec<(&str, &str)> = rows()
        .filter_map(|(route, listing)| match listing.scheme {
            Scheme::Typed(primary) => Some((route.name, primary)),
            _ => None,
        })
        .collect();
    assert_eq!(
        typed,
        [
            ("futures.approve_agent", "ApproveAgent"),
            ("futures.update_agent", "UpdateAgent"),
            ("futures.delete_agent", "DelAgent"),
            ("futures.approve_builder", "ApproveBuilder"),
            ("futures.update_builder", "UpdateBuilder"),
            ("futures.delete_builder", "DelBuilder"),
        ]
    );
}

#[test]
fn every_inner_signature_has_its_parameters_in_its_version() {
    let mut with_inner = 0;
    for (route, listing) in rows() {
        let Some(inner) = listing.inner else { continue };
        with_inner += 1;
        let nonce = match inner {
            InnerSignature::Withdrawal { nonce } => Some(nonce),
            InnerSignature::SolanaWithdrawal => Some("userNonce"),
            InnerSignature::Sentence => None,
        };
        for name in nonce.into_iter().chain(["userSignature"]) {
            let param = route
                .params
                .iter()
                .find(|param| param.name == name)
                .unwrap();
            assert_eq!(param.need, Need::Required, "{} {name}", route.name);
            assert!(
                param.only.is_none() || param.only == listing.version,
                "{}",
                route.name
            );
        }
    }
    assert_eq!(with_inner, 2 + 1 + 4);
}

#[test]
fn reads_change_nothing_and_orders_are_counted() {
    for route in route::all() {
        let reads = route.method == Method::Get || route.surface == Surface::Rpc;
        assert!(!(reads && route.changes), "{} reads", route.name);
        let changing = matches!(
            route.security,
            Security::Trade | Security::Transfer | Security::Withdraw
        );
        assert!(
            !changing || route.changes,
            "{} changes the account",
            route.name
        );
    }
    let counted: Vec<&str> = route::all()
        .filter(|route| matches!(route.counted, Counted::Order | Counted::BatchOrders))
        .map(|route| route.name)
        .collect();
    assert_eq!(
        counted,
        [
            "spot.new_order",
            "futures.new_order",
            "futures.batch_orders"
        ]
    );
    assert_eq!(
        route::named("spot.create_api_key").unwrap().counted,
        Counted::PerMinute(60)
    );
}

#[test]
fn depth_and_klines_weigh_by_their_limit() {
    let weight = |name, limit| route::named(name).unwrap().weight.of(true, limit);
    for name in ["spot.depth", "futures.depth"] {
        let weights = [5, 10, 20, 50, 100, 500, 1000].map(|limit| weight(name, Some(limit)));
        assert_eq!(weights, [2, 2, 2, 2, 5, 10, 20], "{name}");
    }
    assert_eq!(weight("spot.depth", None), 5);
    assert_eq!(weight("futures.depth", None), 10);
    for name in ["klines", "index_price_klines", "mark_price_klines"] {
        let name = format!("futures.{name}");
        let route = route::named(&name).unwrap();
        let weights = [1, 99, 100, 499, 500, 1000, 1001, 1500];
        let weights = weights.map(|limit| route.weight.of(true, Some(limit)));
        assert_eq!(weights, [1, 1, 2, 2, 5, 5, 10, 10], "{name}");
        assert_eq!(route.weight.of(true, None), 5);
    }
    assert_eq!(
        weight("spot.klines", Some(1500)),
        1,
        "not documented: planned as 1"
    );
}

#[test]
fn a_batch_order_differs_from_a_new_order_as_documented() {
    let single = route::named("futures.new_order").unwrap().params;
    let absent = ["closePosition", "builder", "feeRate"];
    let kept: Vec<Param> = single
        .iter()
        .filter(|param| !absent.contains(&param.name))
        .map(|param| match param.name {
            "quantity" => Param {
                need: Need::Required,
                ..*param
            },
            "callbackRate" => Param {
                bounds: Bounds::Range("0.1", "4"),
                ..*param
            },
            _ => *param,
        })
        .collect();
    assert_eq!(route::BATCH_ORDER, kept);
    let names: Vec<&str> = kept.iter().map(|param| param.name).collect();
    assert_eq!(BatchOrder::NAMES, names);
}

#[test]
fn each_surface_lists_the_order_types_that_are_sent_on_it() {
    for (name, surface) in [
        ("spot.new_order", windvane_model::Surface::Spot),
        ("futures.new_order", windvane_model::Surface::Futures),
    ] {
        let params = route::named(name).unwrap().params;
        let order_type = params.iter().find(|param| param.name == "type");
        let Kind::Enum(types) = order_type.unwrap().kind else {
            panic!("{name} has a list of types")
        };
        let listed: BTreeSet<&str> = types.iter().copied().collect();
        let sent = OrderType::ALL
            .iter()
            .filter(|sent| sent.is_sent_on(surface));
        assert_eq!(listed, sent.map(|sent| sent.as_str()).collect(), "{name}");
    }
}

#[test]
fn mandatory_parameters_belong_to_their_route() {
    for name in ["spot.new_order", "futures.new_order"] {
        let route = route::named(name).unwrap();
        let order_type = route.params.iter().find(|param| param.name == "type");
        let Kind::Enum(types) = order_type.unwrap().kind else {
            panic!("{name} has a list of types")
        };
        for order_type in types {
            let mandatory = route::mandatory(route.surface, order_type);
            assert!(!mandatory.is_empty(), "{name} {order_type}");
            for name in mandatory.iter().copied().flatten() {
                let param = route.params.iter().find(|param| param.name == *name);
                assert_eq!(param.unwrap().need, Need::Optional, "{name}");
            }
        }
    }
}

#[test]
fn routes_of_document_4_are_marked_as_public_facts() {
    let facts = route::all().filter(|route| route.source == Source::PublicFacts);
    let names: Vec<&str> = facts.map(|route| route.name).collect();
    assert_eq!(names.len(), 17, "{names:?}");
    assert!(names.contains(&"spot.open_order") && names.contains(&"futures.income"));
}
