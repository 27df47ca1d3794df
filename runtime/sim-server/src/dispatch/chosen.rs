//! Applies the venue's choices to responses: missing routes, codes, texts, headers and the form of
//! bodies.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use windvane_protocol::route::Surface;

use crate::choices::{
    AccountRoute, AllOrdersRoute, CancelAllAnswer, Choices, CountdownAnswer, DepthTimes,
    ErrorHeaders, ErrorStatus, ErrorText, ForceOrdersRoute, IncomeRoute, InfoHeaders, OddSymbols,
    OrderTypesKey, RetryForm, RiskRoute, Subject, TradesRoute, UnknownFilter, shape,
};
use crate::request::{Answer, Body, Refusal, Sent};

/// The header with the used weight.
const USED_WEIGHT: &str = "x-mbx-used-weight-1m";

/// Refuses a route that is not served.
pub(super) fn check_served(choices: &Choices, route: &str) -> Result<(), Refusal> {
    let (missing, refused) = match route {
        "futures.user_trades" => {
            let route = choices.of::<TradesRoute>();
            (
                route == TradesRoute::NotFound,
                route == TradesRoute::Refused,
            )
        }
        "futures.all_orders" => {
            let route = choices.of::<AllOrdersRoute>();
            (
                route == AllOrdersRoute::NotFound,
                route == AllOrdersRoute::Refused,
            )
        }
        "futures.position_risk" | "futures.balance" => {
            let route = choices.of::<RiskRoute>();
            (route == RiskRoute::NotFound, route == RiskRoute::Refused)
        }
        "futures.account" | "futures.earlier_account" => {
            let route = choices.of::<AccountRoute>();
            (
                route == AccountRoute::NotFound,
                route == AccountRoute::Refused,
            )
        }
        "futures.force_orders" => {
            let route = choices.of::<ForceOrdersRoute>();
            (
                route == ForceOrdersRoute::NotFound,
                route == ForceOrdersRoute::Refused,
            )
        }
        "futures.income" => {
            let route = choices.of::<IncomeRoute>();
            (
                route == IncomeRoute::NotFound,
                route == IncomeRoute::Refused,
            )
        }
        _ => return Ok(()),
    };
    if missing {
        let mut page = Refusal::new(-1020, "Not found.").with_status(404);
        page.is_page = true;
        return Err(page);
    }
    if refused {
        return Err(Refusal::new(-1020, "This operation is not supported."));
    }
    Ok(())
}

/// Gives a response the chosen form.
pub(super) fn answer(choices: &Choices, route: &str, answer: Answer) -> Answer {
    match answer {
        Ok(Body(text)) => {
            let text = body(choices, route, text);
            Ok(Body(shape(choices, Subject::Route(route), text)))
        }
        Err(mut refusal) => {
            if choices.of::<ErrorText>() == ErrorText::Other && refusal.status != 418 {
                refusal.msg = format!("E{:05}: see the table.", refusal.code.unsigned_abs());
            }
            if choices.of::<ErrorStatus>() == ErrorStatus::Varied && refusal.status == 400 {
                refusal.status = match refusal.code {
                    -2014 | -2015 | -1022 | -1002 => 401,
                    -2011 | -2013 => 404,
                    _ => 400,
                };
            }
            Err(refusal)
        }
    }
}

/// Changes the bodies of single routes.
fn body(choices: &Choices, route: &str, text: String) -> String {
    let own = route.split_once('.').map_or("", |(_, own)| own);
    let change: fn(&Choices, &mut Value) = match own {
        "cancel_all_orders" => match choices.of::<CancelAllAnswer>() {
            CancelAllAnswer::Text => return text,
            CancelAllAnswer::Empty => return String::new(),
            CancelAllAnswer::Number => |_, value| value["code"] = json!(200),
        },
        "countdown_cancel_all" if choices.of::<CountdownAnswer>() == CountdownAnswer::Text => {
            |_, value| value["countdownTime"] = json!(value["countdownTime"].to_string())
        }
        "depth" if choices.of::<DepthTimes>() == DepthTimes::Absent => |_, value| {
            if let Some(fields) = value.as_object_mut() {
                fields.retain(|name, _| name != "E" && name != "T");
            }
        },
        "exchange_info" if differs(choices) => exchange_info,
        _ => return text,
    };
    let Ok(mut value) = serde_json::from_str(&text) else {
        return text;
    };
    change(choices, &mut value);
    value.to_string()
}

fn differs(choices: &Choices) -> bool {
    choices.of::<OrderTypesKey>() == OrderTypesKey::Public
        || choices.of::<OddSymbols>() == OddSymbols::Some
        || choices.of::<UnknownFilter>() == UnknownFilter::Added
}

fn exchange_info(choices: &Choices, value: &mut Value) {
    let Some(symbols) = value["symbols"].as_array_mut() else {
        return;
    };
    for symbol in symbols.iter_mut() {
        if choices.of::<OrderTypesKey>() == OrderTypesKey::Public
            && let Some(fields) = symbol.as_object_mut()
            && let Some(types) = fields.remove("OrderType")
        {
            fields.insert("orderTypes".to_owned(), types);
        }
        if choices.of::<UnknownFilter>() == UnknownFilter::Added
            && let Some(filters) = symbol["filters"].as_array_mut()
        {
            let filter = json!({ "filterType": "POSITION_RISK_CONTROL", "limit": "none" });
            filters.insert(0, filter);
        }
    }
    if choices.of::<OddSymbols>() == OddSymbols::Some
        && let Some(first) = symbols.first().cloned()
    {
        let mut test = first.clone();
        test["symbol"] = json!("TESTUSDT");
        let mut incomplete = first;
        incomplete["symbol"] = json!("ODDUSDT");
        if let Some(fields) = incomplete.as_object_mut() {
            fields.retain(|name, _| name != "baseAsset" && name != "filters");
        }
        symbols.insert(0, incomplete);
        symbols.push(test);
    }
}

/// Removes the headers that the venue chose not to send.
pub(super) fn headers(
    choices: &Choices,
    surface: Surface,
    refused: bool,
    headers: &mut Vec<(&'static str, String)>,
) {
    let info = matches!(surface, Surface::Rpc | Surface::Chain);
    let absent = (info && choices.of::<InfoHeaders>() == InfoHeaders::Absent)
        || (refused && choices.of::<ErrorHeaders>() == ErrorHeaders::Absent);
    if absent {
        headers.retain(|(name, _)| *name != USED_WEIGHT);
    }
}

/// The last second of the year 9999. The format of dates has no later one.
const DATE_MAX_S: u64 = 253_402_300_799;

/// Gives `Retry-After` the chosen form.
pub(super) fn retry_after(choices: &Choices, sent: &mut Sent, clock_ms: i64) {
    match choices.of::<RetryForm>() {
        RetryForm::Absent if sent.status == 418 => {
            sent.headers.retain(|(name, _)| *name != "retry-after");
        }
        RetryForm::Seconds | RetryForm::Absent => {}
        RetryForm::Date => {
            for (name, value) in &mut sent.headers {
                if *name == "retry-after"
                    && let Ok(seconds) = value.parse::<i64>()
                {
                    let now_s = clock_ms.div_euclid(1_000);
                    let unix_s = u64::try_from(now_s.saturating_add(seconds)).unwrap_or_default();
                    let since = Duration::from_secs(unix_s.min(DATE_MAX_S));
                    *value = httpdate::fmt_http_date(UNIX_EPOCH + since);
                }
            }
        }
    }
}
