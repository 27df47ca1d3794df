//! 10xx: general server or network issues (docs/interface/errors.md#10xx).

super::row::codes! {
    -1000 UNKNOWN Unknown:
        "unknown error while processing";
        "Query the order by its client order id; do not send it again under another id."
    -1001 DISCONNECTED Unknown:
        "internal error, retry";
        "Query the order by its client order id before you send anything again."
    -1002 UNAUTHORIZED Fatal:
        "not authorized for this request";
        "Check which rights the API key or agent has, and approve what is missing."
    -1003 TOO_MANY_REQUESTS Wait:
        "too many requests queued or too much weight; the IP may be banned until a stated time";
        "Send nothing until Retry-After is over; use streams instead of polling."
    -1004 DUPLICATE_IP Definite:
        "IP already on the whitelist";
        "Do nothing: the address is already on the whitelist."
    -1005 NO_SUCH_IP Fatal:
        "IP not whitelisted";
        "Put this machine's public address on the whitelist of the key or agent."
    -1006 UNEXPECTED_RESP Unknown:
        "unexpected response from the message bus; execution status unknown";
        "Query the order by its client order id; do not send it again under another id."
    -1007 TIMEOUT Unknown:
        "timeout waiting for the backend; execution status unknown";
        "Query the order by its client order id; do not send it again under another id."
    -1013 INVALID_MESSAGE Definite:
        "the message does not pass a filter of the symbol";
        "Fetch exchangeInfo and fit price, quantity and notional to the symbol's filters."
    -1014 UNKNOWN_ORDER_COMPOSITION Definite:
        "order parameter combination unsupported";
        "Compare the parameters with the requirements of the order type."
    -1015 TOO_MANY_ORDERS Wait:
        "too many new orders; limit per interval";
        "Place no order until the interval of the ORDERS limit is over; cancels may pass."
    -1016 SERVICE_SHUTTING_DOWN Wait:
        "service no longer available";
        "Wait until the ping route responds again."
    -1020 UNSUPPORTED_OPERATION Definite:
        "operation unsupported";
        "Use another route: this one is not offered here."
    -1021 INVALID_TIMESTAMP Definite:
        "timestamp outside of recvWindow, or more than one second ahead of the server";
        "Correct the clock offset with the time route and sign again; check the machine's NTP."
    -1022 INVALID_SIGNATURE Fatal:
        "signature invalid";
        "Check secret, signer key, signing network and brand; sign exactly the bytes that are sent."
    -1023 START_TIME_GREATER_THAN_END_TIME Definite:
        "start time after end time";
        "Swap startTime and endTime."
}
