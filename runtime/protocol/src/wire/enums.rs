//! Enum values of the documents that the engine does not use. The enums that the engine has (side,
//! order type, time in force, ...) are only re-exported here.

pub use windvane_model::{OrderStatus, OrderType, PositionSide, Side, TimeInForce, WorkingType};

macro_rules! wire_enums {
    ($($(#[$doc:meta])* $name:ident { $($item:ident = $text:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {$(
            #[doc = concat!("`", $text, "`.")]
            $item,
        )*}

        impl $name {
            /// Every value of the enum.
            pub const ALL: &'static [Self] = &[$(Self::$item,)*];

            /// The value as the documents spell it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$item => $text,)* }
            }
        }

        impl std::str::FromStr for $name {
            /// The text is not a value of the enum.
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                match text { $($text => Ok(Self::$item),)* _ => Err(()) }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

wire_enums! {
    /// `newOrderRespType` (docs/interface/orders.md#enumerations); futures do not have `FULL`.
    ResponseType { Ack = "ACK", Result = "RESULT", Full = "FULL", }

    /// `kindType` of a transfer between the own wallets
    /// (docs/interface/account.md#transfers-between-wallets).
    TransferKind { FutureToSpot = "FUTURE_SPOT", SpotToFuture = "SPOT_FUTURE", }

    /// Kline interval (docs/interface/market-data.md#klines).
    Interval {
        Minute1 = "1m", Minute3 = "3m", Minute5 = "5m", Minute15 = "15m", Minute30 = "30m",
        Hour1 = "1h", Hour2 = "2h", Hour4 = "4h", Hour6 = "6h", Hour8 = "8h", Hour12 = "12h",
        Day1 = "1d", Day3 = "3d", Week1 = "1w", Month1 = "1M",
    }

    /// `rateLimitType` (docs/interface/limits.md#limits-in-force).
    RateLimitType { RequestWeight = "REQUEST_WEIGHT", Orders = "ORDERS", }

    /// `interval` of a rate limit: the documents list `MINUTE`, and a sample has `SECOND`
    /// (docs/interface/limits.md#limits-in-force).
    RateLimitInterval { Second = "SECOND", Minute = "MINUTE", Hour = "HOUR", Day = "DAY", }

    /// `userOperationType` (docs/interface/account.md#api-keys).
    UserOperation { CreateApiKey = "CREATE_API_KEY", }

    /// `contractType` (docs/interface/market-data.md#exchange-information).
    ContractType { Perpetual = "PERPETUAL", }

    /// Status of a symbol or contract (docs/interface/market-data.md#exchange-information); spot
    /// has only `TRADING`.
    ContractStatus {
        PendingTrading = "PENDING_TRADING", Trading = "TRADING", PreSettle = "PRE_SETTLE",
        Settling = "SETTLING", Close = "CLOSE",
    }

    /// `marginType` of a request (docs/interface/futures.md#margin-type).
    MarginType { Isolated = "ISOLATED", Crossed = "CROSSED", }

    /// `marginType` of a position (docs/interface/futures.md#position-risk).
    MarginMode { Isolated = "isolated", Cross = "cross", }

    /// `incomeType` (docs/interface/account.md#income, which does not list all values).
    IncomeType {
        Transfer = "TRANSFER", WelcomeBonus = "WELCOME_BONUS", RealizedPnl = "REALIZED_PNL",
        FundingFee = "FUNDING_FEE", Commission = "COMMISSION", InsuranceClear = "INSURANCE_CLEAR",
    }

    /// `autoCloseType` (docs/interface/futures.md#forced-orders).
    AutoCloseType { Liquidation = "LIQUIDATION", Adl = "ADL", }

    /// Privacy status of an account (docs/interface/chain.md#account-status).
    PrivacyStatus { Public = "PUBLIC", Private = "PRIVATE", }

    /// `accountPrivacy` (docs/interface/chain.md#info-endpoint).
    AccountPrivacy { Disabled = "disabled", Enabled = "enabled", }

    /// `status` of a transfer to an address (docs/interface/chain.md#transfer-to-an-address).
    TransferStatus { Success = "SUCCESS", Pending = "PENDING", }

    /// `type` of an entry of the deposit and withdrawal history (docs/interface/chain.md#history).
    MovementType { Deposit = "DEPOSIT", Withdraw = "WITHDRAW", }

    /// `state` of an entry of the deposit and withdrawal history (docs/interface/chain.md#history).
    MovementState {
        Processing = "PROCESSING", Success = "SUCCESS", Failed = "FAILED", Completed = "COMPLETED",
    }

    /// `signatureType` of a withdrawal (docs/interface/chain.md#withdrawals).
    SignatureType { Eoa = "EOA", SafeWallet = "SafeWallet", }
}
