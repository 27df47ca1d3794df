//! A list of all request types, and a parser for any response by the name of its route.

use serde::de::Error;

use super::{Request, chain, futures, info, read, spot};

/// Passes the list of all request types to another macro.
macro_rules! every_request {
    ($then:ident) => {
        $then! {
            spot::NewOrder, spot::CancelOrder, spot::QueryOrder, spot::OpenOrder,
            spot::OpenOrders, spot::CancelAllOrders, spot::AllOrders, spot::WalletTransfer,
            spot::SendToAddress, spot::GetWithdrawFee, spot::Withdraw, spot::GetNonce,
            spot::CreateApiKey, spot::GetAccount, spot::UserTrades, spot::CreateListenKey,
            spot::KeepaliveListenKey, spot::CloseListenKey, spot::Noop, spot::Ping, spot::GetTime,
            spot::GetExchangeInfo, spot::GetDepth, spot::GetTrades, spot::GetHistoricalTrades,
            spot::GetAggTrades, spot::GetKlines, spot::GetTicker24hr, spot::GetPrice,
            spot::GetBookTicker, spot::GetCommissionRate,
            futures::ChangePositionMode, futures::GetPositionMode,
            futures::ChangeMultiAssetsMode, futures::GetMultiAssetsMode, futures::NewOrder,
            futures::BatchOrders, futures::WalletTransfer, futures::QueryOrder,
            futures::CancelOrder, futures::CancelAllOrders, futures::CancelBatchOrders,
            futures::CountdownCancelAll, futures::OpenOrder, futures::OpenOrders,
            futures::AllOrders, futures::GetBalance, futures::GetAccount,
            futures::GetEarlierAccount, futures::ChangeLeverage,
            futures::ChangeMarginType, futures::ChangePositionMargin,
            futures::PositionMarginHistory, futures::GetPositionRisk, futures::UserTrades,
            futures::GetIncome, futures::GetLeverageBracket, futures::GetAdlQuantile,
            futures::ForceOrders, futures::GetCommissionRate,
            futures::GetRemainingOpenableNotional, futures::CreateListenKey,
            futures::KeepaliveListenKey, futures::CloseListenKey, futures::ApproveAgent,
            futures::UpdateAgent, futures::DeleteAgent, futures::GetAgents,
            futures::ApproveBuilder, futures::UpdateBuilder, futures::DeleteBuilder,
            futures::GetBuilders, futures::Ping, futures::GetTime, futures::GetExchangeInfo,
            futures::GetDepth, futures::GetTrades, futures::GetHistoricalTrades,
            futures::GetAggTrades, futures::GetKlines, futures::GetIndexPriceKlines,
            futures::GetMarkPriceKlines, futures::GetPremiumIndex, futures::GetFundingRate,
            futures::GetFundingInfo, futures::GetTicker24hr, futures::GetPrice,
            futures::GetBookTicker,
            chain::GetAccountStatus, chain::ModifyAccountStatus, chain::GetLockedStaking,
            chain::Transfer, chain::GetDepositAddress, chain::PerpWithdraw,
            chain::PerpSolanaWithdraw, chain::GetWithdrawInfo, chain::GetDepositWithdrawHistory,
            chain::PerpWalletTransfer, chain::SpotWithdraw, chain::SpotSolanaWithdraw,
            chain::SpotWalletTransfer, chain::GetWithdrawFee,
            info::GetBalance, info::GetOpenOrders, info::GetUserFills,
        }
    };
}

macro_rules! by_route {
    ($($request:ty,)*) => {
        fn read_answer(route: &str, body: &str) -> Result<(), serde_json::Error> {
            match route {
                $(<$request as Request>::ROUTE => {
                    read::<<$request as Request>::Answer>(body).map(drop)
                })*
                _ => Err(serde_json::Error::custom(format!("there is no route {route:?}"))),
            }
        }

        /// Names of all parameters that the typed request of a route can send, in the documents'
        /// order; `None` for a name that is not in the table.
        pub fn parameter_names(route: &str) -> Option<&'static [&'static str]> {
            match route {
                $(<$request as Request>::ROUTE => Some(<$request as Request>::NAMES),)*
                _ => None,
            }
        }
    };
}
every_request!(by_route);

