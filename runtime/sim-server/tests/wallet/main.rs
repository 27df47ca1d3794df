//! Wallet routes over real HTTP: requests built by the signing functions, and requests that a
//! server must refuse.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../common/http.rs"]
mod http;
#[path = "../common/keys.rs"]
mod keys;

mod agents;
mod api_keys;
mod fixture;
mod info;
mod transfers;
mod withdrawals;
