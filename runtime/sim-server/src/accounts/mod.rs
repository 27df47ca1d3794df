//! The accounts: keys, agents, nonces, listen keys, history, and a matching engine each.

mod account;
mod history;
mod keys;
mod listen_key;
mod nonces;
mod past;

#[cfg(test)]
pub(crate) use account::venue;
pub(crate) use account::{
    Account, Agent, ApiKey, Grants, MAKER_FEE, ORDER_IDS, TAKER_FEE, of_user,
};
pub(crate) use history::{Income, MarginChange, TradeRecord};
pub use keys::AccountKeys;
pub(crate) use keys::{drawn, made};
pub(crate) use nonces::NonceError;
pub(crate) use past::{Moment, Past};
