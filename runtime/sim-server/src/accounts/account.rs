//! One account: its keys, agents and holdings. `windvane-sim` does the matching and the
//! accounting.

use std::collections::VecDeque;
use std::net::IpAddr;

use alloy_primitives::Address;
use secrecy::SecretString;
use windvane_model::{Amount, Instrument, InstrumentId, Surface, VenueOrderId};
use windvane_protocol::Assets;
use windvane_sim::{Bracket, QueueModel, StreamEvent, Venue, VenueConfig, VenueConfigError};

use super::history::History;
use super::keys::Made;
use super::listen_key::ListenKeys;
use super::nonces::Nonces;
use super::past::Past;
use crate::account_id::AccountId;
use crate::limits::OrderCounts;

/// Order ids of the account with index n start after n times this number, so that no two accounts
/// use the same id.
pub(crate) const ORDER_IDS: i64 = 1_000_000_000_000;
/// Maximum number of finished orders with fills that are kept per account and surface.
const TRADED_MAX: usize = 20_000;
/// Maximum number of finished orders without fills that are kept. It covers one minute of orders at
/// the limit of spot.
const UNTRADED_MAX: usize = 6_000;
/// Expiry of the generated agents: the end of the year 2099.
const AGENT_EXPIRES_MS: i64 = 4_102_444_800_000;
/// Start balance of quote assets, on spot and on futures.
const QUOTE_START: i128 = 100_000;
/// Start balance of other assets, on spot.
const BASE_START: i128 = 100;

/// The rights of a key or an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grants {
    pub(crate) read: bool,
    pub(crate) spot_trade: bool,
    pub(crate) perp_trade: bool,
    pub(crate) withdraw: bool,
}

impl Grants {
    pub(crate) const ALL: Self = Self {
        read: true,
        spot_trade: true,
        perp_trade: true,
        withdraw: true,
    };
}

/// A v1 API key (docs/interface/conventions.md#signing-with-an-api-key).
#[derive(Clone, Debug)]
pub(crate) struct ApiKey {
    pub(crate) key: String,
    pub(crate) secret: SecretString,
    /// `desc`; unique within the account.
    pub(crate) label: String,
    /// Permitted addresses; an empty list permits all.
    pub(crate) ips: Vec<IpAddr>,
    pub(crate) grants: Grants,
}

/// An agent: a wallet that may sign for the account (docs/interface/futures.md#agents).
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) address: Address,
    pub(crate) name: String,
    /// Comma-separated addresses, as they were sent. An empty list permits all.
    pub(crate) ip_whitelist: String,
    /// Expiry, Unix milliseconds.
    pub(crate) expired_ms: i64,
    pub(crate) source: String,
    pub(crate) grants: Grants,
}

/// One account.
#[derive(Debug)]
pub(crate) struct Account {
    /// Main wallet.
    pub(crate) user: Address,
    pub(crate) api_keys: Vec<ApiKey>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) nonces: Nonces,
    pub(crate) listen_keys: ListenKeys,
    pub(crate) order_counts: OrderCounts,
    pub(crate) history: History,
    pub(crate) venue: Venue,
    /// The account's last seconds, if a route lags behind the stream.
    pub(crate) past: Option<Past>,
    /// User events that the market has processed and that are not sent yet.
    pub(crate) unpublished: VecDeque<StreamEvent>,
}

impl Account {
    /// An account with its first key, an approved agent and start balances.
    pub(crate) fn new(
        place: u16,
        made: &Made,
        instruments: &[Instrument],
        assets: &Assets,
    ) -> Result<Self, VenueConfigError> {
        let venue = venue(place, instruments, assets)?;
        Ok(Self {
            user: made.user,
            api_keys: vec![ApiKey {
                key: made.api_key.clone(),
                secret: made.api_secret.clone(),
                label: "made up".to_owned(),
                ips: Vec::new(),
                grants: Grants::ALL,
            }],
            agents: vec![Agent {
                address: made.signer,
                name: "agent".to_owned(),
                ip_whitelist: String::new(),
                expired_ms: AGENT_EXPIRES_MS,
                source: "api".to_owned(),
                grants: Grants::ALL,
            }],
            nonces: Nonces::default(),
            listen_keys: ListenKeys::default(),
            order_counts: OrderCounts::default(),
            history: History::default(),
            venue: venue.with_stream(),
            past: None,
            unpublished: VecDeque::new(),
        })
    }
}

/// The matching engine of the account with this index.
pub(crate) fn venue(
    place: u16,
    instruments: &[Instrument],
    assets: &Assets,
) -> Result<Venue, VenueConfigError> {
    let mut venue = Venue::new(config(instruments, assets), instruments.to_vec())?;
    venue.order_ids_after(VenueOrderId(i64::from(place) * ORDER_IDS));
    venue.remember_finished(TRADED_MAX, UNTRADED_MAX);
    for (n, instrument) in instruments.iter().enumerate() {
        if instrument.surface == Surface::Futures {
            venue.set_brackets(InstrumentId(n as u16), &brackets())?;
        }
    }
    Ok(venue)
}

