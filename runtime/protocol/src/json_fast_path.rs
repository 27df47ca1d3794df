//! The fast path: frames with the keys in the order in which the venue writes them, without white
//! space. Anything else is `None`, never an error: the general parser decides it.

use crate::frame::{
    BookLevels, BookTop, Decoded, DepthDiff, DiffIds, FillIds, Frame, Trade, TradePro, shown,
};
use crate::number::{Number, scan_quoted};
use crate::stream_name::is_partial_depth;
use crate::surface;

pub(crate) fn decode<'a>(text: &'a [u8], levels: &mut BookLevels) -> Option<Decoded<'a>> {
    let mut cursor = Cursor { rest: text };
    let mut stream = None;
    if cursor.skip(b"{\"stream\":\"") {
        stream = Some(cursor.text()?);
        cursor.expect(b",\"data\":")?;
    }
    let decoded = if cursor.skip(b"{\"e\":\"bookTicker\",\"u\":") {
        futures_top(&mut cursor)
    } else if cursor.skip(b"{\"e\":\"trade\",\"E\":") {
        trade(&mut cursor)
    } else if cursor.skip(b"{\"e\":\"depthUpdate\",\"E\":") {
        if is_partial_depth(stream) {
            return None;
        }
        depth(&mut cursor, levels)
    } else if cursor.skip(b"{\"u\":") {
        spot_top(&mut cursor)
    } else if cursor.skip(b"{\"e\":\"aggTrade\",\"E\":") {
        aggregate(&mut cursor)
    } else if cursor.skip(b"{\"e\":\"tradepro\",\"E\":") {
        trade_pro(&mut cursor)
    } else {
        None
    }?;
    if stream.is_some() {
        cursor.expect(b"}")?;
    }
    cursor
        .rest
        .is_empty()
        .then_some(Decoded { stream, ..decoded })
}

/// `u` (its value comes next), s, b, B, a, A, T, E.
fn futures_top<'a>(cursor: &mut Cursor<'a>) -> Option<Decoded<'a>> {
    let mut top = quotes(cursor)?;
    cursor.expect(b",\"T\":")?;
    top.transaction_ms = cursor.integer()?;
    cursor.expect(b",\"E\":")?;
    top.event_ms = cursor.integer()?;
    cursor.expect(b"}")?;
    Some(Decoded {
        stream: None,
        surface: Some(surface::of_top(true)),
        frame: Frame::Top(top),
    })
}

/// `u` (its value comes next), s, b, B, a, A.
fn spot_top<'a>(cursor: &mut Cursor<'a>) -> Option<Decoded<'a>> {
    let top = quotes(cursor)?;
    cursor.expect(b"}")?;
    Some(Decoded {
        stream: None,
        surface: Some(surface::of_top(false)),
        frame: Frame::Top(top),
    })
}

fn quotes<'a>(cursor: &mut Cursor<'a>) -> Option<BookTop<'a>> {
    let update_id = cursor.integer()?;
    cursor.expect(b",\"s\":\"")?;
    let symbol = cursor.text()?;
    cursor.expect(b",\"b\":\"")?;
    let bid_price = cursor.number()?;
    cursor.expect(b",\"B\":\"")?;
    let bid_qty = cursor.number()?;
    cursor.expect(b",\"a\":\"")?;
    let ask_price = cursor.number()?;
    cursor.expect(b",\"A\":\"")?;
    let ask_qty = cursor.number()?;
    Some(BookTop {
        symbol,
        update_id,
        event_ms: 0,
        transaction_ms: 0,
        bid_price,
        bid_qty,
        ask_price,
        ask_qty,
    })
}

