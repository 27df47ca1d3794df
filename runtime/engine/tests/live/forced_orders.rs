//! The venue's list of the account's trades has a close by an outside order, and the list of forced
//! orders is rejected or stale. A query for the order of the trade shows whether the venue placed
//! it.

use windvane_model::forced::ForcedClose;
use windvane_model::live::LiveInput;
use windvane_model::protocol::Refusal;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{OpenOrder, StateReport, Subject};
use windvane_model::{
    Amount, ClientOrderId, OrderStatus, OrderType, Outcome, Qty, Request, Side, Surface,
    VenueOrderId,
};

use super::forced::{answer_with_order, held, holding, minute, refused_route, reports};
use super::reconciliation::trade;
use super::succession::{killed, next_config};
use super::support::{Account, BTC, instrument};
use super::world::{nothing, order_by_hand, position};

const FORCED: VenueOrderId = VenueOrderId(500);
const NO_SUCH_ORDER: i32 = -2013;

/// The venue's response to a query for the order of the close.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// It has the client order id of a liquidation.
    Named,
    /// It has the type of a liquidation, but another id.
    Typed,
    /// It has the status of an ADL order.
    Status,
    ByHand,
    NotFound,
    /// The venue finds it only after ten seconds.
    Late,
}

/// The venue's response to a query for its forced orders.
#[derive(Clone, Copy, Debug)]
enum List {
    Refused,
    Empty,
}

impl Order {
    fn response(self, asked_for_s: i64) -> Outcome<StateReport> {
        let refused = Outcome::Refused(Refusal {
            code: NO_SUCH_ORDER,
            msg: String::new(),
        });
        let mut order = order_by_hand(BTC, FORCED);
        order.report.executed_qty = Qty(40);
        order.report.orig_qty = Qty(40);
        order.report.cum_quote = instrument().notional(900, 40);
        let named = |order: &mut OpenOrder| {
            order.report.client_order_id = ClientOrderId::new("autoclose-3").unwrap();
        };
        match self {
            Self::Typed => order.terms.order_type = OrderType::Liquidation,
            Self::Status => order.report.status = OrderStatus::NewAdl,
            Self::ByHand => {}
            Self::NotFound => return refused,
            Self::Late if asked_for_s < 10 => return refused,
            Self::Named | Self::Late => named(&mut order),
        }
        Outcome::Done(StateReport::OutsideOrder(Box::new(order)))
    }

    fn kind(self) -> Option<ForcedClose> {
        match self {
            Self::Named | Self::Typed | Self::Late => Some(ForcedClose::Liquidation),
            Self::Status => Some(ForcedClose::Adl),
            Self::NotFound => Some(ForcedClose::Unreported),
            Self::ByHand => None,
        }
    }
}

/// Lets seconds pass in which the list of the account's trades has the close, and account snapshots
/// show it.
fn closed(account: &mut Account, order: Order, list: List, seconds: i64) {
    let mut sold = trade(FORCED.0, 9, 40);
    sold.side = Side::Sell;
    sold.time = account.now;
    let left = account.own_account().balances[0].total - Amount(440_000_000);
    let forced = match list {
        List::Refused => refused_route(),
        List::Empty => Outcome::Done(StateReport::ForcedOrders(Vec::new())),
    };
    let began = account.now;
    for _ in 0..2 * seconds {
        let asked_for_s = (account.now.0 - began.0) / 1_000_000_000;
        let order = order.response(asked_for_s);
        let read = Some((position(0), left));
        answer_with_order(account, &[sold], read, &forced, &order);
        account.pass(499);
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
}

const ORDERS: [Order; 6] = [
    Order::Named,
    Order::Typed,
    Order::Status,
    Order::ByHand,
    Order::NotFound,
    Order::Late,
];

#[test]
fn the_order_of_a_listed_close_shows_its_kind() {
    for order in ORDERS {
        for list in [List::Refused, List::Empty] {
            for cut in [true, false] {
                let mut account = holding(30, 10);
                minute(&mut account, &[], None, &refused_route());
                if cut {
                    let surface = Surface::Futures;
                    account.live(LiveInput::StreamDown { surface });
                    account.live(LiveInput::StreamUp { surface });
                }
                account.notices.clear();
                closed(&mut account, order, list, 60);
                let case = format!("{order:?} {list:?}, stream cut: {cut}");
                assert_eq!(held(&account), [0, 0, 0], "{case}");
                let reported = reports(&account);
                let kinds: Vec<_> = reported.iter().map(|one| (one.kind, one.qty)).collect();
                let expected: Vec<_> = order.kind().map(|kind| (kind, 40)).into_iter().collect();
                assert_eq!(kinds, expected, "{case}");
                let halted = account.engine.run_state() == RunState::Halted;
                assert_eq!(halted, order.kind().is_some(), "{case}");
                let shares: i64 = reported
                    .iter()
                    .flat_map(|one| &one.shares)
                    .map(|one| one.qty)
                    .sum();
                assert_eq!(shares, if halted { 40 } else { 0 }, "{case}");
            }
        }
    }
}

#[test]
fn a_liquidation_while_the_process_was_down_is_found_by_its_order() {
    for list in [List::Refused, List::Empty] {
        let mut account = holding(30, 10);
        minute(&mut account, &[], None, &refused_route());
        let mut account = killed(account, next_config());
        account.begin();
        closed(&mut account, Order::Named, list, 60);
        assert_eq!(held(&account), [0, 0, 0]);
        assert_eq!(reports(&account).len(), 1, "{list:?}");
        assert_eq!(account.engine.run_state(), RunState::Halted);
    }
}

#[test]
fn a_close_that_an_event_reports_starts_no_query() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let mut by_hand = super::forced::sold(9, 40, 40, 40);
    by_hand.order_id = VenueOrderId(501);
    account.update(by_hand);
    let asks = |request: &Request| matches!(request, Request::Read(Subject::OutsideOrder { .. }));
    while let Some(subject) = account.take_question() {
        account.tell(subject, nothing(subject));
        assert!(!account.sent.iter().any(asks));
    }
}
