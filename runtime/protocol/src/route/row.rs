//! Helpers that declare a row of the route table: short const functions, so that a row looks like
//! the documents' tables.

use super::types::{
    Bounds, Counted, InnerSignature, Kind, Listing, Method, Need, Param, Route, Scheme, Security,
    Source, Surface, Version, Weight,
};

/// A parameter that must be sent.
pub(super) const fn must(name: &'static str, kind: Kind) -> Param {
    param(name, kind, Need::Required)
}

/// A parameter that may be sent.
pub(super) const fn may(name: &'static str, kind: Kind) -> Param {
    param(name, kind, Need::Optional)
}

/// One of several parameters; at least one of them must be sent.
pub(super) const fn one_of(name: &'static str, kind: Kind) -> Param {
    param(name, kind, Need::OneOf)
}

const fn param(name: &'static str, kind: Kind, need: Need) -> Param {
    Param {
        name,
        kind,
        need,
        bounds: Bounds::Any,
        default: None,
        only: None,
    }
}

/// One weight with `symbol`, and one without.
pub(super) const fn by_symbol(with: u32, without: u32) -> Weight {
    Weight::BySymbol { with, without }
}

/// `limit` with its default and largest value.
pub(super) const fn limit(default: &'static str, largest: &'static str) -> Param {
    may("limit", Kind::Int)
        .range("1", largest)
        .default_value(default)
}

impl Param {
    pub(super) const fn range(mut self, smallest: &'static str, largest: &'static str) -> Self {
        self.bounds = Bounds::Range(smallest, largest);
        self
    }

    pub(super) const fn values(mut self, values: &'static [i64]) -> Self {
        self.bounds = Bounds::Values(values);
        self
    }

    pub(super) const fn length(mut self, shortest: usize, longest: usize) -> Self {
        self.bounds = Bounds::Length(shortest, longest);
        self
    }

    pub(super) const fn entries(mut self, most: usize) -> Self {
        self.bounds = Bounds::Entries(most);
        self
    }

    pub(super) const fn above_zero(mut self) -> Self {
        self.bounds = Bounds::AboveZero;
        self
    }

    pub(super) const fn not_negative(mut self) -> Self {
        self.bounds = Bounds::NotNegative;
        self
    }

    pub(super) const fn client_order_id(mut self) -> Self {
        self.bounds = Bounds::ClientOrderId;
        self
    }

    pub(super) const fn solana_address(mut self) -> Self {
        self.bounds = Bounds::SolanaAddress;
        self
    }

    pub(super) const fn default_value(mut self, text: &'static str) -> Self {
        self.default = Some(text);
        self
    }

    pub(super) const fn only(mut self, version: Version) -> Self {
        self.only = Some(version);
        self
    }
}

/// A listing whose authentication follows from the security label
/// (docs/interface/conventions.md#security-labels).
pub(super) const fn listing(version: Version, security: Security, path: &'static str) -> Listing {
    Listing {
        version: Some(version),
        path,
        scheme: usual_scheme(version, security),
        inner: None,
    }
}

const fn usual_scheme(version: Version, security: Security) -> Scheme {
    match (version, security) {
        (_, Security::None) | (Version::V3, Security::MarketData) => Scheme::Open,
        (Version::V3, _) => Scheme::Message,
        (_, Security::UserStream | Security::MarketData) => Scheme::ApiKey,
        _ => Scheme::Hmac,
    }
}

/// The parts of a route on its first line. Its surface and source come from `base`.
pub(super) const fn route(
    name: &'static str,
    base: (Surface, Source),
    method: Method,
    listings: &'static [Listing],
    security: Security,
    weight: Weight,
) -> Route {
    Route {
        name,
        surface: base.0,
        method,
        security,
        weight,
        counted: Counted::WeightOnly,
        params: &[],
        listings,
        answer: "",
        source: base.1,
        changes: false,
    }
}

impl Route {
    pub(super) const fn takes(mut self, params: &'static [Param]) -> Self {
        self.params = params;
        self
    }

    pub(super) const fn answers(mut self, answer: &'static str) -> Self {
        self.answer = answer;
        self
    }

    pub(super) const fn changes(mut self) -> Self {
        self.changes = true;
        self
    }

    pub(super) const fn counts(mut self, counted: Counted) -> Self {
        self.counted = counted;
        self
    }

    pub(super) const fn source(mut self, source: Source) -> Self {
        self.source = source;
        self
    }
}

impl Listing {
    pub(super) const fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    pub(super) const fn inner(mut self, inner: InnerSignature) -> Self {
        self.inner = Some(inner);
        self
    }
}

/// Converts a version name into the enum.
macro_rules! version {
    (v1) => {
        $crate::route::types::Version::V1
    };
    (v2) => {
        $crate::route::types::Version::V2
    };
    (v3) => {
        $crate::route::types::Version::V3
    };
    (v4) => {
        $crate::route::types::Version::V4
    };
}

/// Declares one listing: `at!("/api" v1 "/order" Trade)`.
macro_rules! at {
    ($prefix:literal $version:ident $path:literal $security:ident) => {
        $crate::route::row::listing(
            $crate::route::row::version!($version),
            $crate::route::types::Security::$security,
            concat!($prefix, "/", stringify!($version), $path),
        )
    };
}

/// Declares the first line of a route: name, method, path with its versions, label, weight.
///
/// `row!(BASE "spot.new_order", Post "/api" [v1 v3] "/order", Trade, 1)`. If the paths or their
/// authentication differ, a list of listings replaces the path.
macro_rules! row {
    ($base:ident $name:literal, $method:ident $prefix:literal [$($version:ident)+] $path:literal,
     $security:ident, $weight:expr) => {
        $crate::route::row::row!($base $name, $method
            [$($crate::route::row::at!($prefix $version $path $security)),+], $security, $weight)
    };
    ($base:ident $name:literal, $method:ident [$($listing:expr),+ $(,)?],
     $security:ident, $weight:expr) => {
        $crate::route::row::route(
            $name,
            $base,
            $crate::route::types::Method::$method,
            &[$($listing),+],
            $crate::route::types::Security::$security,
            $weight,
        )
    };
}

pub(super) use {at, row, version};
