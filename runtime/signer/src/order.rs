//! The effect of an order on the exposure, as far as its own parameters show it.
//!
//! The caller may be a trading process that an attacker controls. So no parameter counts in the
//! caller's favour unless the venue must obey it: words are read only in the spelling of the
//! documents, and a parameter that the type of the order does not use is refused
//! (docs/interface/orders.md#mandatory-parameters).

use std::str::FromStr;

use rust_decimal::Decimal;
use windvane_protocol::route::Surface;

/// Where an order is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The route for one order.
    One(Surface),
    /// An entry of a futures batch.
    BatchEntry,
}

impl Form {
    pub(crate) const fn surface(self) -> Surface {
        match self {
            Self::One(surface) => surface,
            Self::BatchEntry => Surface::Futures,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Buy,
    Sell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PositionSide {
    Both,
    Long,
    Short,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Limit,
    Market,
    Stop,
    TakeProfit,
    StopMarket,
    TakeProfitMarket,
    TrailingStopMarket,
}

/// The parameters of an order that a policy reads, from the values on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order<'a> {
    pub symbol: &'a str,
    pub side: Side,
    pub kind: Kind,
    pub position_side: PositionSide,
    pub reduce_only: bool,
    pub close_position: bool,
    pub quantity: Option<Decimal>,
    pub quote_quantity: Option<Decimal>,
    pub price: Option<Decimal>,
    /// `stopPrice` and `activationPrice`, whichever is larger.
    pub trigger: Option<Decimal>,
}

/// How large an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub quantity: Option<Decimal>,
    /// The value at the highest price that the order names.
    pub value: Option<Decimal>,
    /// Whether the order states its value itself. The venue fills an order of a market type at any
    /// price, so a price in such an order limits nothing.
    pub states_value: bool,
}

impl<'a> Order<'a> {
    /// Reads an order from name and value of each parameter.
    ///
    /// # Errors
    /// What the signer does not understand, or does not trust.
    pub(crate) fn read(
        form: Form,
        parameters: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, String> {
        let mut found = Found::default();
        for (name, value) in parameters {
            let slot = found.slot(name).filter(|_| form.has(name));
            let slot = slot.ok_or_else(|| format!("an order has no parameter {name:?} here"))?;
            if slot.replace(value).is_some() {
                return Err(format!("{name} occurs twice"));
            }
        }
        let order = found.order()?;
        order.require_own_parameters(form, &found)?;
        Ok(order)
    }

    /// Whether the order can only reduce a position or sell coins that the account holds.
    pub(crate) const fn is_close(&self, surface: Surface) -> bool {
        let buys = matches!(self.side, Side::Buy);
        match (surface, self.position_side) {
            (Surface::Spot, _) | (_, PositionSide::Long) => !buys,
            (_, PositionSide::Short) => buys,
            (_, PositionSide::Both) => self.reduce_only || self.close_position,
        }
    }

    /// The size of the order.
    ///
    /// # Errors
    /// Its value is too large a number.
    pub(crate) fn size(&self) -> Result<Size, String> {
        let highest = self.price.max(self.trigger);
        let value = match (highest, self.quantity) {
            (Some(price), Some(quantity)) => {
                let too_large = || "price times quantity is too large a number".to_owned();
                Some(price.checked_mul(quantity).ok_or_else(too_large)?)
            }
            _ => self.quote_quantity,
        };
        Ok(Size {
            quantity: self.quantity,
            value,
            states_value: value.is_some() && (self.kind.has_price() || self.quantity.is_none()),
        })
    }

    /// Each parameter must have its effect at the venue. Otherwise an order could look smaller than
    /// it is, by a price that the venue ignores, or like a close.
    fn require_own_parameters(&self, form: Form, found: &Found<'_>) -> Result<(), String> {
        let kind = self.kind;
        let word = found.kind.unwrap_or_default();
        if kind.has_price() != self.price.is_some() {
            let verb = if kind.has_price() {
                "needs"
            } else {
                "takes no"
            };
            return Err(format!("{word} {verb} price"));
        }
        for (name, is_sent, is_taken) in [
            ("stopPrice", found.stop_price.is_some(), kind.has_stop()),
            (
                "activationPrice",
                found.activation_price.is_some(),
                kind == Kind::TrailingStopMarket,
            ),
            (
                "callbackRate",
                found.callback_rate.is_some(),
                kind == Kind::TrailingStopMarket,
            ),
            (
                "quoteOrderQty",
                self.quote_quantity.is_some(),
                kind == Kind::Market && self.side == Side::Buy && self.quantity.is_none(),
            ),
            (
                "closePosition=true",
                self.close_position,
                matches!(kind, Kind::StopMarket | Kind::TakeProfitMarket)
                    && self.quantity.is_none()
                    && !self.reduce_only,
            ),
        ] {
            if is_sent && !is_taken {
                return Err(format!("{word} with these parameters takes no {name}"));
            }
        }
        if kind.has_stop() && found.stop_price.is_none() {
            return Err(format!("{word} needs stopPrice"));
        }
        if kind == Kind::TrailingStopMarket && form.surface() == Surface::Spot {
            return Err(format!("type={word} does not exist on spot"));
        }
        let has_size = self.quantity.is_some() || self.quote_quantity.is_some();
        if !has_size && !self.close_position {
            return Err("the order has no quantity".to_owned());
        }
        Ok(())
    }
}

impl Kind {
    /// Whether the venue fills the order at its `price` or better.
    const fn has_price(self) -> bool {
        matches!(self, Self::Limit | Self::Stop | Self::TakeProfit)
    }

