//! One typed method per route, by surface: `client.spot().new_order(&order).await`. Each method
//! only calls [`Client::send`] with the request type of its route.

mod agents;
mod chain;
mod futures;
mod futures_market;
mod info;
mod spot;
mod spot_market;
mod wallet;

use crate::client::Client;

/// Declares the methods of one surface: documentation, name, then the request type with an example
/// of it. A request type without parameters has no example.
macro_rules! methods {
    ($surface:ident, $module:literal;
        $($(#[$meta:meta])* $method:ident($request:ty $(, $example:expr)?);)*
    ) => {
        impl $crate::methods::$surface<'_> {
            $($crate::methods::method! {
                $module; $(#[$meta])* $method($request $(, $example)?)
            })*
        }

        /// Name and route of each method.
        #[cfg(test)]
        pub(super) const METHODS: &[(&str, &str)] = &[$((
            stringify!($method),
            <$request as windvane_protocol::wire::Request>::ROUTE,
        ),)*];
    };
}

/// Declares one method.
macro_rules! method {
    ($module:literal; $(#[$meta:meta])* $method:ident($request:ty)) => {
        $(#[$meta])*
        ///
        /// ```no_run
        /// # async fn example(client: windvane_client::Client) {
        #[doc = concat!("let outcome = client.", $module, "().", stringify!($method), "().await;")]
        /// # }
        /// ```
        pub async fn $method(
            self,
        ) -> $crate::Outcome<<$request as windvane_protocol::wire::Request>::Answer> {
            self.client.send(&<$request>::new()).await
        }
    };
    ($module:literal;
        $(#[$meta:meta])* $method:ident($request:ty, $example:expr)
    ) => {
        $(#[$meta])*
        ///
        /// ```no_run
        /// # use rust_decimal::Decimal;
        /// # use windvane_protocol::wire::enums::*;
        #[doc = concat!("use windvane_protocol::wire::", $module, "::*;")]
        /// # async fn example(client: windvane_client::Client) {
        ///
        #[doc = concat!("let request = ", stringify!($example), ";")]
        #[doc = concat!(
            "let outcome = client.", $module, "().", stringify!($method), "(&request).await;"
        )]
        /// # }
        /// ```
        pub async fn $method(
            self,
            request: &$request,
        ) -> $crate::Outcome<<$request as windvane_protocol::wire::Request>::Answer> {
            self.client.send(request).await
        }
    };
}

pub(crate) use {method, methods};

/// Routes of the spot surface.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    pub(crate) client: &'a Client,
}

/// Routes of the futures surface.
#[derive(Clone, Copy, Debug)]
pub struct Futures<'a> {
    pub(crate) client: &'a Client,
}

/// Routes of the chain API (docs/interface/chain.md#chain-routes).
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a> {
    pub(crate) client: &'a Client,
}

/// Methods of the JSON-RPC info endpoint (docs/interface/chain.md#info-endpoint).
#[derive(Clone, Copy, Debug)]
pub struct Info<'a> {
    pub(crate) client: &'a Client,
}

impl Client {
    /// The spot surface.
    pub const fn spot(&self) -> Spot<'_> {
        Spot { client: self }
    }

    /// The futures surface.
    pub const fn futures(&self) -> Futures<'_> {
        Futures { client: self }
    }

    /// The chain API.
    pub const fn chain(&self) -> Chain<'_> {
        Chain { client: self }
    }

    /// The JSON-RPC info endpoint.
    pub const fn info(&self) -> Info<'_> {
        Info { client: self }
    }
}

impl<'a> Spot<'a> {
    /// The client that sends.
    pub const fn client(&self) -> &'a Client {
        self.client
    }
}

impl<'a> Futures<'a> {
    /// The client that sends.
    pub const fn client(&self) -> &'a Client {
        self.client
    }
}

impl<'a> Chain<'a> {
    /// The client that sends.
    pub const fn client(&self) -> &'a Client {
        self.client
    }
}

impl<'a> Info<'a> {
    /// The client that sends.
    pub const fn client(&self) -> &'a Client {
        self.client
    }
}

#[cfg(test)]
mod tests {
    use windvane_protocol::route::{self, Surface};

    #[test]
    fn every_route_has_a_method_of_its_name() {
        let methods = [
            super::spot::METHODS,
            super::spot_market::METHODS,
            super::wallet::METHODS,
            // It needs a nonce in addition to its request, so it is not declared by the macro.
            &[("create_api_key", "spot.create_api_key")],
            super::futures::METHODS,
            super::futures_market::METHODS,
            super::agents::METHODS,
            super::chain::METHODS,
            super::info::METHODS,
        ]
        .concat();
        for route in route::all() {
            let of_route = methods.iter().filter(|(_, name)| *name == route.name);
            let names: Vec<&str> = of_route.map(|(method, _)| *method).collect();
            assert_eq!(names.len(), 1, "{}: {names:?}", route.name);
            if route.surface != Surface::Rpc {
                assert!(
                    route.name.ends_with(&format!(".{}", names[0])),
                    "{}",
                    route.name
                );
            }
        }
        assert_eq!(methods.len(), route::all().count());
    }
}
