//! The venue's statements about the account, and their comparison with the books: account
//! snapshots and events, the list of the account's trades, incomes, commissions that came late, and
//! positions that outside parties or the venue closed. Its types remember statements. [`Evidence`]
//! compares them with the books and changes nothing. Only the engine uses this crate, and it books
//! the results.
//!
//! This crate must not contain changes of books and orders, requests, events for strategies, IO, a
//! clock, floating point, or any other crate of this workspace but the model.

#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::float_cmp)]

pub mod account_events;
pub mod account_history;
pub mod agreement;
pub mod asset_prices;
pub mod close_evidence;
pub mod close_gains;
pub mod close_values;
pub mod comparison;
pub mod connection;
pub mod estimates;
mod evidence;
pub mod external_orders;
pub mod fee_costs;
pub mod fee_differences;
pub mod fills_from_totals;
pub mod forced;
pub mod forced_close_evidence;
pub mod forced_order_requests;
pub mod forced_out_of_order;
pub mod forced_reports;
pub mod income;
pub mod instances;
pub mod lag;
pub mod late_fees;
pub mod mark_price_age;
pub mod missing_coins;
pub mod newest_orders;
pub mod outside_closes;
pub mod outside_orders;
pub mod payments;
pub mod position;
pub mod recent_orders;
pub mod reconciled_fills;
pub mod reordered_fills;
pub mod stale_reports;
pub mod stated_balances;
pub mod stated_fees;
pub mod stated_positions;
pub mod transfers;
pub mod unbooked_fills;
pub mod unconfigured_positions;
pub mod user_stream;

pub use evidence::{Connections, Evidence, NO_CONNECTIONS, NO_DEGRADED_REASONS};
pub use position::PositionKey;
