//! The admin server and its client over real sockets on 127.0.0.1.

mod access;
mod asking;
mod commands;
mod instance;
mod metrics;
mod slow;
mod start;
mod unit;
