//! 11xx: request issues (docs/interface/errors.md#11xx).

super::row::codes! {
    -1100 ILLEGAL_CHARS Definite:
        "illegal characters in a parameter (legal range may be stated)";
        "Send only characters of the legal range; decimals without exponent or spaces."
    -1101 TOO_MANY_PARAMETERS Definite:
        "too many parameters (expected and received counts); duplicate values for a parameter";
        "Send each parameter once, and only those that the route lists."
    -1102 MANDATORY_PARAM_EMPTY_OR_MALFORMED Definite:
        "mandatory parameter missing, empty, null or malformed; one of two parameters must be sent but both are empty";
        "Send the parameter that the message names."
    -1103 UNKNOWN_PARAM Definite:
        "unknown parameter sent";
        "Leave out the parameter that the message names."
    -1104 UNREAD_PARAMETERS Definite:
        "not all sent parameters were read";
        "Leave out what the route does not list."
    -1105 PARAM_EMPTY Definite:
        "a parameter was empty";
        "Give the parameter a value or leave it out."
    -1106 PARAM_NOT_REQUIRED Definite:
        "a parameter was sent when not required";
        "Leave out the parameter that the message names for this order type or mode."
    -1108 BAD_ASSET Definite:
        "invalid asset";
        "Take the asset's name from exchangeInfo."
    -1109 BAD_ACCOUNT Definite:
        "invalid account";
        "Check the account's address, and that it exists on this surface."
    -1110 BAD_INSTRUMENT_TYPE Definite:
        "invalid type of symbol";
        "Use a symbol of this surface."
    -1111 BAD_PRECISION Definite:
        "precision exceeds the maximum for the asset";
        "Round to the tick and step of the symbol's filters."
    -1112 NO_DEPTH Definite:
        "no open orders for the pair";
        "Wait for orders in the book, or place a limit order."
    -1113 WITHDRAW_NOT_NEGATIVE Definite:
        "withdrawal amount must be negative";
        "Check the amount of the transfer or withdrawal."
    -1114 TIF_NOT_REQUIRED Definite:
        "timeInForce sent when not required";
        "Leave out timeInForce for this order type."
    -1115 INVALID_TIF Definite:
        "invalid timeInForce";
        "Use GTC, IOC, FOK, GTX or HIDDEN."
    -1116 INVALID_ORDER_TYPE Definite:
        "invalid order type";
        "Use one of the symbol's orderTypes."
    -1117 INVALID_SIDE Definite:
        "invalid order side";
        "Use BUY or SELL."
    -1118 EMPTY_NEW_CL_ORD_ID Definite:
        "new client order id empty";
        "Give newClientOrderId a value or leave it out."
    -1119 EMPTY_ORG_CL_ORD_ID Definite:
        "original client order id empty";
        "Give origClientOrderId a value, or send orderId."
    -1120 BAD_INTERVAL Definite:
        "invalid interval";
        "Use one of the kline intervals, 1m to 1M."
    -1121 BAD_SYMBOL Definite:
        "invalid symbol";
        "Take the symbol from exchangeInfo of this surface, in upper case."
    -1125 INVALID_LISTEN_KEY Definite:
        "listen key does not exist";
        "Create a new listen key, reconnect the user stream and catch up over REST."
    -1127 MORE_THAN_XX_HOURS Definite:
        "query interval too large";
        "Cut the time range into pieces that the route allows."
    -1128 OPTIONAL_PARAMS_BAD_COMBO Definite:
        "invalid combination of optional parameters";
        "Leave out one of the optional parameters that exclude each other."
    -1130 INVALID_PARAMETER Definite:
        "invalid data for a parameter";
        "Compare the parameter that the message names with the route's table."
    -1136 INVALID_NEW_ORDER_RESP_TYPE Definite:
        "invalid newOrderRespType";
        "Use ACK, RESULT or, on spot, FULL."
}
