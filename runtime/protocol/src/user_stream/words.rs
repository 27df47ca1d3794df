//! Words of the user streams that the engine has no use for. The others are the engine's own.

use std::fmt;
use std::str::FromStr;

/// Margin type of a position. `ACCOUNT_UPDATE` writes `isolated` and `cross`, `MARGIN_CALL` and
/// requests write `ISOLATED` and `CROSSED` (spec 2, Events): all four are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarginType {
    /// The position has margin of its own.
    Isolated,
    /// The whole wallet is its margin.
    Cross,
}

impl FromStr for MarginType {
    /// The text is neither.
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
        /// Why an `ACCOUNT_UPDATE` was sent (`m`; spec 2, Events).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum UpdateReason {$(
            #[doc = concat!("`", $text, "`.")]
            $item,
        )*}

        impl UpdateReason {
            /// All, in the order of the document.
            pub const ALL: &'static [Self] = &[$(Self::$item,)*];

            /// The word as the venue spells it.
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

/// An order that the venue itself placed, told by its client order id (spec 2,
/// `ORDER_TRADE_UPDATE`). Such ids are not unique: the order is known by its order id alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForcedClose {
    /// `autoclose-<digits>`: liquidation.
    Liquidation,
    /// `adl_autoclose`: auto-deleveraging.
    AutoDeleveraging,
}

impl ForcedClose {
    /// What a client order id says.
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
