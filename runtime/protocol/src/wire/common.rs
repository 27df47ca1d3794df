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

/// Simple result: `{code: 200, msg}`, with `code` as number or as text. Some routes send an empty
/// body (docs/interface/README.md#11-html-and-empty-bodies): that is a success without a message.
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
    /// Transfer result (docs/interface/account.md#transfers-between-wallets).
    TransferResult {
        tran_id: Whole = "tranId",
        status: String = "status",
    }
}

record! {
    /// Withdraw result (docs/interface/account.md#withdrawals,
    /// docs/interface/chain.md#withdrawals).
    WithdrawResult {
        withdraw_id: Text = "withdrawId",
        hash?: String = "hash",
    }
}

record! {
    /// Listen key (docs/interface/user-stream.md#listen-keys).
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
    /// Symbol fees (docs/interface/account.md#symbol-fees).
    CommissionRate {
        symbol: String = "symbol",
        maker: Exact = "makerCommissionRate",
        taker: Exact = "takerCommissionRate",
    }
}