/// Checks that the body parses as a response of this route. The name is the one in the table
/// ([`crate::route::Route::name`]).
pub fn check(route: &str, body: &str) -> Result<(), serde_json::Error> {
    let answer = read_answer(route, body);
    if route == <futures::NewOrder as Request>::ROUTE {
        // With a builder code the same route sends a different record.
        return answer.or_else(|error| match read::<futures::BuilderOrder>(body) {
            Ok(_) => Ok(()),
            Err(_) => Err(error),
        });
    }
    answer
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;
    use serde_json::value::RawValue;
    use windvane_wire_examples as examples;

    use super::*;
    use crate::route::{self, Need};
    use crate::wire::Parameters;

    macro_rules! read_and_write_again {
        ($($request:ty,)*) => {
            fn read_and_write(route: &str, body: &str) -> String {
                match route {
                    $(<$request as Request>::ROUTE => {
                        let answer = read::<<$request as Request>::Answer>(body);
                        let answer = answer.unwrap_or_else(|error| panic!("{route}: {error}"));
                        serde_json::to_string(&answer).unwrap()
                    })*
                    _ => panic!("no route {route}"),
                }
            }
        };
    }
    every_request!(read_and_write_again);

    /// Collects every value with its path, as text without quotes, so that numbers keep all digits.
    fn leaves(json: &str, path: &str, into: &mut BTreeMap<String, String>) {
        if json.starts_with('{') {
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json).unwrap();
            for (name, value) in fields {
                leaves(value.get(), &format!("{path}.{name}"), into);
            }
        } else if json.starts_with('[') {
            let entries: Vec<&RawValue> = serde_json::from_str(json).unwrap();
            for (index, value) in entries.iter().enumerate() {
                leaves(value.get(), &format!("{path}[{index}]"), into);
            }
        } else if json != "null" {
            into.insert(path.to_owned(), json.trim_matches('"').to_owned());
        }
    }

    #[test]
    fn every_route_has_a_request_and_an_example() {
        for route in route::all() {
            assert!(parameter_names(route.name).is_some(), "{}", route.name);
            let examples = examples::all().into_iter();
            let count = examples
                .filter(|example| example.route == route.name)
                .count();
            assert!(count > 0, "{} has no example", route.name);
        }
        for example in examples::all() {
            assert!(route::named(example.route).is_some(), "{}", example.route);
        }
    }

    #[test]
    fn requests_send_the_table_parameters_in_order() {
        // Parameters of the authentication, and parameters that only untyped calls send.
        let apart = ["recvWindow", "timestamp", "builder", "feeRate"];
        for route in route::all() {
            let listed = route.params.iter().map(|param| param.name);
            let names = parameter_names(route.name).unwrap();
            let expected: Vec<&str> = listed
                .filter(|name| names.contains(name) || !apart.contains(name))
                .collect();
            assert_eq!(names, expected, "{}", route.name);
        }
    }

    #[test]
    fn examples_send_required_and_known_parameters_only() {
        let filled = ["nonce", "userNonce", "userSignature", "timestamp"];
        for example in examples::all() {
            let route = route::named(example.route).unwrap();
            for param in route
                .params
                .iter()
                .filter(|param| param.need == Need::Required)
            {
                let sent = example.parameters.get(param.name).is_some();
                assert!(
                    sent || filled.contains(&param.name),
                    "{} {}",
                    route.name,
                    param.name
                );
            }
            for (name, _) in example.parameters.iter() {
                let known = route.params.iter().any(|param| param.name == name);
                assert!(known, "{} does not list {name}", route.name);
            }
            let one_of = || {
                route
                    .params
                    .iter()
                    .filter(|param| param.need == Need::OneOf)
            };
            let sent = one_of().any(|param| example.parameters.get(param.name).is_some());
            assert!(sent || one_of().count() == 0, "{}", route.name);
        }
    }

    #[test]
    fn every_documented_response_field_is_parsed() {
        for example in examples::all() {
            check(example.route, example.answer).unwrap();
            if example.answer.is_empty() || example.is_builder_order() {
                continue;
            }
            let again = read_and_write(example.route, example.answer);
            let (mut expected, mut found) = (BTreeMap::new(), BTreeMap::new());
            leaves(example.answer, "", &mut expected);
            leaves(&again, "", &mut found);
            assert_eq!(found, expected, "{}", example.route);
        }
    }

    #[test]
    fn unknown_fields_are_ignored_in_every_object() {
        fn add(value: &mut Value) {
            match value {
                Value::Object(fields) => {
                    fields.values_mut().for_each(add);
                    fields.insert("notDocumented".to_owned(), serde_json::json!([{"a": 1.5}]));
                }
                Value::Array(entries) => entries.iter_mut().for_each(add),
                _ => {}
            }
        }
        for example in examples::all().iter().filter(|it| !it.answer.is_empty()) {
            let mut answer: Value = serde_json::from_str(example.answer).unwrap();
            // The keys of these objects are names of assets and chains, so no key is unknown.
            if example.route != "chain.withdraw_info" {
                add(&mut answer);
            }
            check(example.route, &answer.to_string()).unwrap();
        }
    }

    #[test]
    fn an_unknown_route_name_is_an_error() {
        assert!(check("spot.nothing", "{}").is_err());
        assert_eq!(parameter_names("spot.nothing"), None);
        assert_eq!(Parameters::new().iter().count(), 0);
    }
}