fn config(instruments: &[Instrument], assets: &Assets) -> VenueConfig {
    let whole = |amount: i128| Amount(amount * windvane_model::decimal::AMOUNT_ONE);
    let mut start_balance = Vec::new();
    for n in 0..assets.names().len() {
        let asset = windvane_model::AssetId(n as u16);
        let quoted = instruments.iter().any(|i| i.quote == asset);
        let spot = if quoted { QUOTE_START } else { BASE_START };
        start_balance.push((Surface::Spot, asset, whole(spot)));
        if quoted {
            start_balance.push((Surface::Futures, asset, whole(QUOTE_START)));
        }
    }
    VenueConfig {
        start_balance,
        leverage: 20,
        maintenance_rate: rust_decimal::Decimal::new(5, 3),
        maker_fee: MAKER_FEE,
        taker_fee: TAKER_FEE,
        queue: QueueModel::RiskAverse,
        hedge_mode: false,
        seed: 0,
    }
}

/// The leverage brackets of every futures symbol: leverage, cap in the quote asset, maintenance
/// rate in tenths of a percent. The values are samples of services of this kind.
const BRACKETS: &[(u32, i128, i64)] = &[
    (125, 50_000, 4),
    (100, 250_000, 5),
    (50, 1_000_000, 10),
    (20, 10_000_000, 25),
    (10, 20_000_000, 50),
    (5, 50_000_000, 100),
    (4, 100_000_000, 125),
    (3, 200_000_000, 150),
    (2, 300_000_000, 250),
    (1, 500_000_000, 500),
];

fn brackets() -> Vec<Bracket> {
    let whole = |amount: i128| Amount(amount * windvane_model::decimal::AMOUNT_ONE);
    let floors = std::iter::once(0).chain(BRACKETS.iter().map(|(_, cap, _)| *cap));
    let bracket = |((leverage, cap, rate), floor): (&(u32, i128, i64), i128)| Bracket {
        initial_leverage: *leverage,
        notional_floor: whole(floor),
        notional_cap: whole(*cap),
        maintenance_rate: rust_decimal::Decimal::new(*rate, 3),
        cum: Amount::ZERO,
    };
    BRACKETS.iter().zip(floors).map(bracket).collect()
}

/// Maker fee, a fraction of the notional.
pub(crate) const MAKER_FEE: rust_decimal::Decimal =
    rust_decimal::Decimal::from_parts(2, 0, 0, false, 4);
/// Taker fee, a fraction of the notional.
pub(crate) const TAKER_FEE: rust_decimal::Decimal =
    rust_decimal::Decimal::from_parts(4, 0, 0, false, 4);

/// The account with this main wallet.
pub(crate) fn of_user(accounts: &[Account], user: Address) -> Option<AccountId> {
    let place = accounts.iter().position(|account| account.user == user)?;
    Some(AccountId(place as u16))
}

#[cfg(test)]
mod tests {
    use windvane_model::protocol::Request;
    use windvane_model::{
        ClientOrderId, NewOrder, OrderTerms, OrderType, Price, Qty, Side, Time, TimeInForce,
    };

    use super::*;
    use crate::settings::Settings;
    use crate::state::State;

    #[test]
    fn filled_orders_are_kept_longer_than_unfilled_ones() {
        let now = Time::from_millis(1_800_000_000_000);
        let (mut state, _) = State::new(Settings::default(), now).unwrap();
        let spot = state.instrument(Surface::Spot, "BTCUSDT").unwrap();
        let step = state.rules(spot).filters.lot_size.unwrap().step_size;
        let venue = &mut state.accounts[0].venue;
        let order = |name: &str, order_type| {
            let mut terms = OrderTerms::new(spot, Side::Sell, order_type);
            terms.qty = Some(Qty(step * 1_000));
            Request::Place(NewOrder {
                client_order_id: ClientOrderId::new(name).unwrap(),
                terms,
            })
        };
        venue.request(now, &order("filled", OrderType::Market));
        let filled = venue.newest_order_id();
        for n in 0..7_000 {
            let mut untraded = order(&format!("untraded{n}"), OrderType::Limit);
            if let Request::Place(new) = &mut untraded {
                new.terms.price = Some(Price(7_000_000));
                new.terms.time_in_force = Some(TimeInForce::Ioc);
            }
            venue.request(now, &untraded);
        }
        let ended = venue.orders_where(|order| order.executed == Qty(0)).len();
        assert!(ended > 5_000, "{ended} orders ended without a fill");
        let name = ClientOrderId::new("filled").unwrap();
        assert!(
            venue
                .order(filled)
                .is_some_and(|order| order.executed > Qty(0))
        );
        assert_eq!(venue.order_by_client(spot, &name).unwrap().order_id, filled);
    }
}
