//! The table of the venue's error codes. It maps each rejection to its subject: the account, the
//! key, the instrument, the balance or only this order (docs/interface/errors.md#blame).
//!
//! | codes | subject |
//! |---|---|
//! | 0 (ours) | the request never left the process |
//! | -1002, -1005, -1022, -2014, -2015, -4056, -4057 | the key: its format, its permissions, or the address that uses it |
//! | -2023, -4088, -5050 | the account accepts no orders |
//! | -4087 | the account accepts only orders that reduce a position |
//! | -1121, -2016, -4022, -4140, -4141 | the instrument |
//! | -2018, -2019, -4050, -4051; -2010 with a text about the balance | the balance is too small |
//! | -1003, -1015, -1016 | a rate limit, or a service that is shutting down |
//! | every other | this order only |
//!
//! The codes are not more precise: -2015 alone means "invalid API key, IP or permissions".

use crate::protocol::Refusal;

/// The subject of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The request never left the process.
    NotSent,
    /// The key or agent: it is unknown, lacks a permission, or is used from a wrong address.
    Key,
    /// The account accepts no orders.
    Account,
    /// The account accepts only orders that reduce a position.
    ReduceOnly,
    /// The instrument accepts no order that opens a position.
    Instrument,
    /// The balance or margin is too small.
    Funds,
    /// A rate limit.
    Limit,
    /// The refusal is about this order only.
    Order,
}

impl Refusal {
    /// The code for a request that never left the process. The venue's codes are negative.
    pub const NOT_SENT: i32 = 0;

    /// A rejection for a request that never left the process, with the reason.
    pub fn not_sent(reason: impl Into<String>) -> Self {
        Self {
            code: Self::NOT_SENT,
            msg: reason.into(),
        }
    }

    /// Whether the request never left the process. This is only valid for requests that change
    /// something: for them, a rejection by the venue without a code counts as an unknown outcome
    /// and never gets the code 0.
    pub const fn is_not_sent(&self) -> bool {
        self.code == Self::NOT_SENT
    }

    /// The subject of this rejection.
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

/// Whether the text of `NEW_ORDER_REJECTED` mentions the balance. The text is not standardized.
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
    fn each_documented_code_has_its_subject() {
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
    fn a_rejection_is_about_the_balance_only_if_its_text_says_so() {
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
