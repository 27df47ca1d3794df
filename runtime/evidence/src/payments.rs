//! Payments that account events report: funding, transfers and charges.
//!
//! A venue may send its last events again on a new connection, with a new event time. The event of
//! a payment keeps its transaction time, its change and the balance after it. Two payments of one
//! moment may have the same amount, but they leave different balances.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::ids::{AssetId, Time};
use windvane_model::names::Names;
use windvane_model::protocol::{AccountUpdate, BalanceUpdate};
use windvane_model::state_report::IncomeKind;

use crate::Evidence;

/// At most this many payments are remembered.
const PAYMENTS_MAX: usize = 64;

/// Payments of events that were taken, the newest at the end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct StatedPayments(VecDeque<Payment>);

/// A payment as its event reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payment {
    kind: IncomeKind,
    asset: AssetId,
    /// `bc`.
    change: Amount,
    /// `wb`.
    total: Amount,
    /// `T`.
    made: Time,
}

impl StatedPayments {
    /// Whether an event of this payment was taken before.
    pub fn contains(&self, payment: &Payment) -> bool {
        self.0.contains(payment)
    }

    /// Remembers the payment of an event.
    pub fn remember(&mut self, payment: Payment) {
        if self.0.len() >= PAYMENTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(payment);
    }

    /// Takes over the payments that an earlier process received.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        for payment in &old.0 {
            if let Some(asset) = names.assets.get(&payment.asset) {
                let asset = *asset;
                self.remember(Payment { asset, ..*payment });
            }
        }
    }
}

impl Evidence<'_> {
    /// The payment of an event; `None` if the event is about a fill or has no transaction time.
    pub fn payment_of(&self, update: &AccountUpdate, balance: &BalanceUpdate) -> Option<Payment> {
        let made = update.transaction_time;
        let kind = self
            .income_kind(update)
            .filter(|_| made != Time::default())?;
        Some(Payment {
            kind,
            asset: balance.asset,
            change: balance.change,
            total: balance.total,
            made,
        })
    }
}
