//! Saves a venue exactly as bytes, and continues its account in a later process. So a simulated
//! account survives the process that simulates it.
//!
//! The bytes contain everything that a request could read: balances, positions, open orders with
//! their queue positions, finished orders that are kept, trades, the last book, and timers. They do
//! not contain the complete user events of [`Venue::with_stream`].

use windvane_model::{AssetId, Instrument, InstrumentId, OrderStatus};

use crate::account::Account;
use crate::config::{VenueConfig, VenueConfigError};
use crate::market::Market;
use crate::venue::Venue;

const MAGIC: &[u8; 8] = b"wv-venue";
/// Any change of the bytes of a snapshot needs a new number.
const VERSION: u16 = 1;

/// Why a venue cannot continue from bytes, or with other instruments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are something else, or of another version.
    #[error("this is not a snapshot of a simulated venue in format {VERSION}")]
    Format,
    /// The bytes are damaged.
    #[error("the snapshot of the simulated venue cannot be read: {0}")]
    Content(String),
    /// The present configuration cannot be used.
    #[error(transparent)]
    Config(#[from] VenueConfigError),
    /// A position's instrument is not configured any more.
    #[error(
        "the simulated account holds a position in {0}, which is not configured any more: \
         configure it again, or start with an empty data folder"
    )]
    Held(String),
}

impl Venue {
    /// The complete state, from which [`Venue::restore`] continues exactly. All messages must have
    /// been polled before.
    pub fn snapshot(&self) -> Vec<u8> {
        debug_assert!(
            self.out.is_empty(),
            "all messages must be polled before a snapshot"
        );
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        // Writing to memory cannot fail, and every length in these types is known.
        bytes.extend(postcard::to_stdvec(self).unwrap_or_default());
        bytes
    }

    /// The venue of a snapshot.
    ///
    /// # Errors
    /// The bytes are not a snapshot, or are damaged.
    pub fn restore(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let content = bytes
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.strip_prefix(&VERSION.to_le_bytes()))
            .ok_or(SnapshotError::Format)?;
        postcard::from_bytes(content).map_err(|error| SnapshotError::Content(error.to_string()))
    }

    /// Continues this venue's account with a configuration and instruments that may have changed.
    /// The start balances of the configuration are ignored. `assets` has the new id of each old
    /// asset. Orders of a removed instrument are cancelled without an event.
    ///
    /// # Errors
    /// The configuration cannot be used, an instrument's scales changed, or the account holds a
    /// position in a removed instrument.
    pub fn succeed(
        mut self,
        mut config: VenueConfig,
        instruments: Vec<Instrument>,
        assets: &[AssetId],
    ) -> Result<Self, SnapshotError> {
        config.start_balance.clear();
        let settled = self
            .markets
            .iter()
            .all(|market| market.open_orders() == 0 && !market.has_position());
        let hedge = if settled {
            config.hedge_mode
        } else {
            self.hedge
        };
        let mut heir = Self::new(config, instruments)?;
        self.cancel_what_is_gone(&heir)?;
        let places: Vec<_> = self.markets.iter().map(|old| heir.place_of(old)).collect();
        heir.account = self.account.renamed(assets);
        for market in &heir.markets {
            heir.account.admit(market.instrument.base);
            heir.account.admit(market.instrument.quote);
        }
        let renamed = |old: InstrumentId| places.get(usize::from(old.0)).copied().flatten();
        for (old, place) in self.markets.into_iter().zip(&places) {
            if let Some(place) = place {
                heir.markets[usize::from(place.0)].inherit(old)?;
            }
        }
        heir.trades = self.trades.renamed(heir.markets.len(), &renamed);
        heir.orders = self.orders;
        heir.orders.keep(&mut |order| {
            let now = renamed(order.terms.instrument);
            order.terms.instrument = now.unwrap_or(order.terms.instrument);
            now.is_some()
        });
        heir.margin = self.margin.renamed(assets);
        heir.now = self.now;
        // As at a real venue, the position mode changes only without orders and positions.
        heir.hedge = hedge;
        heir.multi_assets = self.multi_assets;
        heir.order_id = self.order_id;
        heir.watch_time();
        for place in 0..heir.markets.len() {
            if heir.markets[place].is_futures() {
                heir.margin.dirty = Some(heir.markets[place].instrument.quote);
                heir.settle();
            }
        }
        Ok(heir)
    }

    /// Clears the book of an instrument after a time without public data, so that nothing fills on
    /// old prices. Orders stay open; the next event shows the market again.
    pub fn blind(&mut self, instrument: InstrumentId) {
        if let Some(market) = self.markets.get_mut(usize::from(instrument.0)) {
            market.book = crate::book::Book::new();
        }
    }

    fn place_of(&self, other: &Market) -> Option<InstrumentId> {
        let same = |own: &&Market| {
            own.instrument.surface == other.instrument.surface
                && own.instrument.symbol == other.instrument.symbol
        };
        self.markets.iter().find(same).map(|own| own.id)
    }

    fn cancel_what_is_gone(&mut self, heir: &Self) -> Result<(), SnapshotError> {
        for place in 0..self.markets.len() {
            let market = &self.markets[place];
            if heir.place_of(market).is_some() {
                continue;
            }
            if market.has_position() {
                return Err(SnapshotError::Held(market.instrument.name()));
            }
            self.close_all(market.id, OrderStatus::Canceled);
        }
        self.out.clear();
        Ok(())
    }
}

impl Market {
    /// Takes over the old state of the instrument. Its id, rules, leverage and brackets stay those
    /// of the new configuration.
    fn inherit(&mut self, old: Self) -> Result<(), VenueConfigError> {
        let (own, before) = (&self.instrument, &old.instrument);
        let fixed = [
            ("price_scale", own.price_scale == before.price_scale),
            ("qty_scale", own.qty_scale == before.qty_scale),
        ];
        if let Some((field, _)) = fixed.iter().find(|(_, same)| !same) {
            return Err(VenueConfigError::Fixed {
                instrument: own.name(),
                field,
            });
        }
        let terms = std::mem::replace(self, old);
        self.id = terms.id;
        self.instrument = terms.instrument;
        self.leverage = terms.leverage;
        self.brackets = terms.brackets;
        self.fractions = terms.fractions;
        Ok(())
    }
}

impl Account {
    /// These balances with the assets' new ids.
    fn renamed(&self, assets: &[AssetId]) -> Self {
        let mut renamed = Self::default();
        for (old, new) in self.assets().zip(assets) {
            renamed.admit(*new);
            *renamed.spot_mut(*new) = self.spot(old);
            *renamed.wallet_mut(*new) = self.wallet(old);
        }
        renamed
    }
}
