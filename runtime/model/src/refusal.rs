//! The table of refusal codes: each refusal of the venue is about the account, the key, the
//! instrument, the balance, or this one order. From the error tables of documents 1, 4 and 5.
//!
//! | codes | blame |
//! |---|---|
//! | 0 (ours) | the request never left the process |
//! | -1002, -1005, -1022, -2014, -2015, -4056, -4057 | the key: its form, its right, or the address that it is used from |
//! | -2023, -4088, -5050 | the account takes no orders |
//! | -4087 | the account takes orders that reduce a position, and no others |
//! | -1121, -2016, -4022, -4140, -4141 | the instrument |
//! | -2018, -2019, -4050, -4051; -2010 with a text about the balance | too little balance |
//! | -1003, -1015, -1016 | a limit, or a service that is closing |
//! | every other | this order alone |
//!
//! The codes do not say more than that: -2015 alone is "invalid API key, IP or permissions".

use crate::protocol::Refusal;

/// The subject of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Nothing left the process.
    NotSent,
    /// The key or agent: unknown, without the right, or used from a wrong address.
    Key,
    /// The account takes no order.
    Account,
    /// The account takes only orders that reduce a position.
    ReduceOnly,
    /// The instrument takes no order that opens a position.
    Instrument,
    /// The balance or margin is too small.
    Funds,
    /// A request limit.
    Limit,
    /// This order.
    Order,
}

impl Refusal {
    /// The code of a request that never left the process. The venue's codes are negative.
    pub const NOT_SENT: i32 = 0;

    /// A request that never left the process, and why.
    pub fn not_sent(reason: impl Into<String>) -> Self {
        Self {
            code: Self::NOT_SENT,
            msg: reason.into(),
        }
    }

    /// Whether the request never left the process. Holds for requests that change something: a
    /// refusal of those without the venue's code is an unknown outcome.
    pub const fn is_not_sent(&self) -> bool {
        self.code == Self::NOT_SENT
    }

    /// Its subject.
    pub fn blame(&self) -> Blame {
        match self.code {
            Self::NOT_SENT => Blame::NotSent,
            -1002 | -1005 | -1022 | -2014 | -2015 | -4056 | -4057 => Blame::Key,
            -2023 | -4088 | -5050 => Blame::Account,
            -4087 => Blame::ReduceOnly,
            -1121 | -2016 | -4022 | -4140 | -4141 => Blame::Instrument,
            -2018 | -2019 | -4050 | -4051 => Blame::Funds,
            -2010 if is_about_balance(&self.msg) => Blame::Funds,
            -1003 | -1015 | -1016 => Blame::Limit,
            _ => Blame::Order,
        }
    }
}

/// Whether the text of `NEW_ORDER_REJECTED` names the balance. The text is not standardized.
fn is_about_balance(msg: &str) -> bool {
    let msg = msg.to_ascii_lowercase();
    ["balance", "insufficient", "margin", "not enough"]
        .iter()
        .any(|word| msg.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blame(code: i32, msg: &str) -> Blame {
        let msg = msg.to_owned();
        Refusal { code, msg }.blame()
    }

    #[test]
    fn each_documented_code_has_its_blame() {
        let key = [-1002, -1005, -1022, -2014, -2015, -4056, -4057];
        let order = [-1013, -1111, -2010, -2021, -2022, -2025, -4014, -4164];
        for (codes, expected) in [
            (&[0][..], Blame::NotSent),
            (&key, Blame::Key),
            (&[-2023, -4088, -5050], Blame::Account),
            (&[-4087], Blame::ReduceOnly),
            (&[-1121, -2016, -4022, -4140, -4141], Blame::Instrument),
            (&[-2018, -2019, -4050, -4051], Blame::Funds),
            (&[-1003, -1015, -1016], Blame::Limit),
            (&order, Blame::Order),
        ] {
            for code in codes {
                assert_eq!(blame(*code, "text"), expected, "{code}");
            }
        }
    }

    #[test]
    fn a_rejected_order_is_about_the_balance_only_if_its_text_says_so() {
        for text in [
            "Account has insufficient balance for requested action.",
            "Margin is not sufficient",
            "not enough USDT",
        ] {
            assert_eq!(blame(-2010, text), Blame::Funds, "{text}");
        }
        assert_eq!(blame(-2010, "Duplicate order sent."), Blame::Order);
    }
}