/// Futures: `E` (its value comes next), T, s, t, p, q, X, m. Spot: E, s, t, p, q, T, m, M.
fn trade<'a>(cursor: &mut Cursor<'a>) -> Option<Decoded<'a>> {
    let event_ms = cursor.integer()?;
    let mut trade_ms = None;
    if cursor.skip(b",\"T\":") {
        trade_ms = Some(cursor.integer()?);
    }
    cursor.expect(b",\"s\":\"")?;
    let symbol = cursor.text()?;
    cursor.expect(b",\"t\":")?;
    let id = cursor.integer()?;
    cursor.expect(b",\"p\":\"")?;
    let price = cursor.number()?;
    cursor.expect(b",\"q\":\"")?;
    let qty = cursor.number()?;
    let trade_ms = if let Some(trade_ms) = trade_ms {
        trade_ms
    } else {
        cursor.expect(b",\"T\":")?;
        cursor.integer()?
    };
    let has_execution_type = cursor.skip(b",\"X\":\"");
    if has_execution_type {
        cursor.text()?;
    }
    let (buyer_is_maker, has_ignored_flag) = cursor.maker_and_end()?;
    Some(Decoded {
        stream: None,
        surface: surface::of_trade(has_execution_type, has_ignored_flag),
        frame: Frame::Trade(Trade {
            symbol,
            aggregate: false,
            event_ms,
            trade_ms,
            id,
            price,
            qty,
            buyer_is_maker,
            fills: None,
        }),
    })
}

/// `E` (its value comes next), T, s, t, p, q, h, m.
fn trade_pro<'a>(cursor: &mut Cursor<'a>) -> Option<Decoded<'a>> {
    let event_ms = cursor.integer()?;
    cursor.expect(b",\"T\":")?;
    let trade_ms = cursor.integer()?;
    cursor.expect(b",\"s\":\"")?;
    let symbol = cursor.text()?;
    cursor.expect(b",\"t\":")?;
    let id = cursor.integer()?;
    cursor.expect(b",\"p\":\"")?;
    let price = cursor.number()?;
    cursor.expect(b",\"q\":\"")?;
    let qty = cursor.number()?;
    cursor.expect(b",\"h\":\"")?;
    let hash = cursor.text()?;
    cursor.expect(b",\"m\":[\"")?;
    let taker = cursor.text()?;
    cursor.expect(b",\"")?;
    let maker = cursor.text()?;
    cursor.expect(b"]}")?;
    Some(Decoded {
        stream: None,
        surface: None,
        frame: Frame::TradePro(TradePro {
            symbol,
            event_ms,
            trade_ms,
            id,
            price,
            qty,
            hash: Some(hash),
            taker: shown(taker),
            maker: shown(maker),
        }),
    })
}

/// `E` (its value comes next), then s and a in either order, p, q, f, l, T, m, M on spot.
fn aggregate<'a>(cursor: &mut Cursor<'a>) -> Option<Decoded<'a>> {
    let event_ms = cursor.integer()?;
    let (symbol, id);
    if cursor.skip(b",\"s\":\"") {
        symbol = cursor.text()?;
        cursor.expect(b",\"a\":")?;
        id = cursor.integer()?;
    } else {
        cursor.expect(b",\"a\":")?;
        id = cursor.integer()?;
        cursor.expect(b",\"s\":\"")?;
        symbol = cursor.text()?;
    }
    cursor.expect(b",\"p\":\"")?;
    let price = cursor.number()?;
    cursor.expect(b",\"q\":\"")?;
    let qty = cursor.number()?;
    cursor.expect(b",\"f\":")?;
    let first = cursor.integer()?;
    cursor.expect(b",\"l\":")?;
    let last = cursor.integer()?;
    cursor.expect(b",\"T\":")?;
    let trade_ms = cursor.integer()?;
    let (buyer_is_maker, has_ignored_flag) = cursor.maker_and_end()?;
    Some(Decoded {
        stream: None,
        surface: surface::of_trade(false, has_ignored_flag),
        frame: Frame::Trade(Trade {
            symbol,
            aggregate: true,
            event_ms,
            trade_ms,
            id,
            price,
            qty,
            buyer_is_maker,
            fills: Some(FillIds { first, last }),
        }),
    })
}

