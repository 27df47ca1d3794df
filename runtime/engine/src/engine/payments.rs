//! Payments that account events report: funding, transfers and charges.
//!
//! A venue may send its last events again on a new connection, with a new event time. The event of
//! a payment keeps its transaction time, its change and the balance after it. Two payments of one
//! moment may have the same amount, but they leave different balances.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::ids::{AssetId, Time};
use windvane_model::protocol::{AccountUpdate, BalanceUpdate};
use windvane_model::truth::IncomeKind;

use super::Engine;
use super::snapshot::Names;

/// At most this many payments are remembered.
const PAYMENTS_MAX: usize = 64;

/// Payments of events that were taken, the newest at the end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StatedPayments(VecDeque<Payment>);

/// A payment as its event reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Payment {
    kind: IncomeKind,
    asset: AssetId,
    /// `bc`.
    change: Amount,
    /// `wb`.
    total: Amount,
    /// `T`.
    made: Time,
}

impl Engine {
    /// Whether an event of this payment was taken before.
    pub(super) fn is_repeated(&self, update: &AccountUpdate, balance: &BalanceUpdate) -> bool {
        let payment = self.payment_of(update, balance);
        payment.is_some_and(|payment| self.stated_payments.0.contains(&payment))
    }

    /// Remembers the payment of an event.
    pub(super) fn remember_payment(&mut self, update: &AccountUpdate, balance: &BalanceUpdate) {
        if let Some(payment) = self.payment_of(update, balance) {
            self.stated_payments.remember(payment);
        }
    }

    /// The payment of an event; `None` if the event is about a fill or has no transaction time.
    fn payment_of(&self, update: &AccountUpdate, balance: &BalanceUpdate) -> Option<Payment> {
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

    /// Takes over the payments that an earlier process received.
    pub(super) fn inherit_payments(&mut self, from: &Self, names: &Names) {
        for payment in &from.stated_payments.0 {
            if let Some(asset) = names.assets.get(&payment.asset) {
                let asset = *asset;
                self.stated_payments.remember(Payment { asset, ..*payment });
            }
        }
    }
}

impl StatedPayments {
    fn remember(&mut self, payment: Payment) {
        if self.0.len() >= PAYMENTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(payment);
    }
}
