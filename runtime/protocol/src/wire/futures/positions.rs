//! Futures positions: leverage, margin, risk (docs/interface/futures.md#position-risk).

use rust_decimal::Decimal;
use windvane_model::PositionSide;

use crate::wire::common::SimpleResult;
use crate::wire::enums::{MarginMode, MarginType};
use crate::wire::fields::{record, request};
use crate::wire::scalar::{Exact, Flag, OneOrMany, Text, Whole, Word};

record! {
    /// The current leverage.
    Leverage {
        /// A number in the documents; text is parsed too.
        leverage: Whole = "leverage",
        max_notional_value?: Exact = "maxNotionalValue",
        symbol: String = "symbol",
    }
}

request! {
    /// Change initial leverage of a symbol.
    ChangeLeverage = "futures.change_leverage" -> Leverage {
        symbol: String = "symbol",
        /// 1 to 125.
        leverage: i64 = "leverage",
    }
}

request! {
    /// Change margin type of a symbol. The venue refuses it with -4046 if nothing changes, and with
    /// -4047 or -4048 while orders or a position are open.
    ChangeMarginType = "futures.change_margin_type" -> SimpleResult {
        symbol: String = "symbol",
        margin_type: MarginType = "marginType",
    }
}

record! {
    /// Response to a change of position margin.
    PositionMarginResult {
        amount: Exact = "amount",
        code: Whole = "code",
        msg?: String = "msg",
        /// 1 added, 2 reduced.
        change: Whole = "type",
    }
}

request! {
    /// Adds margin to an isolated position, or removes it.
    ChangePositionMargin = "futures.change_position_margin" -> PositionMarginResult {
        symbol: String = "symbol",
        position_side?: PositionSide = "positionSide",
        amount: Decimal = "amount",
        /// 1 adds, 2 reduces.
        change: i64 = "type",
    }
}

record! {
    /// One change of position margin.
    PositionMarginEntry {
        amount: Exact = "amount",
        asset: String = "asset",
        symbol: String = "symbol",
        /// Milliseconds.
        time: Whole = "time",
        /// 1 added, 2 reduced.
        change: Whole = "type",
        position_side?: Word<PositionSide> = "positionSide",
    }
}

request! {
    /// History of changes of position margin.
    PositionMarginHistory = "futures.position_margin_history" -> Vec<PositionMarginEntry> {
        symbol: String = "symbol",
        /// 1 added, 2 reduced.
        change?: i64 = "type",
        /// Milliseconds.
        start_time?: i64 = "startTime",
        /// Milliseconds.
        end_time?: i64 = "endTime",
        limit?: i64 = "limit",
    }
}

record! {
    /// One position with its risk.
    PositionRisk {
        symbol: String = "symbol",
        position_side: Word<PositionSide> = "positionSide",
        /// Negative when short.
        position_amt: Exact = "positionAmt",
        entry_price: Exact = "entryPrice",
        mark_price?: Exact = "markPrice",
        unrealized_profit?: Exact = "unRealizedProfit",
        liquidation_price?: Exact = "liquidationPrice",
        /// Text in the documents; a number is parsed too.
        leverage?: Whole = "leverage",
        /// A decimal, or `INF` without a limit.
        max_notional_value?: Text = "maxNotionalValue",
        margin_type?: Word<MarginMode> = "marginType",
        isolated_margin?: Exact = "isolatedMargin",
        /// Text in the documents (`"false"`); a boolean is parsed too.
        is_auto_add_margin?: Flag = "isAutoAddMargin",
        /// Milliseconds.
        update_time?: Whole = "updateTime",
    }
}

request! {
    /// Positions with their risk; without `symbol` those of all symbols.
    GetPositionRisk = "futures.position_risk" -> Vec<PositionRisk> {
        symbol?: String = "symbol",
    }
}

record! {
    /// The leverage brackets of a symbol.
    LeverageBrackets {
        symbol: String = "symbol",
        brackets: Vec<Bracket> = "brackets",
    }
}

record! {
    /// One leverage bracket: the terms from `notionalFloor` to `notionalCap`.
    Bracket {
        bracket: Whole = "bracket",
        initial_leverage: Whole = "initialLeverage",
        notional_cap: Exact = "notionalCap",
        notional_floor: Exact = "notionalFloor",
        maint_margin_ratio: Exact = "maintMarginRatio",
        /// Subtracted from the maintenance margin.
        cum?: Exact = "cum",
    }
}

request! {
    /// Notional and leverage brackets: an object for one symbol, otherwise an array.
    GetLeverageBracket = "futures.leverage_bracket" -> OneOrMany<LeverageBrackets> {
        symbol?: String = "symbol",
    }
}

record! {
    /// Position of a symbol in the queue of auto-deleveraging.
    AdlQuantile {
        symbol: String = "symbol",
        quantile: AdlQuantiles = "adlQuantile",
    }
}

record! {
    /// Quantiles 0 to 4, by position side.
    AdlQuantiles {
        long?: Whole = "LONG",
        short?: Whole = "SHORT",
        both?: Whole = "BOTH",
        /// A mark of hedge mode, not a quantile.
        hedge?: Whole = "HEDGE",
    }
}

request! {
    /// Quantiles of auto-deleveraging; without `symbol` those of all symbols.
    GetAdlQuantile = "futures.adl_quantile" -> Vec<AdlQuantile> {
        symbol?: String = "symbol",
    }
}

record! {
    /// The notional that may still be opened.
    RemainingOpenableNotional {
        value: Exact = "remainingOpenableNotionalValue",
    }
}

request! {
    /// Notional that may still be opened at a leverage.
    GetRemainingOpenableNotional =
        "futures.remaining_openable_notional" -> RemainingOpenableNotional {
        symbol: String = "symbol",
        leverage: i64 = "leverage",
    }
}