/// `E` (its value comes next), T on futures, s, U, u, pu on futures, b, a.
fn depth<'a>(cursor: &mut Cursor<'a>, levels: &mut BookLevels) -> Option<Decoded<'a>> {
    let event_ms = cursor.integer()?;
    let has_transaction_time = cursor.skip(b",\"T\":");
    let transaction_ms = if has_transaction_time {
        cursor.integer()?
    } else {
        0
    };
    cursor.expect(b",\"s\":\"")?;
    let symbol = cursor.text()?;
    cursor.expect(b",\"U\":")?;
    let first = cursor.integer()?;
    cursor.expect(b",\"u\":")?;
    let last = cursor.integer()?;
    let mut previous = None;
    if cursor.skip(b",\"pu\":") {
        previous = Some(cursor.integer()?);
    }
    cursor.expect(b",\"b\":")?;
    cursor.levels(levels)?;
    levels.end_bids();
    cursor.expect(b",\"a\":")?;
    cursor.levels(levels)?;
    cursor.expect(b"}")?;
    Some(Decoded {
        stream: None,
        surface: Some(surface::of_depth(previous.is_some(), has_transaction_time)),
        frame: Frame::Depth(DepthDiff {
            symbol,
            event_ms,
            transaction_ms,
            ids: DiffIds {
                first,
                last,
                previous,
            },
        }),
    })
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Consumes `literal` if it comes next.
    #[inline]
    fn skip(&mut self, literal: &[u8]) -> bool {
        match self.rest.strip_prefix(literal) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    #[inline]
    fn expect(&mut self, literal: &[u8]) -> Option<()> {
        self.skip(literal).then_some(())
    }

    /// Text up to the closing quote, which is consumed too. The text must be ASCII without escapes,
    /// so that it needs no decoding.
    #[inline]
    fn text(&mut self) -> Option<&'a str> {
        let plain = |b: u8| (0x20..0x7f).contains(&b) && b != b'\\';
        let end = self.rest.iter().position(|&b| b == b'"' || !plain(b))?;
        if self.rest[end] != b'"' {
            return None;
        }
        let text = std::str::from_utf8(&self.rest[..end]).ok()?;
        self.rest = &self.rest[end + 1..];
        Some(text)
    }

    /// A whole number in JSON syntax, at most 18 digits, not negative.
    #[inline]
    fn integer(&mut self) -> Option<i64> {
        let mut value = 0_i64;
        let mut len = 0;
        while let Some(digit) = self.rest.get(len).map(|b| b.wrapping_sub(b'0')) {
            if digit > 9 || len > 18 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
            len += 1;
        }
        let leading_zero = len > 1 && self.rest[0] == b'0';
        if len == 0 || len > 18 || leading_zero {
            return None;
        }
        // A fraction or an exponent fails at the next expected literal.
        self.rest = &self.rest[len..];
        Some(value)
    }

    /// A decimal up to the closing quote, which is consumed too. The opening quote has been
    /// consumed already.
    #[inline]
    fn number(&mut self) -> Option<Number> {
        let (number, taken) = scan_quoted(self.rest)?;
        self.rest = &self.rest[taken..];
        Some(number)
    }

    /// `,"m":BOOL`, optionally `,"M":BOOL`, and the closing brace. Returns whether the buyer was
    /// the maker, and whether there was an `M`.
    #[inline]
    fn maker_and_end(&mut self) -> Option<(bool, bool)> {
        self.expect(b",\"m\":")?;
        let maker = self.boolean()?;
        let ignored = self.skip(b",\"M\":");
        if ignored {
            self.boolean()?;
        }
        self.expect(b"}")?;
        Some((maker, ignored))
    }

    #[inline]
    fn boolean(&mut self) -> Option<bool> {
        if self.skip(b"true") {
            Some(true)
        } else {
            self.expect(b"false").map(|()| false)
        }
    }

    /// `[["price","qty"],...]`.
    #[inline]
    fn levels(&mut self, levels: &mut BookLevels) -> Option<()> {
        self.expect(b"[")?;
        if self.skip(b"]") {
            return Some(());
        }
        loop {
            self.expect(b"[\"")?;
            let price = self.number()?;
            self.expect(b",\"")?;
            let qty = self.number()?;
            levels.push(price, qty).ok()?;
            if self.skip(b"],") {
                continue;
            }
            return self.expect(b"]]");
        }
    }
}
