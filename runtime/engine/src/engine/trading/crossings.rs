//! Post-only orders that end at once because they would have traded. The strategy quotes on an old
//! book, or nearer to the market than its speed allows. It pauses as after repeated refusals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::effect::Notice;
use windvane_model::ids::OrderSeq;
use windvane_model::order::TimeInForce;
use windvane_model::order_state::OrderState;
use windvane_model::trading::Refusals;

use super::super::Engine;
use super::Party;
use super::evidence::{FREE_REFUSALS, count_one};

/// A post-only order that ends by itself and unfilled within this time never rested.
const AT_ONCE_MS: i64 = 2_000;

/// Series of such orders.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in super::super) struct Crossings(pub(super) BTreeMap<Party, Refusals>);

impl Engine {
    /// Notes the end of an order. If it rested or filled, it ends the series.
    pub(in super::super) fn note_post_only_end(&mut self, seq: OrderSeq) {
        let now = self.now;
        let Some(order) = self.orders.known(seq) else {
            return;
        };
        let terms = &order.terms;
        let refused = matches!(order.state, OrderState::Rejected);
        if self.live.is_none() || terms.time_in_force != Some(TimeInForce::Gtx) || refused {
            return;
        }
        let party = (order.strategy, terms.instrument, terms.side);
        let rested = order.executed_qty > 0
            || order.cancel_wanted
            || now > order.submitted.plus_ms(AT_ONCE_MS);
        if rested {
            self.crossings.0.remove(&party);
            return;
        }
        let series = self.crossings.0.entry(party).or_default();
        if count_one(series, now, 0, None) == FREE_REFUSALS + 1 {
            self.notices.push_back(Notice::Crossed {
                time: now,
                strategy: party.0,
                instrument: party.1,
                side: party.2,
            });
        }
    }
}
