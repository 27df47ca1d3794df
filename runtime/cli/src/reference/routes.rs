//! `docs/interface/routes.md#routes`, from the route table.

use std::fmt::Write as _;

use windvane_protocol::Brand;
use windvane_protocol::route::{
    self, Counted, InnerSignature, Listing, Route, Scheme, Source, Surface,
};
use windvane_sim_server::OpenPoint;

use super::markdown::{code, table};
use crate::routes::{ParameterRow, WeightText, weight_text};

const INTRODUCTION: &str = "# Routes

Every route that the program knows, from `runtime/protocol/src/route`. `windvane routes` prints the same table, and
`windvane routes NAME` one route. `windvane call NAME` sends a request to a route.

- *Path*: one for each version. `svc` is the default of `venue.brand`; another brand changes it.
- *Security*: the [security label](conventions.md#security-labels).
- *Weight*: the request weight. A dash means that the interface does not state it; the client then counts 1.
- *Counts as*: other limits that a request counts against.
- *Source*: `core` or `public facts`, the [parts of the interface](README.md#core-and-public-facts). Public facts were never
  compared with the real service.
- *Open points*: points of [open-points.md](../open-points.md) that concern this route alone or a few routes. Other points
  concern all routes (`json-spacing`, `error-text` and so on) or the user stream.

Signed v1 requests also carry `timestamp`, `recvWindow` and `signature`. Signed v3 requests carry `nonce`, `user`,
`signer` and `signature`. The client adds them; the tables do not repeat them.
";

/// The open points that concern single routes, and their routes.
const POINTS: &[(&str, &[&str])] = &[
    (
        "account-assets",
        &[
            "spot.account",
            "futures.account",
            "futures.earlier_account",
            "futures.balance",
        ],
    ),
    (
        "account-lag",
        &["spot.account", "futures.account", "futures.earlier_account"],
    ),
    (
        "account-positions",
        &["futures.account", "futures.earlier_account"],
    ),
    (
        "account-route",
        &["futures.account", "futures.earlier_account"],
    ),
    ("account-trades-route", &["futures.user_trades"]),
    (
        "account-update-time",
        &[
            "spot.account",
            "futures.account",
            "futures.earlier_account",
            "futures.balance",
            "futures.position_risk",
        ],
    ),
    ("all-orders-route", &["futures.all_orders"]),
    (
        "answer-timing",
        &[
            "spot.new_order",
            "spot.cancel_order",
            "futures.new_order",
            "futures.cancel_order",
        ],
    ),
    ("batch-matching-order", &["futures.batch_orders"]),
    (
        "can-trade",
        &["spot.account", "futures.account", "futures.earlier_account"],
    ),
    (
        "cancel-all-answer",
        &["spot.cancel_all_orders", "futures.cancel_all_orders"],
    ),
    (
        "cancel-of-ended-order",
        &[
            "spot.cancel_order",
            "futures.cancel_order",
            "futures.cancel_batch_orders",
        ],
    ),
    ("countdown-answer", &["futures.countdown_cancel_all"]),
    ("depth-times", &["spot.depth", "futures.depth"]),
    (
        "duplicate-id-code",
        &[
            "spot.new_order",
            "futures.new_order",
            "futures.batch_orders",
        ],
    ),
    (
        "ended-id-reuse",
        &["futures.new_order", "futures.batch_orders"],
    ),
    (
        "ended-orders-listed",
        &["spot.open_orders", "futures.open_orders"],
    ),
    ("fee-rounding", &["spot.user_trades", "futures.user_trades"]),
    ("force-orders-route", &["futures.force_orders"]),
    ("income-route", &["futures.income"]),
    (
        "info-lag",
        &["{rpc}getBalance", "{rpc}openOrders", "{rpc}userFills"],
    ),
    ("info-positions", &["{rpc}getBalance"]),
    (
        "leverage-form",
        &[
            "futures.account",
            "futures.earlier_account",
            "futures.position_risk",
        ],
    ),
    (
        "listen-key-on-post",
        &["spot.create_listen_key", "futures.create_listen_key"],
    ),
    (
        "new-order-answer",
        &["futures.new_order", "futures.batch_orders"],
    ),
    (
        "odd-symbols",
        &["spot.exchange_info", "futures.exchange_info"],
    ),
    (
        "one-way-sides",
        &[
            "futures.account",
            "futures.earlier_account",
            "futures.position_risk",
        ],
    ),
    (
        "open-orders-lag",
        &["spot.open_orders", "futures.open_orders"],
    ),
    ("order-types-key", &["futures.exchange_info"]),
    (
        "position-lag",
        &[
            "futures.position_risk",
            "futures.balance",
            "futures.adl_quantile",
        ],
    ),
    ("position-risk-positions", &["futures.position_risk"]),
    (
        "position-risk-route",
        &["futures.position_risk", "futures.balance"],
    ),
    (
        "post-only-cross",
        &[
            "spot.new_order",
            "futures.new_order",
            "futures.batch_orders",
        ],
    ),
    (
        "query-lag",
        &[
            "spot.query_order",
            "spot.open_order",
            "futures.query_order",
            "futures.open_order",
        ],
    ),
    (
        "query-of-unknown-order",
        &[
            "spot.query_order",
            "spot.open_order",
            "futures.query_order",
            "futures.open_order",
        ],
    ),
    ("rejected-order", &["futures.new_order"]),
    ("trades-lag", &["spot.user_trades", "futures.user_trades"]),
    (
        "unknown-filter",
        &["spot.exchange_info", "futures.exchange_info"],
    ),
];

pub(super) fn page() -> Result<String, String> {
    for (point, routes) in POINTS {
        if !OpenPoint::ALL.iter().any(|known| known.name == *point) {
            return Err(format!("{point} is not an open point"));
        }
        if let Some(name) = routes.iter().find(|name| route::named(name).is_none()) {
            return Err(format!(
                "{point} names the route {name}, which does not exist"
            ));
        }
    }
    let brand = Brand::new("svc").map_err(|error| error.to_string())?;
    let mut text = INTRODUCTION.to_owned();
    for surface in Surface::ALL {
        let of_surface = || route::all().filter(move |route| route.surface == surface);
        let title = title(surface);
        let _ = writeln!(text, "\n## {title}\n");
        let rows: Vec<[String; 8]> = of_surface().map(|route| row(route, &brand)).collect();
        let headings = [
            "Name",
            "Method",
            "Path",
            "Security",
            "Weight",
            "Counts as",
            "Source",
            "Open points",
        ];
        text.push_str(&table(headings, &rows));
    }
    for surface in Surface::ALL {
        let _ = writeln!(text, "\n## Parameters: {}", title(surface));
        for route in route::all().filter(|route| route.surface == surface) {
            describe(route, &brand, &mut text);
        }
    }
    Ok(text)
}

const fn title(surface: Surface) -> &'static str {
    match surface {
        Surface::Spot => "Spot",
        Surface::Futures => "Futures",
        Surface::Chain => "Chain API",
        Surface::Rpc => "Info endpoint (JSON-RPC)",
    }
}

fn row(route: &Route, brand: &Brand) -> [String; 8] {
    let paths = route
        .listings
        .iter()
        .map(|listing| code(brand.fill(listing.path)));
    let paths: Vec<String> = paths.collect();
    let points = POINTS
        .iter()
        .filter(|(_, routes)| routes.contains(&route.name));
    let points: Vec<String> = points.map(|(point, _)| code(point)).collect();
    [
        code(brand.fill(route.name)),
        route.method.to_string(),
        paths.join(", "),
        route.security.to_string(),
        weight(route),
        match route.counted {
            Counted::WeightOnly => String::new(),
            Counted::Order => "1 order".to_owned(),
            Counted::BatchOrders => "1 order for each entry".to_owned(),
            Counted::PerMinute(most) => format!("at most {most} requests a minute"),
        },
        route.source.to_string(),
        points.join(", "),
    ]
}

fn weight(route: &Route) -> String {
    match weight_text(route.weight) {
        None => "-".to_owned(),
        Some(WeightText::Number(weight)) => weight.to_string(),
        Some(WeightText::Rule(rule)) => rule,
    }
}

fn describe(route: &Route, brand: &Brand, text: &mut String) {
    let _ = writeln!(text, "\n### {}\n", brand.fill(route.name));
    let schemes: Vec<String> = route.listings.iter().map(scheme).collect();
    let changes = if route.changes {
        " It may change the account or move assets."
    } else {
        ""
    };
    let facts = if route.source == Source::PublicFacts {
        " Never compared with the real service."
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "Answer: {}. Authentication: {}.{changes}{facts}",
        escaped(route.answer),
        schemes.join("; ")
    );
    if route.params.is_empty() {
        text.push_str("\nNo parameters.\n");
        return;
    }
    let rows: Vec<[String; 6]> = route
        .params
        .iter()
        .map(|param| {
            let row = ParameterRow::new(param);
            [
                code(row.name),
                row.r#type.to_owned(),
                row.need.to_owned(),
                param
                    .only
                    .map_or("all".to_owned(), |version| version.to_string()),
                row.bounds.unwrap_or_default(),
                row.default.map_or(String::new(), code),
            ]
        })
        .collect();
    text.push('\n');
    let headings = ["Parameter", "Type", "Need", "Versions", "Bounds", "Default"];
    text.push_str(&table(headings, &rows));
}

/// Braces and brackets of a response's description, which Markdown could take for a link.
fn escaped(text: &str) -> String {
    match text.find(['{', '[']) {
        Some(at) => format!("{}`{}`", &text[..at], &text[at..]),
        None => text.to_owned(),
    }
}

fn scheme(listing: &Listing) -> String {
    let own = match listing.scheme {
        Scheme::Open => "none".to_owned(),
        Scheme::ApiKey => "API key".to_owned(),
        Scheme::Hmac => "API key and HMAC".to_owned(),
        Scheme::Message => "EIP-712 `Message` of the agent".to_owned(),
        Scheme::WalletMessage => "EIP-712 `Message` of the main wallet".to_owned(),
        Scheme::Typed(primary) => format!("EIP-712 `{primary}` of the main wallet"),
    };
    let inner = match listing.inner {
        None => "",
        Some(InnerSignature::Withdrawal { .. }) => ", and `userSignature` of the main wallet",
        Some(InnerSignature::SolanaWithdrawal) => ", and `userSignature` of the Solana wallet",
        Some(InnerSignature::Sentence) => ", and `userSignature` of the login sentence",
    };
    match listing.version {
        Some(version) => format!("{version}: {own}{inner}"),
        None => format!("{own}{inner}"),
    }
}
