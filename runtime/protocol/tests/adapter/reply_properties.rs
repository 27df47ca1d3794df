//! Decoding of responses with random damage.

use proptest::prelude::*;
use windvane_model::state_report::Subject;
use windvane_model::{Reply, Request, Surface};
use windvane_protocol::adapter::CallResult;
use windvane_wire_examples as examples;

use super::fixture::{FUTURES, SPOT, adapter, documented, id, limit, order};

/// Every kind of request.
fn requests() -> Vec<Request> {
    let client_order_id = id("mm:1");
    let mut all = vec![Request::SetPositionMode { hedge: true }];
    for instrument in [FUTURES, SPOT] {
        let orders = vec![
            order("mm:1", limit(instrument)),
            order("b", limit(instrument)),
        ];
        let surface = if instrument == SPOT {
            Surface::Spot
        } else {
            Surface::Futures
        };
        all.extend([
            Request::Place(orders[0]),
            Request::PlaceBatch(orders),
            Request::Cancel {
                instrument,
                client_order_id,
            },
            Request::CancelBatch {
                instrument,
                client_order_ids: vec![client_order_id, id("b")],
            },
            Request::CancelAll { instrument },
            Request::Countdown {
                instrument,
                countdown_ms: 1,
            },
            Request::Query {
                instrument,
                client_order_id,
            },
            Request::SetLeverage {
                instrument,
                leverage: 1,
            },
            Request::Read(Subject::OpenOrders { surface }),
            Request::Read(Subject::Account { surface }),
            Request::Read(Subject::Trades {
                instrument,
                from: None,
            }),
        ]);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Example responses with changed digits, quotes and braces.
    #[test]
    fn no_response_causes_a_panic(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[-0-9e.\"{}\\[\\],a-z]{0,30}"), 0..4),
    ) {
        let examples = examples::all();
        let mut body = which.get(&examples).answer.to_owned();
        for (at, text) in edits {
            let at = at.index(body.len() + 1);
            let end = body.len().min(at + text.len() / 2);
            if body.is_ascii() {
                body.replace_range(at..end, &text);
            }
        }
        let results = [CallResult::Done(&body); 3];
        for request in requests() {
            for adapter in [adapter(), documented()] {
                let orders = match &request {
                    Request::PlaceBatch(orders) => orders.len(),
                    Request::CancelBatch { client_order_ids, .. } => client_order_ids.len(),
                    _ => 1,
                };
                let mut decoded = adapter.decode_reply(&request, &results).items;
                // A read of the account may also give leverage and margin modes.
                if matches!(request, Request::Read(Subject::Account { .. })) {
                    decoded.retain(|reply| !matches!(reply, Reply::Margins(_) | Reply::Stated(_)));
                }
                prop_assert_eq!(decoded.len(), orders);
            }
        }
    }
}
