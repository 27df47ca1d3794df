//! When requests may leave the outbox.

use windvane_model::{ClientOrderId, InstrumentId, NewOrder, OrderTerms, OrderType, Request, Side};
use windvane_session::Outbox;

fn id(text: &str) -> ClientOrderId {
    match ClientOrderId::new(text) {
        Ok(id) => id,
        Err(error) => panic!("{error}"),
    }
}

fn place(text: &str) -> Request {
    Request::Place(NewOrder {
        client_order_id: id(text),
        terms: OrderTerms::new(InstrumentId(0), Side::Buy, OrderType::Market),
    })
}

fn cancel(text: &str) -> Request {
    Request::Cancel {
        instrument: InstrumentId(0),
        client_order_id: id(text),
    }
}

#[test]
fn an_order_waits_for_its_record_and_a_cancel_does_not() {
    let mut outbox = Outbox::default();
    assert_eq!(outbox.push(5, place("a.1.1")), None);
    assert_eq!(outbox.push(0, cancel("a.1.9")), Some(cancel("a.1.9")));
    assert!(outbox.release(4).is_empty());
    assert_eq!(outbox.release(5), [place("a.1.1")]);
    assert_eq!(outbox.push(5, place("a.1.2")), Some(place("a.1.2")));
    assert!(outbox.is_empty());
}

#[test]
fn a_cancel_never_overtakes_its_order() {
    let mut outbox = Outbox::default();
    outbox.push(5, place("a.1.1"));
    outbox.push(7, place("a.1.2"));
    assert_eq!(outbox.push(0, cancel("a.1.2")), None);
    assert_eq!(outbox.release(5), [place("a.1.1")]);
    assert_eq!(outbox.len(), 2);
    assert_eq!(outbox.release(7), [place("a.1.2"), cancel("a.1.2")]);
}

#[test]
fn durability_never_goes_back() {
    let mut outbox = Outbox::default();
    outbox.release(9);
    outbox.release(3);
    assert_eq!(outbox.push(9, place("a.1.1")), Some(place("a.1.1")));
}
