//! Route names and `k=v` arguments as a person writes them.

use windvane_protocol::Brand;
use windvane_protocol::route::{
    self, Counted, InnerSignature, Kind, Listing, Need, Param, Route, Scheme, Surface, Version,
};
use windvane_protocol::wire::Parameters;

use crate::outcome::RequestError;
use crate::settings::{Api, default_version, is_market_data};

use super::{list, value};

/// A call that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No route of this name.
    #[error("no route {name}; did you mean {nearest}? `windvane routes` prints them all")]
    NoRoute {
        /// As given.
        name: String,
        /// The nearest name of the table.
        nearest: String,
    },
    /// A short name of several surfaces.
    #[error("{name} is a route of {surfaces}: write it in full or give --surface")]
    SeveralRoutes {
        /// As given.
        name: String,
        /// The surfaces.
        surfaces: String,
    },
    /// Name and `--surface` disagree.
    #[error("--surface {surface}: {name} is no route of it; leave it out or name another")]
    OtherSurface {
        /// As given.
        surface: Surface,
        /// As given.
        name: String,
    },
    /// Not `k=v`.
    #[error("argument {0:?} must be NAME=VALUE: put the name before it")]
    NotAPair(String),
    /// No such parameter.
    #[error("{route} has no parameter {name}; did you mean {nearest}?")]
    NoParameter {
        /// Route, or list and index.
        route: String,
        /// As given.
        name: String,
        /// The nearest that it has.
        nearest: String,
    },
    /// A parameter of another version.
    #[error("{route} has {name} only in {only}: give --api {only}")]
    OtherVersion {
        /// Route.
        route: String,
        /// Parameter.
        name: &'static str,
        /// The version that has it.
        only: Version,
    },
    /// A route without any parameter.
    #[error("{route} takes no parameters: leave out {name}")]
    TakesNone {
        /// Route.
        route: String,
        /// As given.
        name: String,
    },
    /// Given twice.
    #[error("{name} is given twice: give it once")]
    Twice {
        /// Parameter.
        name: String,
    },
    /// Required and not given.
    #[error("{route} requires {name}: give {name}=VALUE ({rule})")]
    Missing {
        /// Route.
        route: String,
        /// Parameter.
        name: &'static str,
        /// What its value must be.
        rule: String,
    },
    /// Required in an entry of a list and not given.
    #[error("{entry} requires {name}: give it ({rule})")]
    MissingInEntry {
        /// List and index.
        entry: String,
        /// Parameter.
        name: &'static str,
        /// What its value must be.
        rule: String,
    },
    /// Mandatory for orders of this type (spec 1, Place order; spec 2, New order).
    #[error("{order} of type {order_type} requires {names}: give it")]
    MissingOfType {
        /// Route, or list and index.
        order: String,
        /// Type.
        order_type: String,
        /// The parameter, or several of which one is enough.
        names: String,
    },
    /// Two parameters that are sent together or not at all.
    #[error("{given} is given without {missing}: give both or neither")]
    Alone {
        /// Given.
        given: &'static str,
        /// Not given.
        missing: &'static str,
    },
    /// None of several of which one is required.
    #[error("{route} requires {names}: give one of them")]
    MissingOneOf {
        /// Route.
        route: String,
        /// Parameters.
        names: String,
    },
    /// A value against the rule.
    #[error("{name} = {value:?} must be {rule}")]
    Value {
        /// Parameter; in a list with its place.
        name: String,
        /// As given.
        value: String,
        /// What it must be.
        rule: String,
    },
    /// Asked for with wallet signatures, and listed without.
    #[error(
        "{route} is not listed in v3: leave out --api v3 or give --api v1, which sends {listed}"
    )]
    NotInV3 {
        /// Route.
        route: &'static str,
        /// The version that would be sent.
        listed: Version,
    },
    /// A list that is too long.
    #[error("{name} has {entries} entries: give {most} at most")]
    TooMany {
        /// Parameter.
        name: &'static str,
        /// As many as given.
        entries: usize,
        /// As many as allowed.
        most: usize,
    },
    /// A parameter that is sent with another one only.
    #[error("{given} is given without {missing}: give {missing} too")]
    Without {
        /// Given.
        given: &'static str,
        /// Not given.
        missing: &'static str,
    },
    /// A parameter that is not sent with a value of another.
    #[error("{given} is given with {with}: leave one of them out")]
    NotWith {
        /// Given.
        given: &'static str,
        /// Name and value of the other.
        with: &'static str,
    },
    /// The sentence of an API key needs the venue's nonce.
    #[error(
        "spot.create_api_key signs the nonce that spot.get_nonce gives: give it by --nonce, or \
         give userSignature"
    )]
    VenueNonce,
    /// The request cannot be prepared.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl CallError {
    /// The same of a value that stands at this place of a list.
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

/// The route that is meant: its name in the table, the JSON-RPC method with or without the brand,
/// or the part after the dot where only one surface has it.
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

/// The version for a way of signing that was asked for by name: a listed one is meant, market data
/// included. What moves nothing and nobody signs is sent in the version that there is; anything
/// else is never signed by an API key where wallet signatures were asked for.
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

/// The arguments as parameters, in the order given.
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
    // Spec 1, Account trade history.
    let (given, missing) = ("orderId", "symbol");
    if parameters.get(given).is_some() && parameters.get(missing).is_none() {
        return Err(CallError::Without { given, missing });
    }
    Ok(())
}

fn check_order(route: &Route, parameters: &Parameters) -> Result<(), CallError> {
    // An order with builder code lists both (spec 2, Place order with builder code).
    for (given, missing) in [("builder", "feeRate"), ("feeRate", "builder")] {
        if parameters.get(given).is_some() && parameters.get(missing).is_none() {
            return Err(CallError::Alone { given, missing });
        }
    }
    check_type(route.name, route.surface, |name| parameters.get(name))?;
    check_close_all(parameters)
}

/// A close-all order has neither quantity nor `reduceOnly` (spec 2, New order, rule 4).
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

/// Has an order what its type makes mandatory?
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

/// Required parameters that are filled where they are not given.
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

/// What may be given although it is no business parameter.
fn added_by_authentication(listing: Option<&Listing>, brand: &Brand) -> Vec<String> {
    let Some(listing) = listing else {
        return Vec::new();
    };
    let mut names: Vec<String> = match listing.scheme {
        Scheme::Open if listing.version.is_none() => vec!["id".to_owned()],
        Scheme::Open | Scheme::ApiKey => Vec::new(),
        Scheme::Hmac => words(&["recvWindow", "timestamp", "signature"]),
        Scheme::Message => words(&["nonce", "user", "signer", "signature"]),
        Scheme::WalletMessage => words(&["nonce", "user", "signature"]),
        Scheme::Typed(_) => words(&["user", "nonce", "signatureChainId", "signature"]),
    };
    if matches!(listing.scheme, Scheme::Typed(_)) {
        names.push(brand.chain_parameter.clone());
    }
    names
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let word = word.to_ascii_lowercase();
    let distance = |known: &&str| strsim::damerau_levenshtein(&word, &known.to_ascii_lowercase());
    known.min_by_key(distance).map(str::to_owned)
}
