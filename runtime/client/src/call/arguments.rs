//! Parses route names and `k=v` arguments that a person writes.

use windvane_protocol::Brand;
use windvane_protocol::route::{
    self, Counted, InnerSignature, Kind, Listing, Need, Param, Route, Scheme, Surface, Version,
};
use windvane_protocol::wire::Parameters;

use crate::settings::{Api, default_version, is_market_data};

use super::error::{CallError, nearest};
use super::order_type::check_type;
use super::{list, value};

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
