//! The points that the documents leave open, one row each. `docs/open-points.md` explains what a
//! client must do about each. The first value is the default.

use super::open_points;

open_points! {
    // User events: their order, number and time.
    AccountOrder "account-event-order", "docs/interface/user-stream.md#order-of-events",
        "Which comes first after a fill: the order event or the account event." {
        After = "order-first",
        Before = "account-first",
    }
    AccountEvents "account-events", "docs/interface/user-stream.md#account_update",
        "How many account events several fills of one moment cause." {
        Each = "one-per-fill",
        Merged = "merged",
    }
    FillEvents "fill-events", "docs/interface/user-stream.md#order_trade_update",
        "How many order events several fills of one order and one moment cause. The event is due when the status changes." {
        Each = "one-per-fill",
        Last = "last-only",
    }
    RestExpires "unfilled-rest", "docs/interface/orders.md#order-status",
        "How the end of an order whose rest expires at once is reported." {
        Two = "two-events",
        One = "one-event",
    }
    EventTimes "event-times", "docs/interface/user-stream.md#order-of-events",
        "Whether event time and transaction time are the same." {
        Equal = "equal",
        Apart = "apart",
    }
    Arrival "event-arrival", "docs/interface/user-stream.md#order-of-events",
        "Whether events arrive in the order in which they were made. Payloads may arrive out of order in heavy periods." {
        InOrder = "in-order",
        Shuffled = "shuffled",
    }
    StreamDelay "stream-delay", "docs/interface/user-stream.md#order-of-events; docs/interface/README.md#2-user-events-twice-or-out-of-order",
        "How far the user stream is behind the account, so that REST is ahead of it." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    AnswerTiming "answer-timing", "docs/interface/README.md#2-user-events-twice-or-out-of-order",
        "Whether the answer to a place or cancel leaves before or after its event." {
        Before = "before-event",
        After = "after-event",
    }
    AfterReconnect "events-after-reconnect", "docs/interface/user-stream.md#connection; docs/interface/README.md#2-user-events-twice-or-out-of-order",
        "The first events on a new user-stream connection." {
        Nothing = "new-only",
        Again = "recent-again",
    }
    UnknownEvents "unknown-events", "docs/interface/user-stream.md#order-of-events",
        "Whether the user stream carries events that no document names." {
        None = "none",
        Some = "some",
    }
    // User events: their content.
    FlatPosition "flat-position", "docs/interface/user-stream.md#account_update",
        "Whether a position that has just become flat is in the list of positions. The document lists non-zero positions only." {
        Absent = "absent",
        Listed = "listed",
    }
    EventPositions "event-positions", "docs/interface/user-stream.md#account_update",
        "Which positions an account event lists." {
        Touched = "touched",
        All = "all-held",
    }
    EventBalances "event-balances", "docs/interface/user-stream.md#account_update",
        "Which balances an account event lists." {
        Changed = "changed",
        All = "all",
    }
    FeeInEvent "fee-in-event", "docs/interface/user-stream.md#order_trade_update",
        "Whether the order event of a fill carries the commission. Without a commission both fields are omitted." {
        Sent = "sent",
        Later = "later",
    }
    FeeRounding "fee-rounding", "docs/interface/user-stream.md#order_trade_update; docs/interface/account.md#spot-trades",
        "How many decimals the commission of an event and of an account trade has. The balance has all." {
        Exact = "exact",
        Rounded = "four-decimals",
    }
    FeeAsset "fee-asset", "docs/interface/user-stream.md#order_trade_update; docs/interface/user-stream.md#account_config_update",
        "The asset that futures commissions are taken in." {
        Quote = "quote",
        Other = "other",
    }
    SpotFeeAsset "spot-fee-asset", "docs/interface/user-stream.md#executionreport",
        "The asset that the commission of a spot buy is taken in." {
        Quote = "quote",
        Received = "received",
    }
    SpotLockEvents "spot-balance-events", "docs/interface/user-stream.md#outboundaccountposition",
        "Whether a balance that is only locked or freed counts as changed." {
        Sent = "locks-too",
        Fills = "fills-only",
    }
    EntryRounding "entry-price-rounding", "docs/interface/user-stream.md#account_update; docs/interface/futures.md#position-risk",
        "How entry prices are rounded." {
        Fine = "eight-decimals",
        Tick = "tick",
    }
    AverageRounding "average-price-rounding", "docs/interface/orders.md#spot-order; docs/interface/orders.md#futures-order",
        "How average prices of orders are rounded." {
        Fine = "eight-decimals",
        Tick = "tick",
    }
    ProfitRounding "realized-profit-rounding", "docs/interface/user-stream.md#order_trade_update; docs/interface/account.md#futures-trades",
        "How many decimals realized profits have." {
        Exact = "exact",
        Rounded = "two-decimals",
    }
    TransferReason "transfer-reason", "docs/interface/user-stream.md#account_update",
        "The reason that the event of a transfer between the surfaces states." {
        Asset = "ASSET_TRANSFER",
        Deposit = "DEPOSIT-WITHDRAW",
        Margin = "MARGIN_TRANSFER",
    }
    LiquidationReason "liquidation-reason", "docs/interface/user-stream.md#account_update",
        "The reason that the account event of a liquidation or of auto-deleveraging states." {
        Order = "ORDER",
        Insurance = "INSURANCE_CLEAR",
        Adjustment = "ADJUSTMENT",
    }
    LiquidationStatus "liquidation-status", "docs/interface/orders.md#order-status; docs/interface/futures.md#forced-orders",
        "The status of the fills of a liquidation or of auto-deleveraging." {
        Ordinary = "ordinary",
        Special = "special",
    }
    LiquidationExecution "liquidation-execution", "docs/interface/futures.md#forced-orders",
        "The execution type of the fills of a liquidation." {
        Calculated = "CALCULATED",
        Trade = "TRADE",
    }
    LiquidationEvents "liquidation-events", "docs/interface/user-stream.md#order_trade_update",
        "Whether the order of a liquidation has an event before its fill." {
        WithNew = "new-and-fill",
        FillOnly = "fill-only",
    }
    UnfilledAccount "account-event-without-orders", "docs/interface/user-stream.md#account_update",
        "Whether auto-deleveraging and liquidation have order events at all, or account events alone." {
        Both = "order-and-account",
        AccountOnly = "account-only",
    }
    // REST responses compared with the stream.
    AccountLag "account-lag", "docs/interface/account.md#futures-account-routes",
        "How far the account route is behind the stream." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    PositionLag "position-lag", "docs/interface/futures.md#position-risk",
        "How far the position and balance routes are behind the stream." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    OpenOrdersLag "open-orders-lag", "docs/interface/orders.md#open-orders",
        "How far the list of open orders is behind the stream." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    QueryLag "query-lag", "docs/interface/orders.md#query-an-order",
        "How far the query of one order is behind the stream. A new order is then not found." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    TradesLag "trades-lag", "docs/interface/account.md#futures-trades",
        "How far the list of account trades is behind the stream." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    InfoLag "info-lag", "docs/interface/chain.md#info-endpoint",
        "How far the info endpoint is behind the stream." {
        None = "0s",
        One = "1s",
        Five = "5s",
        Ten = "10s",
    }
    EndedListed "ended-orders-listed", "docs/interface/orders.md#open-orders",
        "Whether the list of open orders has orders that ended a moment ago, with their final status." {
        No = "no",
        Yes = "for-2s",
    }
    // Responses: lists and missing routes.
    AccountPositions "account-positions", "docs/interface/account.md#futures-account",
        "Which positions the account route lists." {
        All = "all",
        Held = "held",
    }
    RiskPositions "position-risk-positions", "docs/interface/futures.md#position-risk",
        "Which positions the position route lists." {
        All = "all",
        Held = "held",
    }
    OneWaySides "one-way-sides", "docs/interface/futures.md#position-mode; docs/interface/futures.md#position-risk",
        "Which rows a symbol has in one-way mode." {
        Both = "both-only",
        Three = "all-sides",
    }
    AccountAssets "account-assets", "docs/interface/account.md#spot-account; docs/interface/account.md#futures-account",
        "Which assets balances and accounts list." {
        All = "all",
        Held = "held",
    }
    InfoPositions "info-positions", "docs/interface/chain.md#balances-and-positions",
        "Which positions the info endpoint lists." {
        Held = "held",
        All = "all",
    }
    TradesRoute "account-trades-route", "docs/interface/account.md#futures-account-routes",
        "Whether futures account trades can be read." {
        Served = "served",
        NotFound = "404",
        Refused = "refused",
    }
    AllOrdersRoute "all-orders-route", "docs/interface/orders.md#all-orders",
        "Whether all futures orders can be listed." {
        Served = "served",
        NotFound = "404",
        Refused = "refused",
    }
    RiskRoute "position-risk-route", "docs/interface/futures.md#position-risk",
        "Whether the position and balance routes exist." {
        Served = "served",
        NotFound = "404",
        Refused = "refused",
    }
    AccountRoute "account-route", "docs/interface/account.md#futures-account-routes",
        "Whether the futures account route exists." {
        Served = "served",
        NotFound = "404",
        Refused = "refused",
    }
    ForceOrdersRoute "force-orders-route", "docs/interface/futures.md#forced-orders",
        "Whether the orders of liquidations and of auto-deleveraging can be listed." {
        Served = "served",
        NotFound = "404",
        Refused = "refused",
    }
    IncomeRoute "income-route", "docs/interface/account.md#income",
        "Whether the income history can be read." {
        Served = "served",
        NotFound = "404",
        Refused = "refused",
    }
    CanTrade "can-trade", "docs/interface/account.md#spot-account; docs/interface/account.md#futures-account",
        "Whether the account says that it may trade." {
        Present = "present",
        Absent = "absent",
    }
    AccountTime "account-update-time", "docs/interface/account.md#futures-account",
        "The value of updateTime in accounts, balances and positions." {
        Set = "set",
        Zero = "zero",
        Absent = "absent",
    }
    // Responses: orders.
    AckAnswer "new-order-answer", "docs/interface/orders.md#place-a-futures-order",
        "The state of the order in the answer to a new order with ACK." {
        Accepted = "as-accepted",
        Current = "as-it-is",
    }
    RejectForm "rejected-order", "docs/interface/orders.md#place-a-futures-order; docs/interface/orders.md#order-status",
        "How the matching engine refuses a futures order." {
        Error = "error",
        Status = "status-REJECTED",
    }
    PostOnlyCross "post-only-cross", "docs/interface/orders.md#time-in-force",
        "The end of a post-only order that would trade at once." {
        Expired = "EXPIRED",
        Refused = "refused",
    }
    ClosingLeft "reduce-only-after-close", "docs/interface/orders.md#place-a-futures-order",
        "The fate of a resting reduce-only order when the position is flat." {
        Expired = "EXPIRED",
        Rests = "rests",
    }
    CancelUnknown "cancel-of-ended-order", "docs/interface/orders.md#cancel-an-order; docs/interface/errors.md#20xx",
        "The code for cancelling an order that has ended or never was." {
        Rejected = "-2011",
        NoSuch = "-2013",
    }
    QueryUnknown "query-of-unknown-order", "docs/interface/orders.md#query-an-order; docs/interface/errors.md#20xx",
        "The code for querying an order that is not found. The document gives the text alone." {
        NoSuch = "-2013",
        Unknown = "-2011",
    }
    DuplicateCode "duplicate-id-code", "docs/interface/orders.md#client-order-ids; docs/interface/errors.md#40xx",
        "The code for a client order id that an open order has." {
        Futures = "-4116",
        Rejected = "-2010",
        Length = "-4015",
    }
    EndedIdReuse "ended-id-reuse", "docs/interface/orders.md#client-order-ids",
        "Whether the client order id of an ended futures order may be used again." {
        Accepted = "accepted",
        Refused = "refused",
    }
    IocEnd "unfilled-rest-status", "docs/interface/orders.md#order-status",
        "The final status of an order of which the rest cannot be filled at once." {
        Expired = "EXPIRED",
        Canceled = "CANCELED",
    }
    BatchOrder "batch-matching-order", "docs/interface/orders.md#place-several-orders",
        "In which order the orders of a batch are processed." {
        AsSent = "as-sent",
        Reversed = "reversed",
    }
    CancelAllAnswer "cancel-all-answer", "docs/interface/orders.md#cancel-all-open-orders; docs/interface/README.md#10-numbers-and-flags-as-text",
        "The answer to a successful cancel-all." {
        Text = "code-text",
        Number = "code-number",
        Empty = "empty",
    }
    CountdownAnswer "countdown-answer", "docs/interface/futures.md#countdowncancelall; docs/interface/README.md#10-numbers-and-flags-as-text",
        "The answer to setting a countdown." {
        Number = "number",
        Text = "text",
    }
    ForeignIds "client-order-ids-of-others", "docs/interface/orders.md#client-order-ids",
        "The form of client order ids that the client did not choose." {
        Hex = "hex",
        Long = "long",
        Short = "short",
    }
    OrderIds "order-id-size", "docs/interface/orders.md#futures-order",
        "How large order ids are. They are 64-bit integers." {
        Small = "small",
        Large = "large",
    }
    // Responses: form.
    UnknownFields "unknown-fields", "docs/interface/conventions.md#responses-and-types",
        "Whether objects have fields that no document names." {
        None = "none",
        Added = "added",
    }
    KeyOrder "key-order", "docs/interface/conventions.md#responses-and-types",
        "The order of the keys of JSON objects." {
        Usual = "usual",
        Reversed = "reversed",
    }
    Spacing "json-spacing", "docs/interface/conventions.md#responses-and-types",
        "White space between the tokens of JSON." {
        Compact = "compact",
        Spaced = "spaced",
    }
    DecimalForm "decimal-form", "docs/interface/conventions.md#responses-and-types",
        "How decimal text is written." {
        Shortest = "shortest",
        Padded = "padded",
    }
    LeverageForm "leverage-form", "docs/interface/README.md#10-numbers-and-flags-as-text",
        "How leverage is written in accounts and positions." {
        Text = "text",
        Number = "number",
    }
    ErrorText "error-text", "docs/interface/errors.md#error-payload",
        "The text of an error. Only the code is standardized." {
        Usual = "usual",
        Other = "other",
    }
    ErrorStatus "error-status", "docs/interface/errors.md#http-status",
        "The HTTP status of an error that is the sender's fault." {
        Same = "400",
        Varied = "varied",
    }
    OrderTypesKey "order-types-key", "docs/interface/market-data.md#exchange-information",
        "The name of the list of order types of a futures symbol." {
        Document = "OrderType",
        Public = "orderTypes",
    }
    OddSymbols "odd-symbols", "docs/interface/conventions.md#symbols; docs/interface/market-data.md#exchange-information",
        "Whether exchange information has symbols for tests and incomplete symbols." {
        None = "none",
        Some = "some",
    }
    UnknownFilter "unknown-filter", "docs/interface/orders.md#filters",
        "Whether symbols have filters that no document names." {
        None = "none",
        Added = "added",
    }
    // Limits, headers and keys.
    InfoWeight "info-weight", "docs/interface/limits.md#counters; docs/interface/chain.md#info-endpoint",
        "The weight counter of the info endpoint. Limits are per IP." {
        Own = "own",
        Futures = "futures",
    }
    SpotWeight "spot-weight", "docs/interface/limits.md#counters",
        "The weight counter of the spot surface." {
        Own = "own",
        Futures = "futures",
    }
    InfoHeaders "info-headers", "docs/interface/limits.md#headers",
        "Whether the info endpoint and the chain API send weight headers." {
        Sent = "sent",
        Absent = "absent",
    }
    ErrorHeaders "error-headers", "docs/interface/limits.md#headers",
        "Whether errors carry the weight header." {
        Sent = "sent",
        Absent = "absent",
    }
    RefusedCount "order-count-of-refusals", "docs/interface/limits.md#headers",
        "Whether refused orders carry the order-count header." {
        Absent = "absent",
        Sent = "sent",
    }
    OrderLimitRetry "order-limit-retry-after", "docs/interface/limits.md#429-418-and-bans",
        "Whether the 429 of the order limit has Retry-After." {
        Absent = "absent",
        Sent = "sent",
    }
    RetryForm "ban-retry-after", "docs/interface/limits.md#429-418-and-bans",
        "How Retry-After of a 429 or 418 is written." {
        Seconds = "seconds",
        Date = "http-date",
        Absent = "absent-on-418",
    }
    WeightWindow "weight-window", "docs/interface/limits.md#counters",
        "When an interval of weights or orders begins." {
        Clock = "whole-minute",
        First = "first-request",
    }
    ListenKeyPost "listen-key-on-post", "docs/interface/user-stream.md#listen-keys",
        "The answer to POST while a listen key is valid." {
        Same = "same",
        New = "new",
    }
    ListenKeyLife "listen-key-life", "docs/interface/user-stream.md#listen-keys; docs/interface/README.md#1-listen-keys-and-silent-streams",
        "How long a listen key that is kept alive lives." {
        Kept = "as-kept",
        Short = "10m",
    }
    ClockOffset "venue-clock", "docs/interface/conventions.md#timestamps",
        "Whether the venue's clock is equal to the client's, ahead of it, or behind it." {
        Exact = "exact",
        Ahead = "ahead-3s",
        Behind = "behind-3s",
    }
    DepthTimes "depth-times", "docs/interface/market-data.md#order-book",
        "Whether order-book answers carry their two times." {
        Sent = "sent",
        Absent = "absent",
    }
    // Connections.
    StreamEnd "stream-end", "docs/interface/limits.md#websocket-limits",
        "How the venue ends a connection after 24 hours." {
        Frame = "close-frame",
        Cut = "cut",
    }
    ServerPings "server-pings", "docs/interface/limits.md#websocket-limits",
        "Whether the venue pings a connection." {
        Sent = "sent",
        Never = "never",
    }
    TriggerEvents "trigger-events", "docs/interface/futures.md#conditional-orders",
        "The events of a conditional order when it triggers." {
        Same = "same-order",
        Number = "new-number",
        New = "new-order",
    }
    TradeIdScope "trade-id-scope", "docs/interface/account.md#spot-trades; docs/interface/user-stream.md#order-of-events",
        "Where a trade id is unique." {
        Symbol = "symbol",
        Venue = "venue",
    }
}
