//! The points that the documents leave open, one row each. `docs/open-points.md` explains what a
//! client must do about each. The first value is the default.

use super::open_points;

open_points! {
    // User events: their order, number and time.
    AccountOrder "account-event-order", "2, Events",
        "Which comes first after a fill: the order event or the account event." {
        After = "order-first",
        Before = "account-first",
    }
    AccountEvents "account-events", "2, ACCOUNT_UPDATE",
        "How many account events several fills of one moment cause." {
        Each = "one-per-fill",
        Merged = "merged",
    }
    FillEvents "fill-events", "2, ORDER_TRADE_UPDATE",
        "How many order events several fills of one order and one moment cause. The event is due when the status changes." {
        Each = "one-per-fill",
        Last = "last-only",
    }
    RestExpires "unfilled-rest", "1, Order status; 2, Order status",
        "How the end of an order whose rest expires at once is reported." {
        Two = "two-events",
        One = "one-event",
    }
    EventTimes "event-times", "2, Events",
        "Whether event time and transaction time are the same." {
        Equal = "equal",
        Apart = "apart",
    }
    Arrival "event-arrival", "2, Events",
        "Whether events arrive in the order in which they were made. Payloads may arrive out of order in heavy periods." {
        InOrder = "in-order",
        Shuffled = "shuffled",
    }
    StreamDelay "stream-delay", "2, Events; 4, section 6",
        "How far the user stream is behind the account, so that REST is ahead of it." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    AnswerTiming "answer-timing", "4, section 6",
        "Whether the answer to a place or cancel leaves before or after its event." {
        Before = "before-event",
        After = "after-event",
    }
    AfterReconnect "events-after-reconnect", "4, section 6",
        "The first events on a new user-stream connection." {
        Nothing = "new-only",
        Again = "recent-again",
    }
    UnknownEvents "unknown-events", "5, section 4; 2, Events",
        "Whether the user stream carries events that no document names." {
        None = "none",
        Some = "some",
    }
    // User events: their content.
    FlatPosition "flat-position", "2, ACCOUNT_UPDATE",
        "Whether a position that has just become flat is in the list of positions. The document lists non-zero positions only." {
        Absent = "absent",
        Listed = "listed",
    }
    EventPositions "event-positions", "2, ACCOUNT_UPDATE",
        "Which positions an account event lists." {
        Touched = "touched",
        All = "all-held",
    }
    EventBalances "event-balances", "2, ACCOUNT_UPDATE",
        "Which balances an account event lists." {
        Changed = "changed",
        All = "all",
    }
    FeeInEvent "fee-in-event", "2, ORDER_TRADE_UPDATE",
        "Whether the order event of a fill carries the commission. Without a commission both fields are omitted." {
        Sent = "sent",
        Later = "later",
    }
    FeeRounding "fee-rounding", "2, ORDER_TRADE_UPDATE; 1, Account trade",
        "How many decimals the commission of an event and of an account trade has. The balance has all." {
        Exact = "exact",
        Rounded = "four-decimals",
    }
    FeeAsset "fee-asset", "2, ORDER_TRADE_UPDATE, ACCOUNT_CONFIG_UPDATE",
        "The asset that futures commissions are taken in." {
        Quote = "quote",
        Other = "other",
    }
    SpotFeeAsset "spot-fee-asset", "1, executionReport",
        "The asset that the commission of a spot buy is taken in." {
        Quote = "quote",
        Received = "received",
    }
    SpotLockEvents "spot-balance-events", "1, outboundAccountPosition",
        "Whether a balance that is only locked or freed counts as changed." {
        Sent = "locks-too",
        Fills = "fills-only",
    }
    EntryRounding "entry-price-rounding", "2, ACCOUNT_UPDATE; 4, section 4",
        "How entry prices are rounded." {
        Fine = "eight-decimals",
        Tick = "tick",
    }
    AverageRounding "average-price-rounding", "1, Order; 2, Futures order",
        "How average prices of orders are rounded." {
        Fine = "eight-decimals",
        Tick = "tick",
    }
    ProfitRounding "realized-profit-rounding", "2, ORDER_TRADE_UPDATE; 4, section 4",
        "How many decimals realized profits have." {
        Exact = "exact",
        Rounded = "two-decimals",
    }
    TransferReason "transfer-reason", "2, ACCOUNT_UPDATE",
        "The reason that the event of a transfer between the surfaces states." {
        Asset = "ASSET_TRANSFER",
        Deposit = "DEPOSIT-WITHDRAW",
        Margin = "MARGIN_TRANSFER",
    }
    LiquidationReason "liquidation-reason", "2, ACCOUNT_UPDATE",
        "The reason that the account event of a liquidation or of auto-deleveraging states." {
        Order = "ORDER",
        Insurance = "INSURANCE_CLEAR",
        Adjustment = "ADJUSTMENT",
    }
    LiquidationStatus "liquidation-status", "2, Order status",
        "The status of the fills of a liquidation or of auto-deleveraging." {
        Ordinary = "ordinary",
        Special = "special",
    }
    LiquidationExecution "liquidation-execution", "2, Order status",
        "The execution type of the fills of a liquidation." {
        Calculated = "CALCULATED",
        Trade = "TRADE",
    }
    LiquidationEvents "liquidation-events", "2, ORDER_TRADE_UPDATE",
        "Whether the order of a liquidation has an event before its fill." {
        WithNew = "new-and-fill",
        FillOnly = "fill-only",
    }
    UnfilledAccount "account-event-without-orders", "2, ACCOUNT_UPDATE",
        "Whether auto-deleveraging and liquidation have order events at all, or account events alone." {
        Both = "order-and-account",
        AccountOnly = "account-only",
    }
    // REST responses compared with the stream.
    AccountLag "account-lag", "2, Endpoints; 4, section 4",
        "How far the account route is behind the stream." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    PositionLag "position-lag", "4, section 4",
        "How far the position and balance routes are behind the stream." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    OpenOrdersLag "open-orders-lag", "2, Current all open orders",
        "How far the list of open orders is behind the stream." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    QueryLag "query-lag", "2, Query order",
        "How far the query of one order is behind the stream. A new order is then not found." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    TradesLag "trades-lag", "4, section 4",
        "How far the list of account trades is behind the stream." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    InfoLag "info-lag", "3, JSON-RPC info endpoint",
        "How far the info endpoint is behind the stream." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    EndedListed "ended-orders-listed", "2, Current all open orders",
        "Whether the list of open orders has orders that ended a moment ago, with their final status." {
        No = "no",
        Yes = "for-2s",
    }
    // Responses: lists and missing routes.
    AccountPositions "account-positions", "4, section 4",
        "Which positions the account route lists." {
        All = "all",
        Held = "held",
    }
    RiskPositions "position-risk-positions", "4, section 4",
        "Which positions the position route lists." {
        All = "all",
        Held = "held",
    }
    OneWaySides "one-way-sides", "4, section 4",
        "Which rows a symbol has in one-way mode." {
        Both = "both-only",
        Three = "all-sides",
    }
    AccountAssets "account-assets", "1, Account information; 4, section 4",
        "Which assets balances and accounts list." {
        All = "all",
        Held = "held",
    }
    InfoPositions "info-positions", "3, JSON-RPC balance result",
        "Which positions the info endpoint lists." {
        Held = "held",
        All = "all",
    }
    TradesRoute "account-trades-route", "2, Later account routes; 4, section 4",
        "Whether futures account trades can be read." {
        Served = "served",
        NotFound = "404",
        Refused = "refused",
    }
    AllOrdersRoute "all-orders-route", "2, Later account routes; 4, section 4",
        "Whether all futures orders can be listed." {
        Served = "served",
        NotFound = "404",
        Refused = "refused",
    }
    RiskRoute "position-risk-route", "2, Later account routes; 4, section 4",
        "Whether the position and balance routes exist." {
        Served = "served",
        NotFound = "404",
        Refused = "refused",
    }
    AccountRoute "account-route", "2, Later account routes; 4, section 4",
        "Whether the futures account route exists." {
        Served = "served",
        NotFound = "404",
        Refused = "refused",
    }
    ForceOrdersRoute "force-orders-route", "4, section 4",
        "Whether the orders of liquidations and of auto-deleveraging can be listed." {
        Served = "served",
        NotFound = "404",
        Refused = "refused",
    }
    IncomeRoute "income-route", "4, section 4",
        "Whether the income history can be read." {
        Served = "served",
        NotFound = "404",
        Refused = "refused",
    }
    CanTrade "can-trade", "4, section 4",
        "Whether the account says that it may trade." {
        Present = "present",
        Absent = "absent",
    }
    AccountTime "account-update-time", "4, section 4",
        "The value of updateTime in accounts, balances and positions." {
        Set = "set",
        Zero = "zero",
        Absent = "absent",
    }
    // Responses: orders.
    AckAnswer "new-order-answer", "2, New order",
        "The state of the order in the answer to a new order with ACK." {
        Accepted = "as-accepted",
        Current = "as-it-is",
    }
    RejectForm "rejected-order", "2, Enumerations; 1, Errors",
        "How the matching engine refuses a futures order." {
        Error = "error",
        Status = "status-REJECTED",
    }
    PostOnlyCross "post-only-cross", "1, Enumerations, Time in force",
        "The end of a post-only order that would trade at once." {
        Expired = "EXPIRED",
        Refused = "refused",
    }
    ClosingLeft "reduce-only-after-close", "2, New order",
        "The fate of a resting reduce-only order when the position is flat." {
        Expired = "EXPIRED",
        Rests = "rests",
    }
    CancelUnknown "cancel-of-ended-order", "1, Errors; 2, Errors",
        "The code for cancelling an order that has ended or never was." {
        Rejected = "-2011",
        NoSuch = "-2013",
    }
    QueryUnknown "query-of-unknown-order", "1, Errors; 2, Query current open order",
        "The code for querying an order that is not found. The document gives the text alone." {
        NoSuch = "-2013",
        Unknown = "-2011",
    }
    DuplicateCode "duplicate-id-code", "2, New order; 4, section 4",
        "The code for a client order id that an open order has." {
        Futures = "-4116",
        Rejected = "-2010",
        Length = "-4015",
    }
    EndedIdReuse "ended-id-reuse", "2, New order; 1, Place order",
        "Whether the client order id of an ended futures order may be used again." {
        Accepted = "accepted",
        Refused = "refused",
    }
    IocEnd "unfilled-rest-status", "1, Enumerations, Order status",
        "The final status of an order of which the rest cannot be filled at once." {
        Expired = "EXPIRED",
        Canceled = "CANCELED",
    }
    BatchOrder "batch-matching-order", "2, Place multiple orders",
        "In which order the orders of a batch are processed." {
        AsSent = "as-sent",
        Reversed = "reversed",
    }
    CancelAllAnswer "cancel-all-answer", "2, Cancel all open orders; 4, section 6",
        "The answer to a successful cancel-all." {
        Text = "code-text",
        Number = "code-number",
        Empty = "empty",
    }
    CountdownAnswer "countdown-answer", "2, Auto-cancel all open orders; 4, section 6",
        "The answer to setting a countdown." {
        Number = "number",
        Text = "text",
    }
    ForeignIds "client-order-ids-of-others", "2, New order",
        "The form of client order ids that the client did not choose." {
        Hex = "hex",
        Long = "long",
        Short = "short",
    }
    OrderIds "order-id-size", "2, Futures order",
        "How large order ids are. They are 64-bit integers." {
        Small = "small",
        Large = "large",
    }
    // Responses: form.
    UnknownFields "unknown-fields", "5, section 3",
        "Whether objects have fields that no document names." {
        None = "none",
        Added = "added",
    }
    KeyOrder "key-order", "1, General conventions (JSON)",
        "The order of the keys of JSON objects." {
        Usual = "usual",
        Reversed = "reversed",
    }
    Spacing "json-spacing", "1, General conventions (JSON)",
        "White space between the tokens of JSON." {
        Compact = "compact",
        Spaced = "spaced",
    }
    DecimalForm "decimal-form", "1, General conventions",
        "How decimal text is written." {
        Shortest = "shortest",
        Padded = "padded",
    }
    LeverageForm "leverage-form", "4, section 6",
        "How leverage is written in accounts and positions." {
        Text = "text",
        Number = "number",
    }
    ErrorText "error-text", "1, Errors",
        "The text of an error. Only the code is standardized." {
        Usual = "usual",
        Other = "other",
    }
    ErrorStatus "error-status", "1, Errors",
        "The HTTP status of an error that is the sender's fault." {
        Same = "400",
        Varied = "varied",
    }
    OrderTypesKey "order-types-key", "2, Exchange information; 5, section 3",
        "The name of the list of order types of a futures symbol." {
        Document = "OrderType",
        Public = "orderTypes",
    }
    OddSymbols "odd-symbols", "1, General conventions; 5, section 3",
        "Whether exchange information has symbols for tests and incomplete symbols." {
        None = "none",
        Some = "some",
    }
    UnknownFilter "unknown-filter", "1, Symbol rules",
        "Whether symbols have filters that no document names." {
        None = "none",
        Added = "added",
    }
    // Limits, headers and keys.
    InfoWeight "info-weight", "3, Limits; 1, Limits",
        "The weight counter of the info endpoint. Limits are per IP." {
        Own = "own",
        Futures = "futures",
    }
    SpotWeight "spot-weight", "1, Limits; 2, Limits",
        "The weight counter of the spot surface." {
        Own = "own",
        Futures = "futures",
    }
    InfoHeaders "info-headers", "3, Limits",
        "Whether the info endpoint and the chain API send weight headers." {
        Sent = "sent",
        Absent = "absent",
    }
    ErrorHeaders "error-headers", "1, Limits",
        "Whether errors carry the weight header." {
        Sent = "sent",
        Absent = "absent",
    }
    RefusedCount "order-count-of-refusals", "1, Limits",
        "Whether refused orders carry the order-count header." {
        Absent = "absent",
        Sent = "sent",
    }
    OrderLimitRetry "order-limit-retry-after", "1, Limits (rules 5 and 6 contradict)",
        "Whether the 429 of the order limit has Retry-After." {
        Absent = "absent",
        Sent = "sent",
    }
    RetryForm "ban-retry-after", "1, Limits",
        "How Retry-After of a 429 or 418 is written." {
        Seconds = "seconds",
        Date = "http-date",
        Absent = "absent-on-418",
    }
    WeightWindow "weight-window", "1, Limits",
        "When an interval of weights or orders begins." {
        Clock = "whole-minute",
        First = "first-request",
    }
    ListenKeyPost "listen-key-on-post", "1, Listen key; 4, section 6",
        "The answer to POST while a listen key is valid." {
        Same = "same",
        New = "new",
    }
    ListenKeyLife "listen-key-life", "1, Listen key; 4, section 6",
        "How long a listen key that is kept alive lives." {
        Kept = "as-kept",
        Short = "10m",
    }
    ClockOffset "venue-clock", "1, Authentication",
        "How the venue's clock compares with the client's." {
        Exact = "exact",
        Ahead = "ahead-3s",
        Behind = "behind-3s",
    }
    DepthTimes "depth-times", "1, Spot market data; 2, Futures market data",
        "Whether order-book answers carry their two times." {
        Sent = "sent",
        Absent = "absent",
    }
    // Connections.
    StreamEnd "stream-end", "2, Limits",
        "How the venue ends a connection after 24 hours." {
        Frame = "close-frame",
        Cut = "cut",
    }
    ServerPings "server-pings", "4, section 5",
        "Whether the venue pings a connection." {
        Sent = "sent",
        Never = "never",
    }
    TriggerEvents "trigger-events", "2, Order status",
        "The events of a conditional order when it triggers." {
        Same = "same-order",
        Number = "new-number",
        New = "new-order",
    }
    TradeIdScope "trade-id-scope", "1, Account trade; 2, ORDER_TRADE_UPDATE",
        "Where a trade id is unique." {
        Symbol = "symbol",
        Venue = "venue",
    }
}
