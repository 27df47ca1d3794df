//! Parses route names and `k=v` arguments that a person writes.

use windvane_protocol::Brand;
use windvane_protocol::route::{
    self, Counted, InnerSignature, Kind, Listing, Need, Param, Route, Scheme, Surface, Version,
};
use windvane_protocol::wire::Parameters;

use crate::outcome::RequestError;
use crate::settings::{Api, default_version, is_market_data};

use super::{list, value};

/// The call cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No route has this name.
    #[error("no route {name}; did you mean {nearest}? `windvane routes` prints them all")]
    NoRoute {
        /// The name as given.
        name: String,
        /// The nearest name of the table.
        nearest: String,
    },
    /// A short name that several surfaces have.
    #[error("{name} is a route of {surfaces}: write it in full or give --surface")]
    SeveralRoutes {
        /// The name as given.
        name: String,
        /// The surfaces.
        surfaces: String,
    },
    /// The name and `--surface` do not match.
    #[error("--surface {surface}: {name} is not a route of it; omit --surface or choose another")]
    OtherSurface {
        /// The surface as given.
        surface: Surface,
        /// The name as given.
        name: String,
    },
    /// The argument is not `k=v`.
    #[error("argument {0:?} must be NAME=VALUE: put the name before it")]
    NotAPair(String),
    /// The route has no such parameter.
    #[error("{route} has no parameter {name}; did you mean {nearest}?")]
    NoParameter {
        /// Route, or list and index.
        route: String,
        /// The name as given.
        name: String,
        /// The nearest parameter of the route.
        nearest: String,
    },
    /// The parameter exists only in another version.
    #[error("{route} has {name} only in {only}: give --api {only}")]
    OtherVersion {
        /// Route.
        route: String,
        /// Parameter.
        name: &'static str,
        /// The version that has it.
        only: Version,
    },
    /// The route has no parameters.
    #[error("{route} takes no parameters: leave out {name}")]
    TakesNone {
        /// Route.
        route: String,
        /// The name as given.
        name: String,
    },
    /// The parameter is given twice.
    #[error("{name} is given twice: give it once")]
    Twice {
        /// Parameter.
        name: String,
    },
    /// A required parameter is not given.
    #[error("{route} requires {name}: give {name}=VALUE ({rule})")]
    Missing {
        /// Route.
        route: String,
        /// Parameter.
        name: &'static str,
        /// The rule for its value.
        rule: String,
    },
    /// A required parameter of a list entry is not given.
    #[error("{entry} requires {name}: give it ({rule})")]
    MissingInEntry {
        /// List and index.
        entry: String,
        /// Parameter.
        name: &'static str,
        /// The rule for its value.
        rule: String,
    },
    /// The parameter is mandatory for orders of this type
    /// (docs/interface/orders.md#place-a-spot-order,
    /// docs/interface/orders.md#place-a-futures-order).
    #[error("{order} of type {order_type} requires {names}: give it")]
    MissingOfType {
        /// Route, or list and index.
        order: String,
        /// The order type.
        order_type: String,
        /// The parameter, or several of which one is enough.
        names: String,
    },
    /// Two parameters must be sent together or not at all.
    #[error("{given} is given without {missing}: give both or neither")]
    Alone {
        /// The given parameter.
        given: &'static str,
        /// The missing parameter.
        missing: &'static str,
    },
    /// One of several parameters is required, and none is given.
    #[error("{route} requires {names}: give one of them")]
    MissingOneOf {
        /// Route.
        route: String,
        /// Parameters.
        names: String,
    },
    /// The value breaks the rule.
    #[error("{name} = {value:?} must be {rule}")]
    Value {
        /// Parameter; in a list with its position.
        name: String,
        /// The value as given.
        value: String,
        /// The rule.
        rule: String,
    },
    /// Wallet signatures were requested, but the route has no version with them.
    #[error(
        "{route} is not listed in v3: leave out --api v3 or give --api v1, which sends {listed}"
    )]
    NotInV3 {
        /// Route.
        route: &'static str,
        /// The version that would be sent.
        listed: Version,
    },
    /// The list is too long.
    #[error("{name} has {entries} entries: give {most} at most")]
    TooMany {
        /// Parameter.
        name: &'static str,
        /// The number of given entries.
        entries: usize,
        /// The allowed number.
        most: usize,
    },
    /// The parameter may only be sent together with another one.
    #[error("{given} is given without {missing}: give {missing} too")]
    Without {
        /// The given parameter.
        given: &'static str,
        /// The missing parameter.
        missing: &'static str,
    },
    /// The parameter must not be sent with this value of another parameter.
    #[error("{given} is given with {with}: leave one of them out")]
    NotWith {
        /// The given parameter.
        given: &'static str,
        /// Name and value of the other parameter.
        with: &'static str,
    },
    /// The sentence of an API key needs the venue's nonce.
    #[error(
        "spot.create_api_key signs the nonce that spot.get_nonce returns: pass it with --nonce, or \
         give userSignature"
    )]
    VenueNonce,
    /// The request cannot be prepared.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl CallError {
    /// This error, with the position in a list as the name of the value.
    pub(super) fn inside(self, place: &str) -> Self {
        match self {
            Self::Value { value, rule, .. } => Self::Value {
                name: place.to_owned(),
                value,
                rule,
            },
            other => other,
        }
    }
}

