//! The rules for signing. A policy is fixed when the signer starts; only its counter of opening orders
//! changes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use rust_decimal::Decimal;
use windvane_client_core::gateway::Unsigned;
use windvane_protocol::route::{Route, Scheme, Surface};

use crate::batch;
use crate::order::{Form, Order, Side};
use crate::routes::{self, Class};

/// The time in which opening orders are counted, milliseconds. A second shorter than a minute, so
/// that an order which the engine counts to the next minute is not refused because it arrives a
/// moment earlier.
pub const COUNTED_MS: u64 = 59_000;
/// How far the time of an opening order may be from the signer's clock, milliseconds. The runtime
/// uses the venue's clock, which may differ.
const CLOCK_MS: u64 = 5 * 60 * 1_000;
/// Route of a single futures order.
const FUTURES_ORDER: &str = "futures.new_order";

/// The limits of one symbol's opening orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Largest quantity of an opening order.
    pub max_quantity: Option<Decimal>,
    /// Largest price times quantity of an opening order, at the highest price that it names. The
    /// venue may fill a sell at a higher price, so `max_quantity` is the stronger limit.
    pub max_notional: Option<Decimal>,
    /// Whether an opening order of a market type is allowed when only `max_notional` limits it. Its
    /// value is not known: the signer knows no prices, and a price in the request limits nothing.
    pub allow_unpriced: bool,
}

/// Why a request is not signed: the rule, and what broke it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {what}")]
pub struct Refused {
    /// The rule: `routes`, `parameters`, `symbols`, `max_quantity`, `max_notional`, `clock` or
    /// `opening_orders_per_minute`.
    pub rule: &'static str,
    /// What broke it.
    pub what: String,
}

fn refused(rule: &'static str, what: impl Into<String>) -> Refused {
    Refused {
        rule,
        what: what.into(),
    }
}

/// The present time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since the start of the signer, on a clock that never goes back.
    pub since_start_ms: u64,
    /// Unix time in milliseconds, on the clock of this machine.
    pub unix_ms: i64,
}

/// A policy, and how many opening orders it allowed lately.
#[derive(Clone, Debug)]
pub struct Policy {
    routes: BTreeSet<&'static str>,
    symbols: BTreeMap<(Surface, String), Limits>,
    opening_per_minute: Option<u32>,
    /// When opening orders were allowed: milliseconds since [`COUNTED_MS`] before the start of the signer.
    opened: VecDeque<u64>,
    /// An earlier signer of the run signed opening orders in the last minute, and nobody knows how many.
    has_unknown_past: bool,
}

impl Policy {
    /// A policy for the routes that a run needs, these symbols and at most this many opening orders
    /// in a minute.
    pub fn new(
        symbols: impl IntoIterator<Item = ((Surface, String), Limits)>,
        opening_per_minute: Option<u32>,
    ) -> Self {
        let routes = routes::default_routes().map(|route| route.name);
        Self {
            routes: routes.collect(),
            symbols: symbols.into_iter().collect(),
            opening_per_minute,
            opened: VecDeque::new(),
            has_unknown_past: false,
        }
    }

    /// The policy of a signer that replaces another one. `opened` has the opening orders that were
    /// counted in the last minute: their age in milliseconds, and how many. Without it, and with a limit
    /// per minute, no opening order is allowed in the first minute. Otherwise who can end the signer
    /// could open more than the limit.
    #[must_use]
    pub fn of_replacement(mut self, opened: Option<&[(u64, u32)]>) -> Self {
        self.has_unknown_past = opened.is_none();
        let most = self.opening_per_minute.map_or(0, |most| most as usize);
        // The newest first: they count for the longest time.
        for (age_ms, count) in opened.unwrap_or_default().iter().rev() {
            let at = COUNTED_MS.saturating_sub(*age_ms);
            // More than the limit changes nothing, and must not fill the memory.
            let room = most.saturating_sub(self.opened.len());
            let count = room.min(*count as usize);
            self.opened.extend(std::iter::repeat_n(at, count));
        }
        self.opened.make_contiguous().sort_unstable();
        self
    }

    /// Replaces the routes.
    ///
    /// # Errors
    /// A route may never be allowed.
    pub fn with_routes(
        mut self,
        routes: impl IntoIterator<Item = &'static Route>,
    ) -> Result<Self, Refused> {
        self.routes.clear();
        for route in routes {
            if routes::class(route) == Class::Never {
                let what = format!(
                    "{} moves assets or gives power over the account, so the signer never signs it",
                    route.name
                );
                return Err(refused("routes", what));
            }
            self.routes.insert(route.name);
        }
        Ok(self)
    }

    /// Whether it signs spot sells of any size. Their signatures are also valid for futures orders
    /// with the same parameters.
    pub fn has_unlimited_spot_sells(&self) -> bool {
        let mut symbols = self.symbols.iter();
        self.routes.contains(routes::SPOT_ORDER)
            && symbols.any(|((surface, symbol), limits)| {
                *surface == Surface::Spot && self.limits_of_spot_sell(symbol, *limits).is_none()
            })
    }

