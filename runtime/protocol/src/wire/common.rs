//! Records that several families of routes use in their responses.

use serde::{Deserialize, Deserializer, Serialize};

use super::fields::record;
use super::scalar::{Exact, Text, Whole};

/// A response without content: `{}`, or an empty body. Any other field is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Empty {}

impl<'de> Deserialize<'de> for Empty {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Object {}
        Option::<Object>::deserialize(deserializer).map(|_| Self {})
    }
}

/// Simple result (spec 2, Other records): `{code: 200, msg}`, with `code` as number or as text.
/// Some routes send an empty body (spec 4, section 2): that is a success without a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SimpleResult {
    /// `code`: 200.
    pub code: Whole,
    /// `msg`.
    pub msg: String,
}

impl<'de> Deserialize<'de> for SimpleResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Object {
            code: Option<Whole>,
            msg: Option<String>,
        }
        let object = Option::<Object>::deserialize(deserializer)?;
        let (code, msg) = object.map_or((None, None), |object| (object.code, object.msg));
        Ok(Self {
            code: code.unwrap_or(Whole(200)),
            msg: msg.unwrap_or_default(),
        })
    }
}

record! {
    /// Transfer result (spec 1 and 2, Other records; spec 3, Wallet transfer result).
    TransferResult {
        tran_id: Whole = "tranId",
        status: String = "status",
    }
}

record! {
    /// Withdraw result (spec 1, Other records; spec 3).
    WithdrawResult {
        withdraw_id: Text = "withdrawId",
        hash?: String = "hash",
    }
}

record! {
    /// Listen key (spec 1, Other records).
    ListenKey {
        listen_key: String = "listenKey",
    }
}

record! {
    /// Server time.
    ServerTime {
        /// Milliseconds.
        server_time: Whole = "serverTime",
    }
}

record! {
    /// Symbol fees (spec 1, Other records; spec 4, section 4).
    CommissionRate {
        symbol: String = "symbol",
        maker: Exact = "makerCommissionRate",
        taker: Exact = "takerCommissionRate",
    }
}
