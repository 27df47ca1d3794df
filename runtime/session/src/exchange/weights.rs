//! Weights of the calls that a run makes repeatedly, by the documented interface.

use windvane_model::Surface;
use windvane_protocol::route;

use super::{DEPTH_LEVELS, Recurring};

/// The routes that report the modes of the account.
pub(super) const MODES: &[&str] = &["futures.position_mode", "futures.multi_assets_mode"];

/// The weight of a call on a surface.
pub(super) fn weight(surface: Surface, call: Recurring) -> u32 {
    let (name, with_symbol, limit) = match call {
        Recurring::Clock => ("time", false, None),
        Recurring::Listing => ("exchange_info", false, None),
        Recurring::Depth => ("depth", true, DEPTH_LEVELS.parse().ok()),
        Recurring::Heartbeat => ("countdown_cancel_all", false, None),
        Recurring::OpenOrders => ("open_orders", false, None),
        Recurring::OpenOrdersOfSymbol => ("open_orders", true, None),
        Recurring::Account => ("account", false, None),
        // The info endpoint may use the same counter (docs/interface/limits.md#counters).
        Recurring::AccountInfo => return 1,
        Recurring::AccountTrades => ("user_trades", false, None),
        Recurring::RenewKey => ("keepalive_listen_key", false, None),
        Recurring::Modes => return weight_of_modes(surface),
    };
    let route = route::named(&format!("{surface}.{name}"));
    // Every name is in the route table; a test checks this.
    route.map_or(0, |route| route.weight.of(with_symbol, limit))
}

fn weight_of_modes(surface: Surface) -> u32 {
    let routes = MODES.iter();
    routes
        .filter(|name| name.starts_with(surface.as_str()))
        .filter_map(|name| route::named(name))
        .map(|route| route.weight.of(false, None))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_in_the_table_of_routes() {
        let of_both = [
            Recurring::Clock,
            Recurring::Listing,
            Recurring::Depth,
            Recurring::OpenOrders,
            Recurring::OpenOrdersOfSymbol,
            Recurring::Account,
            Recurring::AccountTrades,
            Recurring::RenewKey,
        ];
        for call in of_both {
            for &surface in Surface::ALL {
                let weight = weight(surface, call);
                assert!(weight > 0, "{surface}: {call:?}");
            }
        }
        for call in [Recurring::Heartbeat, Recurring::Modes] {
            assert!(weight(Surface::Futures, call) > 0, "{call:?}");
        }
    }
}
