//! The venue's wire protocol as pure functions: bytes to engine inputs, and engine requests to
//! bytes.
//!
//! Both sides use it: `client-core`, `client` and `session` as the client, `sim-server` and
//! `sim-market` as the venue, and `recording` for recorded frames. `config`, `backtest`, `live`,
//! `cli` and the fault simulator use its names and types.
//!
//! This crate must never contain IO, a clock or async code. The venue's formats change often; the
//! order logic of the engine does not. So every spelling of the venue is known here and nowhere
//! else.
//!
//! A frame of the market, and a signed order:
//!
//! ```
//! use secrecy::SecretString;
//! use windvane_protocol::route;
//! use windvane_protocol::sign::{ApiKey, Credentials, Dialect, Network, Stamp, prepare};
//! use windvane_protocol::wire::Parameters;
//! use windvane_protocol::{BookLevels, Brand, Frame, decode};
//!
//! let frame = br#"{"u":7,"s":"BTCUSDT","b":"61837.63","B":"3.5","a":"61837.64","A":"1.5"}"#;
//! let mut levels = BookLevels::default();
//! let decoded = decode(frame, &mut levels)?;
//! let Frame::Top(top) = decoded.frame else {
//!     panic!("not the best bid and ask");
//! };
//! assert_eq!((top.symbol, top.bid_price.at(2)?), ("BTCUSDT", 6_183_763));
//!
//! let order: Parameters = [
//!     ("symbol", "BTCUSDT"),
//!     ("side", "BUY"),
//!     ("type", "LIMIT"),
//!     ("timeInForce", "GTC"),
//!     ("quantity", "0.5"),
//!     ("price", "61837.63"),
//! ]
//! .into_iter()
//! .collect();
//! let dialect = Dialect {
//!     brand: Brand::new("svc")?,
//!     network: Network::Testnet,
//!     recv_window_ms: Some(5_000),
//! };
//! let credentials = Credentials {
//!     api_key: Some(ApiKey::new("key", SecretString::from("secret"))),
//!     ..Credentials::default()
//! };
//! let stamp = Stamp {
//!     timestamp_ms: 1_700_000_000_000,
//!     nonce_us: 1_700_000_000_000_000,
//!     inner_nonce_us: 1_700_000_000_000_000,
//! };
//! let new_order = route::named("spot.new_order").expect("in the table");
//! let version = Some(route::Version::V1);
//! let request = prepare(new_order, version, &order, &dialect, &credentials, stamp)?;
//! assert_eq!(request.path, "/api/v1/order");
//! assert!(request.body.is_some_and(|body| body.contains("&signature=")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod adapter;
pub mod assets;
pub mod brand;
pub mod deposit;
pub mod error;
pub mod exchange_info;
pub mod frame;
pub mod join;
pub mod json_text;
pub mod local_book;
pub mod market_stream;
pub mod number;
pub mod route;
pub mod sign;
pub mod surface;
pub mod symbol_rules;
pub mod user_stream;
pub mod wire;

mod decode;
mod json_fast_path;
mod json_slow_path;
mod keyed;
mod stream_name;
mod taker_side;

pub use assets::Assets;
pub use brand::Brand;
pub use decode::decode;
pub use frame::{
    BookLevels, BookTop, Decoded, DepthDiff, DepthSnapshot, DiffIds, FillIds, Frame, FrameError,
    MarkPrice, Trade, TradePro,
};
pub use join::{DiffStep, Joiner, Pending, SnapshotStep};
pub use number::{Number, NumberError};
pub use symbol_rules::SymbolRules;
pub use taker_side::TakerSide;
/// For crates that reach the engine only through this crate.
#[doc(hidden)]
pub use windvane_model::{constant, planted};
