//! docs/interface/README.md#what-trips-clients: for each of its 15 points the tests that cover it,
//! in any crate, and a check that these tests exist.

use std::path::Path;

/// A point in short form, and its tests: file below `runtime/`, name.
type Point = (&'static str, &'static [(&'static str, &'static str)]);

const POINTS: [Point; 15] = [
    (
        "listen keys expire, streams fall silent; catch up and dedupe fills",
        &[
            ("client/tests/streams.rs", "an_expired_key_is_replaced"),
            (
                "client/tests/streams.rs",
                "a_repeated_expiry_event_makes_one_new_key",
            ),
            (
                "client/tests/streams.rs",
                "a_user_stream_comes_back_after_its_connection_broke",
            ),
            (
                "client/tests/streams.rs",
                "a_venue_that_does_not_answer_pings_is_left",
            ),
            (
                "client-core/src/streams/machine_tests.rs",
                "a_key_that_died_is_made_anew",
            ),
            (
                "client-core/src/streams/machine_tests.rs",
                "a_renewal_that_fails_is_tried_again_until_the_key_is_dead",
            ),
            (
                "protocol/tests/user_events.rs",
                "an_expired_listen_key_is_an_event_of_both_surfaces",
            ),
            ("engine/tests/updates.rs", "a_repeated_fill_counts_once"),
            (
                "sim-server/tests/client_faults.rs",
                "a_user_stream_survives_a_dead_key_and_a_frozen_connection",
            ),
            (
                "sim-server/tests/client.rs",
                "a_replaced_user_stream_delivers_each_event_once",
            ),
            (
                "engine/tests/live/reconciliation.rs",
                "a_fill_that_the_stream_missed_comes_with_the_trades",
            ),
            (
                "engine/tests/live/lifecycle.rs",
                "a_silent_stream_is_reconnected",
            ),
            (
                "engine/tests/live/lifecycle.rs",
                "a_lost_stream_degrades_until_the_account_was_compared_again",
            ),
        ],
    ),
    (
        "user events out of order or twice; a fill before NEW",
        &[
            (
                "engine/tests/updates.rs",
                "a_fill_before_its_new_event_counts_once",
            ),
            (
                "engine/tests/updates.rs",
                "a_late_fill_of_an_ended_order_is_booked",
            ),
            (
                "engine/tests/updates.rs",
                "a_missing_fill_keeps_its_exposure_until_it_arrives",
            ),
            (
                "sim-server/tests/control/events.rs",
                "events_come_twice_never_late_or_out_of_order",
            ),
        ],
    ),
    (
        "503, -1006, -1007 after acceptance: query first",
        &[
            (
                "client/tests/answers.rs",
                "a_503_leaves_an_order_unknown_whatever_its_body",
            ),
            (
                "protocol/src/error/code/mod.rs",
                "only_outcomes_that_the_documents_call_unknown_are_unknown",
            ),
            (
                "protocol/src/error/judgement.rs",
                "codes_decide_where_the_status_leaves_room",
            ),
            (
                "engine/tests/updates.rs",
                "an_order_of_unknown_outcome_counts_fully_and_is_queried",
            ),
            (
                "sim-server/tests/client_faults.rs",
                "unknown_orders_are_settled_by_their_client_order_id",
            ),
            (
                "sim-server/tests/control/requests.rs",
                "unknown_outcomes_follow_the_accepted_switch",
            ),
            (
                "engine/tests/live/unknown.rs",
                "absence_settles_nothing_while_the_request_may_still_arrive",
            ),
            (
                "engine/tests/live/unknown.rs",
                "a_lost_order_keeps_its_exposure_and_is_never_sent_again",
            ),
        ],
    ),
    (
        "client order ids are never reused",
        &[
            (
                "engine/tests/updates.rs",
                "ids_of_another_epoch_or_strategy_are_not_own_orders",
            ),
            (
                "engine/tests/live/succession.rs",
                "order_numbers_and_ids_are_never_reused",
            ),
            ("model/src/ids.rs", "own_ids_round_trip"),
            (
                "sim/tests/orders.rs",
                "spot_ids_are_free_again_only_after_a_fill",
            ),
            (
                "sim/tests/orders.rs",
                "cancels_and_queries_know_finished_from_unknown",
            ),
            (
                "sim-server/tests/account/spot.rs",
                "a_spot_id_is_taken_until_its_order_was_filled",
            ),
        ],
    ),
    (
        "cancel of an order that just filled: -2011",
        &[
            (
                "engine/tests/updates.rs",
                "an_order_that_fills_before_its_cancel_is_filled",
            ),
            (
                "sim/tests/orders.rs",
                "cancels_and_queries_know_finished_from_unknown",
            ),
            (
                "sim-server/tests/account/spot.rs",
                "cancels_and_queries_of_unknown_orders_are_refused",
            ),
        ],
    ),
    (
        "reduce-only orders are exempt from MIN_NOTIONAL",
        &[
            (
                "model/tests/rules/examples.rs",
                "notionals_reach_the_minimum_unless_reduce_only",
            ),
            (
                "sim/tests/rules.rs",
                "notional_has_its_bounds_and_exemptions",
            ),
        ],
    ),
    (
        "precisions are not tick and step; plain decimal text",
        &[
            (
                "protocol/tests/wire.rs",
                "point_7_precisions_are_not_tick_and_step",
            ),
            (
                "protocol/tests/wire.rs",
                "point_7_decimals_are_sent_as_the_caller_wrote_them",
            ),
            (
                "model/tests/rules/examples.rs",
                "numbers_keep_to_the_precision_of_the_symbol",
            ),
        ],
    ),
    (
        "percent-encoding: sign and verify the bytes; names without case",
        &[
            (
                "protocol/src/sign/encode.rs",
                "only_unreserved_characters_stay",
            ),
            (
                "protocol/src/sign/encode.rs",
                "lists_lose_the_space_between_tokens_only",
            ),
            (
                "protocol/tests/prepared.rs",
                "signed_bytes_are_sent_unchanged",
            ),
            (
                "client/tests/answers.rs",
                "prepared_bytes_are_sent_unchanged",
            ),
            (
                "sim-server/src/request/params.rs",
                "names_have_no_case_and_values_are_decoded",
            ),
            (
                "sim-server/src/auth/raw.rs",
                "only_a_signature_at_the_end_is_taken_off",
            ),
            (
                "sim-server/tests/account/auth.rs",
                "query_and_body_are_signed_as_one_text_without_a_separator",
            ),
        ],
    ),
    (
        "batch answers: 200 with an error object per entry",
        &[
            (
                "protocol/tests/wire.rs",
                "point_9_batch_answers_hold_an_error_object_per_entry",
            ),
            (
                "sim/tests/orders.rs",
                "a_batch_answers_every_order_before_the_first_event",
            ),
            (
                "sim-server/tests/account/futures.rs",
                "a_batch_answers_entry_by_entry_in_its_order",
            ),
        ],
    ),
    (
        "codes, leverage and flags as text; numbers beyond double precision",
        &[
            (
                "protocol/tests/wire.rs",
                "point_10_numbers_and_text_are_interchangeable_in_answers",
            ),
            ("protocol/tests/wire.rs", "point_10_code_is_text_or_number"),
            (
                "protocol/tests/wire.rs",
                "point_10_leverage_is_text_or_number",
            ),
            ("protocol/tests/wire.rs", "point_10_false_as_text_is_false"),
            (
                "protocol/tests/wire.rs",
                "point_10_numbers_beyond_double_precision_keep_every_digit",
            ),
            (
                "protocol/tests/user_events.rs",
                "numbers_and_flags_are_read_as_text_and_as_numbers",
            ),
            (
                "protocol/src/error/mod.rs",
                "a_code_is_read_as_number_and_as_text",
            ),
            (
                "sim-server/tests/account/futures.rs",
                "cancel_all_spells_its_code_as_text",
            ),
        ],
    ),
    (
        "HTML and empty bodies; 429 without Retry-After",
        &[
            (
                "protocol/src/error/judgement.rs",
                "statuses_without_a_code_are_classed_by_the_documents",
            ),
            (
                "protocol/src/error/judgement.rs",
                "a_limit_names_its_kind_and_its_wait",
            ),
            (
                "protocol/tests/wire.rs",
                "point_11_an_empty_body_is_a_success_for_simple_results",
            ),
            (
                "protocol/tests/wire.rs",
                "point_11_html_is_an_error_on_every_route",
            ),
            (
                "client/tests/answers.rs",
                "html_with_5xx_leaves_an_order_unknown",
            ),
            (
                "client/tests/answers.rs",
                "the_order_limit_stops_orders_and_lets_cancels_pass",
            ),
            (
                "sim-server/tests/account/limits.rs",
                "too_many_orders_are_429_without_retry_after",
            ),
            (
                "sim-server/tests/control/requests.rs",
                "bodies_can_be_html_empty_or_half",
            ),
        ],
    ),
    (
        "hedge mode: positionSide, never reduceOnly",
        &[
            (
                "protocol/tests/wire.rs",
                "point_12_hedge_mode_never_sends_reduce_only",
            ),
            (
                "model/tests/rules/examples.rs",
                "position_sides_follow_the_position_mode",
            ),
            (
                "engine/tests/risk/reduce_only.rs",
                "hedge_mode_has_the_same_limit_without_the_flag",
            ),
            (
                "sim/tests/account.rs",
                "hedge_mode_keeps_two_positions_and_requires_the_side",
            ),
            (
                "sim-server/tests/account/futures.rs",
                "hedge_mode_has_its_rules",
            ),
        ],
    ),
    (
        "liquidation and ADL orders are external",
        &[
            (
                "protocol/tests/user_events.rs",
                "client_order_ids_mark_liquidations_and_adl",
            ),
            (
                "engine/tests/updates.rs",
                "a_liquidation_is_booked_once_and_taken_from_the_strategy",
            ),
            (
                "sim/tests/force.rs",
                "liquidation_and_deleveraging_come_on_request",
            ),
            (
                "sim-server/tests/control/actions.rs",
                "liquidation_and_deleveraging_leave_their_orders",
            ),
        ],
    ),
    (
        "a funding update has balances only and wipes no position",
        &[
            (
                "protocol/tests/user_events.rs",
                "a_funding_update_has_no_positions",
            ),
            (
                "sim/tests/force.rs",
                "funding_comes_on_request_and_lists_the_balance_only",
            ),
        ],
    ),
    (
        "the countdown is per symbol, each call replaces the last",
        &[
            (
                "sim/tests/account.rs",
                "the_countdown_cancels_the_symbol_on_its_grid_unless_renewed",
            ),
            (
                "sim-server/tests/account/futures.rs",
                "a_countdown_cancels_open_orders",
            ),
            (
                "engine/tests/live/deadman.rs",
                "the_first_order_waits_until_the_timer_is_confirmed",
            ),
            (
                "engine/tests/live/deadman.rs",
                "renewal_stops_while_the_stream_is_down",
            ),
            (
                "engine/tests/live/deadman.rs",
                "a_journal_stall_stops_renewals_until_orders_are_unknown",
            ),
        ],
    ),
];

/// Whether the function of this name is a test: only attributes, comments and the head of a
/// property block may come between it and its test attribute.
fn is_test(source: &str, name: &str) -> bool {
    let heads = [format!("fn {name}("), format!("async fn {name}(")];
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let Some(at) = lines
        .iter()
        .position(|line| heads.iter().any(|head| line.starts_with(head)))
    else {
        return false;
    };
    let above = lines[..at].iter().rev();
    above
        .take_while(|line| line.starts_with('#') || line.starts_with("//"))
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

#[test]
fn every_point_names_tests_that_exist() {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut missing = Vec::new();
    for (at, (what, tests)) in POINTS.iter().enumerate() {
        assert!(!tests.is_empty(), "point {}, {what}: no test", at + 1);
        for (file, name) in *tests {
            let source = std::fs::read_to_string(runtime.join(file)).unwrap_or_default();
            if !is_test(&source, name) {
                missing.push(format!(
                    "point {}, {what}: {file} has no test {name}",
                    at + 1
                ));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_function_without_a_test_attribute_is_not_a_test() {
    let source = "#[test]\n// why\nfn one() {}\nfn two() {}\n";
    assert!(is_test(source, "one"));
    assert!(!is_test(source, "two") && !is_test(source, "three"));
}