    /// Symbols whose opening orders have a largest value but no largest quantity, such as
    /// `futures:BTCUSDT`. The value of an order of a market type is not known.
    pub fn without_quantity(&self) -> impl Iterator<Item = String> {
        let limits = self.symbols.iter().filter(|(_, limits)| {
            limits.max_quantity.is_none() && limits.max_notional.is_some() && !limits.allow_unpriced
        });
        limits.map(|((surface, symbol), _)| format!("{surface}:{symbol}"))
    }

    /// Decides about a request. An allowed opening order is counted. Returns how many were counted: 0
    /// without a limit per minute.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn judge(&mut self, now: Now, request: &Unsigned) -> Result<u32, Refused> {
        let route = request.called_route.route;
        let class = routes::class(route);
        if class == Class::Never || !self.routes.contains(route.name) {
            return Err(refused("routes", format!("{} is not allowed", route.name)));
        }
        check_names(route, request)?;
        match class {
            Class::Cancel | Class::Read => Ok(0),
            Class::Setting => match request.parameters.get("symbol") {
                Some(symbol) => self.limits(route.surface, symbol).map(|_| 0),
                None => Ok(0),
            },
            Class::Order => {
                let form = Form::One(route.surface);
                let order = Order::read(form, request.parameters.iter())
                    .map_err(|error| refused("parameters", error))?;
                self.orders(now, request, &[order])
            }
            Class::Batch => {
                let text = request.parameters.get("batchOrders").unwrap_or_default();
                let wrong = |error| refused("parameters", error);
                let entries = batch::read(text).map_err(wrong)?;
                let orders = entries
                    .iter()
                    .map(|entry| Order::read(Form::BatchEntry, entry.0.iter().copied()));
                let orders: Vec<_> = orders.collect::<Result<_, _>>().map_err(wrong)?;
                self.orders(now, request, &orders)
            }
            Class::Never => Err(refused("routes", route.name)),
        }
    }

    fn limits(&self, surface: Surface, symbol: &str) -> Result<Limits, Refused> {
        let limits = self.symbols.get(&(surface, symbol.to_owned())).copied();
        limits.ok_or_else(|| {
            let what = format!("{surface}:{symbol} is not a symbol of the policy");
            refused("symbols", what)
        })
    }

    /// Decides about the orders of one request: all of them or none.
    fn orders(
        &mut self,
        now: Now,
        request: &Unsigned,
        orders: &[Order<'_>],
    ) -> Result<u32, Refused> {
        let surface = request.called_route.route.surface;
        let mut opening = 0;
        for order in orders {
            let limits = self.limits(surface, order.symbol)?;
            if !order.is_close(surface) {
                check_size(order, limits)?;
                opening += 1;
            } else if surface == Surface::Spot && order.side == Side::Sell {
                self.check_spot_sell(order, limits)?;
            }
        }
        if opening == 0 {
            return Ok(0);
        }
        check_clock(now, request)?;
        self.count(now.since_start_ms, opening)
    }

    /// Counts opening orders, or refuses them.
    fn count(&mut self, since_start_ms: u64, opening: u32) -> Result<u32, Refused> {
        let Some(most) = self.opening_per_minute else {
            return Ok(0);
        };
        let rule = "opening_orders_per_minute";
        if self.has_unknown_past && since_start_ms < COUNTED_MS {
            let what = format!(
                "this signer replaced another one {} s ago, and does not know how many opening orders \
                 that one signed: it signs none in its first {} s, but closes and cancels",
                since_start_ms / 1_000,
                COUNTED_MS / 1_000
            );
            return Err(refused(rule, what));
        }
        let now_ms = since_start_ms.saturating_add(COUNTED_MS);
        let until = now_ms.saturating_sub(COUNTED_MS);
        while self.opened.pop_front_if(|at| *at < until).is_some() {}
        if self.opened.len() + opening as usize > most as usize {
            let what = format!(
                "{} opening orders were signed in the last minute, and the limit is {most}",
                self.opened.len()
            );
            return Err(refused(rule, what));
        }
        let counted = std::iter::repeat_n(now_ms, opening as usize);
        self.opened.extend(counted);
        Ok(opening)
    }

    /// A spot sell could be sent as a futures order, because a signature does not cover the path.
    /// There it opens a short position. So its quantity has a limit if the policy signs futures
    /// orders: the largest quantity of the spot symbol or of the futures symbol with the same name.
    /// It has no limit of rate or value. Without a largest quantity for both it has no limit, because
    /// `flatten` must be able to sell at the market.
    fn limits_of_spot_sell(&self, symbol: &str, spot: Limits) -> Option<Vec<Limits>> {
        let has_futures = || self.symbols.keys().any(|key| key.0 == Surface::Futures);
        if !self.routes.contains(FUTURES_ORDER) || !has_futures() {
            return None;
        }
        let same = (Surface::Futures, symbol.to_owned());
        let limits = [Some(spot), self.symbols.get(&same).copied()];
        let of_quantity = |limits: Limits| {
            limits.max_quantity.is_some().then_some(Limits {
                max_notional: None,
                ..limits
            })
        };
        limits.into_iter().flatten().map(of_quantity).collect()
    }

    fn check_spot_sell(&self, order: &Order<'_>, spot: Limits) -> Result<(), Refused> {
        let limits = self.limits_of_spot_sell(order.symbol, spot);
        let Some([first, rest @ ..]) = limits.as_deref() else {
            return Ok(());
        };
        if rest.iter().any(|limits| check_size(order, *limits).is_ok()) {
            return Ok(());
        }
        check_size(order, *first).map_err(|Refused { rule, what }| {
            let why = "a spot sell could be sent as a futures order, so it has a limit: sell in parts, \
                       or raise the limit";
            refused(rule, format!("{what} ({why})"))
        })
    }
}