    const fn has_stop(self) -> bool {
        matches!(
            self,
            Self::Stop | Self::TakeProfit | Self::StopMarket | Self::TakeProfitMarket
        )
    }
}

/// The text of each parameter that was sent.
#[derive(Debug, Default)]
struct Found<'a> {
    symbol: Option<&'a str>,
    side: Option<&'a str>,
    kind: Option<&'a str>,
    position_side: Option<&'a str>,
    reduce_only: Option<&'a str>,
    close_position: Option<&'a str>,
    quantity: Option<&'a str>,
    quote_quantity: Option<&'a str>,
    price: Option<&'a str>,
    stop_price: Option<&'a str>,
    activation_price: Option<&'a str>,
    callback_rate: Option<&'a str>,
    // Not read. They are named so that an unknown parameter is refused.
    time_in_force: Option<&'a str>,
    client_order_id: Option<&'a str>,
    working_type: Option<&'a str>,
    price_protect: Option<&'a str>,
    response_type: Option<&'a str>,
}

impl<'a> Found<'a> {
    /// The place of a parameter; `None` if an order does not have it. A venue may read names without
    /// regard to case, but this program sends only this spelling.
    fn slot(&mut self, name: &str) -> Option<&mut Option<&'a str>> {
        Some(match name {
            "symbol" => &mut self.symbol,
            "side" => &mut self.side,
            "type" => &mut self.kind,
            "positionSide" => &mut self.position_side,
            "reduceOnly" => &mut self.reduce_only,
            "closePosition" => &mut self.close_position,
            "quantity" => &mut self.quantity,
            "quoteOrderQty" => &mut self.quote_quantity,
            "price" => &mut self.price,
            "stopPrice" => &mut self.stop_price,
            "activationPrice" => &mut self.activation_price,
            "callbackRate" => &mut self.callback_rate,
            "timeInForce" => &mut self.time_in_force,
            "newClientOrderId" => &mut self.client_order_id,
            "workingType" => &mut self.working_type,
            "priceProtect" => &mut self.price_protect,
            "newOrderRespType" => &mut self.response_type,
            _ => return None,
        })
    }

    fn order(&self) -> Result<Order<'a>, String> {
        let side = word(
            "side",
            self.side,
            &[("BUY", Side::Buy), ("SELL", Side::Sell)],
        )?;
        let kind = word("type", self.kind, &KINDS)?;
        let position_side = word("positionSide", self.position_side, &POSITION_SIDES)?;
        let flag = |name, text| {
            let read = word(name, text, &[("true", true), ("false", false)]);
            read.map(Option::unwrap_or_default)
        };
        let stop_price = number("stopPrice", self.stop_price)?;
        let activation_price = number("activationPrice", self.activation_price)?;
        let missing = |name| format!("an order needs {name}");
        Ok(Order {
            symbol: self.symbol.ok_or_else(|| missing("symbol"))?,
            side: side.ok_or_else(|| missing("side"))?,
            kind: kind.ok_or_else(|| missing("type"))?,
            position_side: position_side.unwrap_or(PositionSide::Both),
            reduce_only: flag("reduceOnly", self.reduce_only)?,
            close_position: flag("closePosition", self.close_position)?,
            quantity: number("quantity", self.quantity)?,
            quote_quantity: number("quoteOrderQty", self.quote_quantity)?,
            price: number("price", self.price)?,
            trigger: stop_price.max(activation_price),
        })
    }
}

impl Form {
    /// Whether an order of this form may have the parameter.
    fn has(self, name: &str) -> bool {
        match self {
            Self::One(Surface::Spot) => !matches!(
                name,
                "positionSide"
                    | "reduceOnly"
                    | "closePosition"
                    | "activationPrice"
                    | "callbackRate"
            ),
            Self::One(_) => name != "quoteOrderQty",
            Self::BatchEntry => !matches!(name, "quoteOrderQty" | "closePosition"),
        }
    }
}

const KINDS: [(&str, Kind); 7] = [
    ("LIMIT", Kind::Limit),
    ("MARKET", Kind::Market),
    ("STOP", Kind::Stop),
    ("TAKE_PROFIT", Kind::TakeProfit),
    ("STOP_MARKET", Kind::StopMarket),
    ("TAKE_PROFIT_MARKET", Kind::TakeProfitMarket),
    ("TRAILING_STOP_MARKET", Kind::TrailingStopMarket),
];

const POSITION_SIDES: [(&str, PositionSide); 3] = [
    ("BOTH", PositionSide::Both),
    ("LONG", PositionSide::Long),
    ("SHORT", PositionSide::Short),
];

/// Reads a word in the spelling of the documents.
fn word<T: Copy>(name: &str, text: Option<&str>, words: &[(&str, T)]) -> Result<Option<T>, String> {
    let Some(text) = text else { return Ok(None) };
    let found = words.iter().find(|(word, _)| *word == text);
    let unknown = || format!("{name} has another value than the documents list");
    found.map(|(_, value)| Some(*value)).ok_or_else(unknown)
}

/// Reads a decimal over 0, of digits and at most one point. A sign or an exponent is refused.
fn number(name: &str, text: Option<&str>) -> Result<Option<Decimal>, String> {
    let Some(text) = text else { return Ok(None) };
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = Decimal::from_str(text)
        .ok()
        .filter(|number| is_plain && !number.is_zero());
    let number = number.ok_or_else(|| format!("{name} is not a plain decimal number over 0"));
    number.map(Some)
}
