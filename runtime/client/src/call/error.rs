//! Why a call cannot be made.

use windvane_protocol::route::{Surface, Version};

use crate::outcome::RequestError;

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

/// The known word that is nearest to this one, for a message.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let word = word.to_ascii_lowercase();
    let distance = |known: &&str| strsim::damerau_levenshtein(&word, &known.to_ascii_lowercase());
    known.min_by_key(distance).map(str::to_owned)
}
