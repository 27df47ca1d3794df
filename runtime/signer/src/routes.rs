//! Which routes a policy may allow at all, and which one it allows without a file.
//!
//! A signature covers the parameters of a request, but neither its method nor its path
//! (docs/interface/conventions.md#signing-with-an-api-key). So a signed read could be sent as another route that accepts the
//! same parameters. [`is_confusable`] finds such routes.

use windvane_protocol::route::{self, Method, Need, Route, Scheme, Security, Surface};

/// The route of a spot order.
pub(crate) const SPOT_ORDER: &str = "spot.new_order";
/// Routes that place orders.
const ORDERS: [&str; 3] = ["futures.new_order", "futures.batch_orders", SPOT_ORDER];
/// Routes that cancel, and the dead man's switch.
const CANCELS: [&str; 6] = [
    "futures.cancel_order",
    "futures.cancel_all_orders",
    "futures.cancel_batch_orders",
    "futures.countdown_cancel_all",
    "spot.cancel_order",
    "spot.cancel_all_orders",
];
/// Routes that change settings of the account. A run sends none of them; a policy file may allow
/// them.
const SETTINGS: [&str; 5] = [
    "futures.change_leverage",
    "futures.change_margin_type",
    "futures.change_multi_assets_mode",
    "futures.change_position_margin",
    "futures.change_position_mode",
];

/// The kind of a route, for the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Places one order.
    Order,
    /// Places several orders.
    Batch,
    /// Cancels, or is part of the dead man's switch.
    Cancel,
    /// Reads, or keeps a listen key.
    Read,
    /// Changes a setting of the account.
    Setting,
    /// Moves assets, or gives power over the account to another key. Never signed.
    Never,
}

/// The class of a route.
pub(crate) fn class(route: &Route) -> Class {
    let name = route.name;
    if name == "futures.batch_orders" {
        Class::Batch
    } else if ORDERS.contains(&name) {
        Class::Order
    } else if CANCELS.contains(&name) {
        Class::Cancel
    } else if SETTINGS.contains(&name) {
        Class::Setting
    } else if is_read(route) {
        Class::Read
    } else {
        Class::Never
    }
}

fn is_read(route: &Route) -> bool {
    let of_trading = matches!(route.surface, Surface::Spot | Surface::Futures);
    let by_agent = route.listings.iter().all(|listing| {
        let scheme = listing.scheme;
        listing.inner.is_none() && !matches!(scheme, Scheme::WalletMessage | Scheme::Typed(_))
    });
    let reads = match route.security {
        // Listen keys are created, kept and closed with other methods.
        Security::UserStream => true,
        Security::None | Security::UserData | Security::MarketData => {
            route.method == Method::Get && !route.changes
        }
        Security::Trade | Security::Transfer | Security::Withdraw => false,
    };
    of_trading && by_agent && reads
}

/// Whether the signed parameters of a read could be sent as a route that a policy must allow first.
pub(crate) fn is_confusable(read: &Route) -> bool {
    let has = |name: &str| read.params.iter().any(|param| param.name == name);
    route::all()
        .filter(|other| other.changes && !matches!(class(other), Class::Cancel | Class::Read))
        .any(|other| required(other).next().is_some() && required(other).all(has))
}

/// The parameters that a route requires in every version.
pub(crate) fn required(route: &Route) -> impl Iterator<Item = &'static str> {
    let params = route.params.iter();
    let required = params.filter(|param| param.need == Need::Required && param.only.is_none());
    required.map(|param| param.name)
}

/// The routes that a run needs: orders, cancels, the dead man's switch, listen keys, and reads.
pub(crate) fn default_routes() -> impl Iterator<Item = &'static Route> {
    route::all().filter(|route| match class(route) {
        Class::Order | Class::Batch | Class::Cancel => true,
        Class::Read => !is_confusable(route),
        Class::Setting | Class::Never => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_route_that_moves_assets_or_gives_power_can_be_allowed() {
        for route in route::all() {
            let name = route.name;
            let words = [
                "withdraw", "transfer", "agent", "builder", "api_key", "send_to", "nonce",
                "staking",
            ];
            let is_dangerous =
                route.method != Method::Get && words.iter().any(|word| name.contains(word));
            if is_dangerous || matches!(route.security, Security::Transfer | Security::Withdraw) {
                assert_eq!(class(route), Class::Never, "{name}");
            }
            if matches!(route.surface, Surface::Chain | Surface::Rpc) {
                assert_eq!(class(route), Class::Never, "{name}");
            }
        }
    }

    #[test]
    fn a_run_gets_the_routes_that_it_sends() {
        let names: Vec<_> = default_routes().map(|route| route.name).collect();
        for name in ORDERS.iter().chain(&CANCELS) {
            assert!(names.contains(name), "{name}");
        }
        for name in [
            "futures.account",
            "futures.position_mode",
            "futures.multi_assets_mode",
            "futures.query_order",
            "futures.open_orders",
            "futures.all_orders",
            "futures.user_trades",
            "futures.income",
            "futures.force_orders",
            "futures.create_listen_key",
            "futures.keepalive_listen_key",
            "futures.exchange_info",
            "futures.depth",
            "futures.time",
            "spot.account",
            "spot.query_order",
            "spot.open_orders",
            "spot.all_orders",
            "spot.user_trades",
            "spot.create_listen_key",
            "spot.keepalive_listen_key",
        ] {
            assert!(names.contains(&name), "{name}");
        }
    }

    #[test]
    fn each_change_requires_a_parameter() {
        let free = route::all()
            .filter(|route| route.changes && !matches!(class(route), Class::Cancel | Class::Read))
            .filter(|route| required(route).next().is_none())
            .map(|route| route.name);
        // It carries the nonce of another request and blocks that request, which is a cancel
        // (docs/interface/account.md#noop).
        assert_eq!(free.collect::<Vec<_>>(), ["spot.noop"]);
    }

    #[test]
    fn a_signed_read_cannot_be_sent_as_a_change() {
        let left_out = route::all()
            .filter(|route| class(route) == Class::Read && is_confusable(route))
            .map(|route| route.name);
        // It takes symbol and leverage, as the change of the leverage does.
        assert_eq!(
            left_out.collect::<Vec<_>>(),
            ["futures.remaining_openable_notional"]
        );
    }
}
