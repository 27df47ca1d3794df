//! Enum values of the user streams that the engine does not use. The others are the engine's own
//! enums.

use std::fmt;
use std::str::FromStr;

/// Margin type of a position. `ACCOUNT_UPDATE` has `isolated` and `cross`, `MARGIN_CALL` and
/// requests have `ISOLATED` and `CROSSED` (docs/interface/user-stream.md#margin_call); all four are
/// parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarginType {
    /// The position has its own margin.
    Isolated,
    /// The whole wallet is the position's margin.
    Cross,
}

impl FromStr for MarginType {
    /// The text is not a margin type.
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "isolated" | "ISOLATED" => Ok(Self::Isolated),
            "cross" | "CROSSED" | "crossed" | "CROSS" => Ok(Self::Cross),
            _ => Err(()),
        }
    }
}

impl fmt::Display for MarginType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Isolated => "isolated",
            Self::Cross => "cross",
        })
    }
}

macro_rules! reasons {
    ($($item:ident = $text:literal,)*) => {
        /// The reason of an `ACCOUNT_UPDATE` (`m`; docs/interface/user-stream.md#account_update).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum UpdateReason {$(
            #[doc = concat!("`", $text, "`.")]
            $item,
        )*}

        impl UpdateReason {
            /// All, in the order of the document.
            pub const ALL: &'static [Self] = &[$(Self::$item,)*];

            /// The value as the venue spells it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$item => $text,)* }
            }
        }

        impl FromStr for UpdateReason {
            /// The text is not in the list.
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                match text { $($text => Ok(Self::$item),)* _ => Err(()) }
            }
        }
    };
}

reasons! {
    Deposit = "DEPOSIT",
    Withdraw = "WITHDRAW",
    Order = "ORDER",
    FundingFee = "FUNDING_FEE",
    WithdrawReject = "WITHDRAW_REJECT",
    Adjustment = "ADJUSTMENT",
    InsuranceClear = "INSURANCE_CLEAR",
    AdminDeposit = "ADMIN_DEPOSIT",
    AdminWithdraw = "ADMIN_WITHDRAW",
    MarginTransfer = "MARGIN_TRANSFER",
    MarginTypeChange = "MARGIN_TYPE_CHANGE",
    AssetTransfer = "ASSET_TRANSFER",
    OptionsPremiumFee = "OPTIONS_PREMIUM_FEE",
    OptionsSettleProfit = "OPTIONS_SETTLE_PROFIT",
    AutoExchange = "AUTO_EXCHANGE",
}

impl fmt::Display for UpdateReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An order that the venue itself placed, recognized by its client order id
/// (docs/interface/user-stream.md#order_trade_update). Such ids are not unique: only the order id
/// identifies the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForcedClose {
    /// `autoclose-<digits>`: liquidation.
    Liquidation,
    /// `adl_autoclose`: auto-deleveraging.
    AutoDeleveraging,
}

impl ForcedClose {
    /// Checks whether a client order id marks a forced close.
    pub fn of(client_order_id: &str) -> Option<Self> {
        if client_order_id.starts_with("autoclose-") {
            Some(Self::Liquidation)
        } else if client_order_id.starts_with("adl_autoclose") {
            Some(Self::AutoDeleveraging)
        } else {
            None
        }
    }
}
