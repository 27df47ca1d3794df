//! The rows of the CSV files. Integers are written directly into a byte buffer, without allocation
//! and without decimal types.

use windvane_model::decimal::{AMOUNT_SCALE, Amount};
use windvane_model::ids::Time;
use windvane_model::order::{OrderType, PositionSide, Side, TimeInForce};

use super::curve::DRAWDOWN_SCALE;
use super::text::{push_decimal, push_field, push_integer};

/// First line of `fills.csv`.
pub const FILLS_HEADER: &str = "time_ns,strategy,instrument,client_order_id,order_id,trade_id,side,\
position_side,price,qty,quote_qty,fee,fee_asset,maker,realized_pnl\n";
/// First line of `orders.csv`.
pub const ORDERS_HEADER: &str = "time_ns,strategy,instrument,client_order_id,order_id,side,type,\
time_in_force,price,stop_price,qty,executed_qty,avg_price,status,reject_rule\n";
/// First line of `equity.csv`.
pub const EQUITY_HEADER: &str = "time_ns,equity,cash,unrealized_pnl,drawdown\n";

/// One fill of an own order.
#[derive(Clone, Copy, Debug)]
pub struct FillRow<'a> {
    /// Execution time at the venue.
    pub time: Time,
    /// Id of the strategy.
    pub strategy: &'a str,
    /// Name of the instrument, such as `futures:BTCUSDT`.
    pub instrument: &'a str,
    /// Client order id.
    pub client_order_id: &'a str,
    /// The venue's order id.
    pub order_id: i64,
    /// The venue's trade id, unique per instrument.
    pub trade_id: i64,
    /// Side of the order.
    pub side: Side,
    /// Position side.
    pub position_side: PositionSide,
    /// Price mantissa at `price_scale`.
    pub price: i64,
    /// Decimal places of the price.
    pub price_scale: u8,
    /// Quantity mantissa at `qty_scale`.
    pub qty: i64,
    /// Decimal places of the quantity.
    pub qty_scale: u8,
    /// Price times quantity.
    pub quote_qty: Amount,
    /// Fee, positive when paid.
    pub fee: Amount,
    /// Asset of the fee.
    pub fee_asset: &'a str,
    /// Whether the order rested in the book.
    pub maker: bool,
    /// Realized profit of the fill, before fees.
    pub realized_pnl: Amount,
}

impl FillRow<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        push_integer(out, self.time.0);
        out.push(b',');
        push_identity(out, self.strategy, self.instrument, self.client_order_id);
        push_integer(out, self.order_id);
        out.push(b',');
        push_integer(out, self.trade_id);
        out.push(b',');
        push_word(out, self.side.as_str());
        push_word(out, self.position_side.as_str());
        push_cell(out, self.price.into(), self.price_scale);
        push_cell(out, self.qty.into(), self.qty_scale);
        push_cell(out, self.quote_qty.0, AMOUNT_SCALE);
        push_cell(out, self.fee.0, AMOUNT_SCALE);
        push_field(out, self.fee_asset);
        out.push(b',');
        push_word(out, if self.maker { "true" } else { "false" });
        push_decimal(out, self.realized_pnl.0, AMOUNT_SCALE);
        out.push(b'\n');
    }
}

/// One order in its final state, or one that a local rule rejected.
#[derive(Clone, Copy, Debug)]
pub struct OrderRow<'a> {
    /// Time of its submission or rejection.
    pub time: Time,
    /// Id of the strategy.
    pub strategy: &'a str,
    /// Name of the instrument.
    pub instrument: &'a str,
    /// Client order id. Empty for an order that was rejected before it got one.
    pub client_order_id: &'a str,
    /// The venue's order id, if it assigned one.
    pub order_id: Option<i64>,
    /// Side.
    pub side: Side,
    /// `type` of the order.
    pub order_type: OrderType,
    /// `timeInForce`, if it was sent.
    pub time_in_force: Option<TimeInForce>,
    /// Price mantissa. `None` for market orders.
    pub price: Option<i64>,
    /// Decimal places of `price` and `stop_price`.
    pub price_scale: u8,
    /// Stop price mantissa.
    pub stop_price: Option<i64>,
    /// Quantity mantissa. `None` for an order by quote quantity and for close-position.
    pub qty: Option<i64>,
    /// Decimal places of the quantities.
    pub qty_scale: u8,
    /// Executed quantity mantissa.
    pub executed_qty: i64,
    /// Average price of the executions. `None` if nothing was executed.
    pub avg_price: Option<Amount>,
    /// The venue's status, or `REJECTED`.
    pub status: &'a str,
    /// The rule that refused the order, if any.
    pub reject_rule: Option<&'a str>,
}

impl OrderRow<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        push_integer(out, self.time.0);
        out.push(b',');
        push_identity(out, self.strategy, self.instrument, self.client_order_id);
        if let Some(order_id) = self.order_id {
            push_integer(out, order_id);
        }
        out.push(b',');
        push_word(out, self.side.as_str());
        push_word(out, self.order_type.as_str());
        push_word(out, self.time_in_force.map_or("", TimeInForce::as_str));
        push_optional(out, self.price.map(i128::from), self.price_scale);
        push_optional(out, self.stop_price.map(i128::from), self.price_scale);
        push_optional(out, self.qty.map(i128::from), self.qty_scale);
        push_cell(out, self.executed_qty.into(), self.qty_scale);
        push_optional(out, self.avg_price.map(|amount| amount.0), AMOUNT_SCALE);
        push_word(out, self.status);
        push_field(out, self.reject_rule.unwrap_or_default());
        out.push(b'\n');
    }
}