/// Every parameter must be one that the documents list for the route, and each only once. The
/// signer alone adds those of the authentication.
fn check_names(route: &Route, request: &Unsigned) -> Result<(), Refused> {
    let mut seen: Vec<&str> = Vec::with_capacity(16);
    for (name, _) in request.parameters.iter() {
        if seen.contains(&name) {
            return Err(refused("parameters", format!("{name} occurs twice")));
        }
        let is_listed = route.params.iter().any(|param| param.name == name);
        if !is_listed {
            let what = format!("{} has no parameter {name:?}", route.name);
            return Err(refused("parameters", what));
        }
        seen.push(name);
    }
    Ok(())
}

/// The time of an opening order must be near the present. Otherwise signatures could be collected
/// and used later. Closes and cancels do not depend on the clock of this machine.
fn check_clock(now: Now, request: &Unsigned) -> Result<(), Refused> {
    let called = request.called_route;
    let scheme = called.route.listing(called.version).map(|one| one.scheme);
    let stamp = request.stamp;
    let signed_ms = match scheme {
        Some(Scheme::Hmac) => stamp.timestamp_ms,
        Some(Scheme::Message) => i64::try_from(stamp.nonce_us / 1_000).unwrap_or(i64::MAX),
        _ => return Err(refused("clock", "the order is signed without a time")),
    };
    let off_ms = signed_ms.abs_diff(now.unix_ms);
    if off_ms <= CLOCK_MS {
        return Ok(());
    }
    let place = if signed_ms > now.unix_ms {
        "after"
    } else {
        "before"
    };
    let what = format!(
        "the time of an opening order is {} s {place} the clock of this machine, and the limit is {} s: \
         set the clock (timedatectl, chronyc tracking); closes and cancels are signed meanwhile",
        off_ms / 1_000,
        CLOCK_MS / 1_000
    );
    Err(refused("clock", what))
}

fn check_size(order: &Order<'_>, limits: Limits) -> Result<(), Refused> {
    let size = order.size().map_err(|what| refused("parameters", what))?;
    let is_measured = match (limits.max_quantity, limits.max_notional) {
        (None, None) => true,
        (Some(_), None) => size.quantity.is_some(),
        (None, Some(_)) => size.states_value || limits.allow_unpriced,
        (Some(_), Some(_)) => size.quantity.is_some() || size.states_value,
    };
    if !is_measured {
        let (rule, mend) = match limits.max_quantity {
            Some(_) => ("max_quantity", "set max_notional too"),
            None => ("max_notional", "set max_quantity too"),
        };
        let what = format!(
            "the size of this order on {} cannot be measured by this limit; {mend}",
            order.symbol
        );
        return Err(refused(rule, what));
    }
    for (rule, value, limit) in [
        ("max_quantity", size.quantity, limits.max_quantity),
        ("max_notional", size.value, limits.max_notional),
    ] {
        if let (Some(value), Some(limit)) = (value, limit)
            && value > limit
        {
            let symbol = order.symbol;
            let what = format!("{value} of an opening order on {symbol}; the limit is {limit}");
            return Err(refused(rule, what));
        }
    }
    Ok(())
}

/// One sentence for the log and for `check`.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routes = self.routes.len();
        write!(f, "{routes} routes; opening orders: ")?;
        match self.opening_per_minute {
            Some(most) => write!(f, "at most {most} a minute")?,
            None => f.write_str("no limit per minute")?,
        }
        for ((surface, symbol), limits) in &self.symbols {
            write!(f, "; {surface}:{symbol}")?;
            match (limits.max_quantity, limits.max_notional) {
                (None, None) => f.write_str(" without a limit of size")?,
                (quantity, notional) => {
                    if let Some(most) = quantity {
                        write!(f, " quantity at most {most}")?;
                    }
                    if let Some(most) = notional {
                        write!(f, " value at most {most}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