/// Finds the route by its name in the table, by the JSON-RPC method with or without the brand, or
/// by the part after the dot if only one surface has it.
pub(super) fn route(
    name: &str,
    surface: Option<Surface>,
    brand: &Brand,
) -> Result<&'static Route, CallError> {
    let is_named = |route: &&Route| {
        brand.fill(route.name) == name
            || route.name == name
            || route.name.strip_prefix("{rpc}") == Some(name)
    };
    let is_short = |route: &&Route| {
        let short = route.name.split_once('.').map(|(_, short)| short);
        short == Some(name)
    };
    let mut found: Vec<_> = route::all().filter(is_named).collect();
    if found.is_empty() {
        found = route::all().filter(is_short).collect();
    }
    if found.is_empty() {
        let names: Vec<_> = route::all().map(|route| brand.fill(route.name)).collect();
        return Err(CallError::NoRoute {
            name: name.to_owned(),
            nearest: nearest(name, names.iter().map(String::as_str)).unwrap_or_default(),
        });
    }
    if let Some(surface) = surface {
        found.retain(|route| route.surface == surface);
    }
    match (found.as_slice(), surface) {
        ([route], _) => Ok(route),
        ([], Some(surface)) => Err(CallError::OtherSurface {
            surface,
            name: name.to_owned(),
        }),
        (several, _) => {
            let surfaces: Vec<_> = several.iter().map(|route| route.surface.as_str()).collect();
            Err(CallError::SeveralRoutes {
                name: name.to_owned(),
                surfaces: surfaces.join(" and of "),
            })
        }
    }
}

/// The version for an explicitly chosen API. V3 uses the route's v3 listing, for market data too.
/// Market data without a v3 listing uses the version that it has, because it needs no signature.
/// Any other route without v3 is refused: if wallet signatures were requested, the call must never
/// be signed with an API key instead.
pub(super) fn version(route: &'static Route, api: Api) -> Result<Option<Version>, CallError> {
    if api == Api::V1 || is_market_data(route) && route.listing(Some(Version::V3)).is_none() {
        return Ok(default_version(route, api));
    }
    match route.listing(Some(Version::V3)).or(route.listings.first()) {
        Some(Listing {
            version: Some(listed),
            ..
        }) if *listed != Version::V3 => Err(CallError::NotInV3 {
            route: route.name,
            listed: *listed,
        }),
        found => Ok(found.and_then(|listing| listing.version)),
    }
}

/// The arguments as parameters, in the given order.
pub(super) fn parameters<T: AsRef<str>>(
    route: &'static Route,
    version: Option<Version>,
    arguments: &[T],
    brand: &Brand,
) -> Result<Parameters, CallError> {
    let listed: Vec<&Param> = route
        .params
        .iter()
        .filter(|param| param.only.is_none() || param.only == version)
        .collect();
    let listing = route.listing(version);
    let added = added_by_authentication(listing, brand);
    let mut parameters = Parameters::new();
    for argument in arguments {
        let argument = argument.as_ref();
        let pair = argument.split_once('=');
        let (name, value) = pair.ok_or_else(|| CallError::NotAPair(argument.to_owned()))?;
        if parameters.get(name).is_some() {
            let name = name.to_owned();
            return Err(CallError::Twice { name });
        }
        match listed.iter().find(|param| param.name == name) {
            Some(param) if param.kind == Kind::List => {
                list::check_list(route.surface, param, value)?;
            }
            Some(param) => value::check(param, value)?,
            None if added.iter().any(|added| added == name) => value::check_added(name, value)?,
            None => return Err(unknown(route, name, &listed, &added, brand)),
        }
        parameters.push(name, value);
    }
    check_required(route, listing, &listed, &parameters, brand)?;
    Ok(parameters)
}

fn unknown(
    route: &Route,
    name: &str,
    listed: &[&Param],
    added: &[String],
    brand: &Brand,
) -> CallError {
    let elsewhere = route.params.iter().find(|param| param.name == name);
    if let Some((param, only)) = elsewhere.and_then(|param| Some((param, param.only?))) {
        return CallError::OtherVersion {
            route: brand.fill(route.name),
            name: param.name,
            only,
        };
    }
    let own = listed.iter().map(|param| param.name);
    let known = own.chain(added.iter().map(String::as_str));
    match nearest(name, known) {
        Some(nearest) => CallError::NoParameter {
            route: brand.fill(route.name),
            name: name.to_owned(),
            nearest,
        },
        None => CallError::TakesNone {
            route: brand.fill(route.name),
            name: name.to_owned(),
        },
    }
}