/// The account at the end of a virtual second. The writer computes the drawdown.
#[derive(Clone, Copy, Debug)]
pub struct EquityRow {
    /// Time of the end of the second.
    pub time: Time,
    /// Cash plus unrealized profit, in the account's quote asset.
    pub equity: Amount,
    /// Wallet balance.
    pub cash: Amount,
    /// Profit of open positions at mark.
    pub unrealized_pnl: Amount,
}

impl EquityRow {
    pub(super) fn write(&self, drawdown: i128, out: &mut Vec<u8>) {
        push_integer(out, self.time.0);
        out.push(b',');
        push_cell(out, self.equity.0, AMOUNT_SCALE);
        push_cell(out, self.cash.0, AMOUNT_SCALE);
        push_cell(out, self.unrealized_pnl.0, AMOUNT_SCALE);
        push_decimal(out, drawdown, DRAWDOWN_SCALE);
        out.push(b'\n');
    }
}

fn push_identity(out: &mut Vec<u8>, strategy: &str, instrument: &str, client_order_id: &str) {
    for text in [strategy, instrument, client_order_id] {
        push_field(out, text);
        out.push(b',');
    }
}

/// Writes a value from a fixed list, which never needs quotes.
fn push_word(out: &mut Vec<u8>, word: &str) {
    out.extend_from_slice(word.as_bytes());
    out.push(b',');
}

fn push_cell(out: &mut Vec<u8>, mantissa: i128, scale: u8) {
    push_decimal(out, mantissa, scale);
    out.push(b',');
}

fn push_optional(out: &mut Vec<u8>, mantissa: Option<i128>, scale: u8) {
    if let Some(mantissa) = mantissa {
        push_decimal(out, mantissa, scale);
    }
    out.push(b',');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn fill() -> FillRow<'static> {
        FillRow {
            time: Time(1_723_161_255_088_176_367),
            strategy: "mm-btc",
            instrument: "futures:BTCUSDT",
            client_order_id: "mm-btc.sg1x2y.1",
            order_id: 17,
            trade_id: 42,
            side: Side::Sell,
            position_side: PositionSide::Both,
            price: 618_003,
            price_scale: 1,
            qty: 6,
            qty_scale: 3,
            quote_qty: Amount(37_080_180_000),
            fee: Amount(7_416_036),
            fee_asset: "USDT",
            maker: true,
            realized_pnl: Amount(-120_000),
        }
    }

    #[test]
    fn a_fill_has_the_columns_of_its_header() {
        let row = text(|out| fill().write(out));
        assert_eq!(
            row,
            "1723161255088176367,mm-btc,futures:BTCUSDT,mm-btc.sg1x2y.1,17,42,SELL,BOTH,61800.3,\
             0.006,370.8018,0.07416036,USDT,true,-0.0012\n"
        );
        assert_eq!(row.matches(',').count(), FILLS_HEADER.matches(',').count());
    }

    #[test]
    fn missing_order_values_are_empty_fields() {
        let row = OrderRow {
            time: Time(5),
            strategy: "mm-btc",
            instrument: "spot:BTCUSDT",
            client_order_id: "",
            order_id: None,
            side: Side::Buy,
            order_type: OrderType::Market,
            time_in_force: None,
            price: None,
            price_scale: 2,
            stop_price: None,
            qty: None,
            qty_scale: 5,
            executed_qty: 0,
            avg_price: None,
            status: "REJECTED",
            reject_rule: Some("MIN_NOTIONAL"),
        };
        let written = text(|out| row.write(out));
        assert_eq!(
            written,
            "5,mm-btc,spot:BTCUSDT,,,BUY,MARKET,,,,,0,,REJECTED,MIN_NOTIONAL\n"
        );
        let full = OrderRow {
            client_order_id: "mm-btc.1.1",
            order_id: Some(9),
            order_type: OrderType::Limit,
            time_in_force: Some(TimeInForce::Gtx),
            price: Some(6_180_030),
            stop_price: Some(6_180_000),
            qty: Some(100),
            executed_qty: 50,
            avg_price: Some(Amount(6_180_030_000_000)),
            status: "CANCELED",
            reject_rule: None,
            ..row
        };
        let written = text(|out| full.write(out));
        assert_eq!(
            written,
            "5,mm-btc,spot:BTCUSDT,mm-btc.1.1,9,BUY,LIMIT,GTX,61800.3,61800,0.001,0.0005,61800.3,\
             CANCELED,\n"
        );
        assert_eq!(
            written.matches(',').count(),
            ORDERS_HEADER.matches(',').count()
        );
    }

    #[test]
    fn a_second_of_equity_states_the_drawdown_as_a_fraction() {
        let row = EquityRow {
            time: Time(1_000_000_000),
            equity: Amount(999_950_000_000),
            cash: Amount(1_000_000_000_000),
            unrealized_pnl: Amount(-50_000_000),
        };
        let written = text(|out| row.write(5_000, out));
        assert_eq!(written, "1000000000,9999.5,10000,-0.5,0.00005\n");
        assert_eq!(
            written.matches(',').count(),
            EQUITY_HEADER.matches(',').count()
        );
    }
}
