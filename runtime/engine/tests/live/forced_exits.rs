//! Open exit orders when the venue closes a part of a position.

use windvane_model::forced::OnLiquidation;
use windvane_model::{OrderStatus, Outcome, Request, Side};

use super::forced::{held, holding, marked, react, sold};
use super::support::{MM, limit, report as order_report};

/// The full exit order would open a position on the other side.
#[test]
fn a_forced_close_cancels_exits_larger_than_the_position() {
    for (closed, is_cancelled) in [(20, true), (0, false)] {
        let mut account = holding(30, 10);
        react(&mut account, OnLiquidation::Continue);
        let exit = account.submit(MM, limit(Side::Sell, 1100, 30));
        account.confirm_countdowns();
        let id = account.id(MM, exit);
        account.placed(id, Outcome::Done(order_report(id, OrderStatus::New, 0)));
        account.sent.clear();
        if closed > 0 {
            account.update(marked(sold(9, closed, closed, closed)));
            assert_eq!(held(&account), [20, 15, 5]);
        }
        let cancels = account.sent.iter();
        let cancels = cancels.filter(|sent| matches!(sent, Request::Cancel { .. }));
        assert_eq!(cancels.count(), usize::from(is_cancelled));
    }
}