fn check_required(
    route: &'static Route,
    listing: Option<&Listing>,
    listed: &[&Param],
    parameters: &Parameters,
    brand: &Brand,
) -> Result<(), CallError> {
    let filled = filled_by_signature(listing);
    for param in listed {
        let is_missing = parameters.get(param.name).is_none() && !filled.contains(&param.name);
        if param.need == Need::Required && is_missing {
            return Err(CallError::Missing {
                route: brand.fill(route.name),
                name: param.name,
                rule: value::rule(param),
            });
        }
    }
    let one_of: Vec<_> = listed
        .iter()
        .filter(|param| param.need == Need::OneOf)
        .map(|param| param.name)
        .collect();
    let has_one = one_of.iter().any(|name| parameters.get(name).is_some());
    if !one_of.is_empty() && !has_one {
        return Err(CallError::MissingOneOf {
            route: brand.fill(route.name),
            names: one_of.join(" or "),
        });
    }
    if route.counted == Counted::Order {
        return check_order(route, parameters);
    }
    // docs/interface/account.md#spot-trades
    let (given, missing) = ("orderId", "symbol");
    if parameters.get(given).is_some() && parameters.get(missing).is_none() {
        return Err(CallError::Without { given, missing });
    }
    Ok(())
}

fn check_order(route: &Route, parameters: &Parameters) -> Result<(), CallError> {
    // Both parameters are listed for an order with builder code
    // (docs/interface/futures.md#orders-with-a-builder-code).
    for (given, missing) in [("builder", "feeRate"), ("feeRate", "builder")] {
        if parameters.get(given).is_some() && parameters.get(missing).is_none() {
            return Err(CallError::Alone { given, missing });
        }
    }
    check_type(route.name, route.surface, |name| parameters.get(name))?;
    check_close_all(parameters)
}

/// A close-all order must not have a quantity or `reduceOnly`
/// (docs/interface/futures.md#close-all-orders).
fn check_close_all(parameters: &Parameters) -> Result<(), CallError> {
    let is_close_all = parameters.get("closePosition");
    if !is_close_all.is_some_and(|flag| flag.eq_ignore_ascii_case("true")) {
        return Ok(());
    }
    let apart = ["quantity", "reduceOnly"];
    match apart
        .into_iter()
        .find(|name| parameters.get(name).is_some())
    {
        Some(given) => Err(CallError::NotWith {
            given,
            with: "closePosition=true",
        }),
        None => Ok(()),
    }
}

/// Checks that an order has the mandatory parameters of its type.
pub(super) fn check_type<'a>(
    order: &str,
    surface: Surface,
    get: impl Fn(&str) -> Option<&'a str>,
) -> Result<(), CallError> {
    let order_type = get("type").unwrap_or_default();
    for names in route::mandatory(surface, order_type) {
        if !names.iter().any(|name| get(name).is_some()) {
            return Err(CallError::MissingOfType {
                order: order.to_owned(),
                order_type: order_type.to_owned(),
                names: names.join(" or "),
            });
        }
    }
    Ok(())
}

/// Required parameters that the client adds if they are not given.
fn filled_by_signature(listing: Option<&Listing>) -> Vec<&'static str> {
    let mut names = vec!["timestamp"];
    match listing.and_then(|listing| listing.inner) {
        Some(InnerSignature::Withdrawal { nonce }) => names.extend([nonce, "userSignature"]),
        Some(InnerSignature::SolanaWithdrawal) => names.extend(["userNonce", "userSignature"]),
        Some(InnerSignature::Sentence) => names.extend(["address", "userSignature"]),
        None => {}
    }
    names
}

/// Parameters of the authentication that may be given although they are not business parameters.
fn added_by_authentication(listing: Option<&Listing>, brand: &Brand) -> Vec<String> {
    let Some(listing) = listing else {
        return Vec::new();
    };
    let mut names: Vec<String> = match listing.scheme {
        Scheme::Open if listing.version.is_none() => vec!["id".to_owned()],
        Scheme::Open | Scheme::ApiKey => Vec::new(),
        Scheme::Hmac => names(&["recvWindow", "timestamp", "signature"]),
        Scheme::Message => names(&["nonce", "user", "signer", "signature"]),
        Scheme::WalletMessage => names(&["nonce", "user", "signature"]),
        Scheme::Typed(_) => names(&["user", "nonce", "signatureChainId", "signature"]),
    };
    if matches!(listing.scheme, Scheme::Typed(_)) {
        names.push(brand.chain_parameter.clone());
    }
    names
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|word| (*word).to_owned()).collect()
}

pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let word = word.to_ascii_lowercase();
    let distance = |known: &&str| strsim::damerau_levenshtein(&word, &known.to_ascii_lowercase());
    known.min_by_key(distance).map(str::to_owned)
}
