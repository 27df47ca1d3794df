//! A sample strategy.
