//! Tests of commands, over the wire to the engine's loop and back, with the client of the verbs.

use std::sync::Arc;
use std::time::Duration;

use windvane_admin::view::{State, Status};
use windvane_admin::{
    Admin, Applied, Command, Query, QueryError, Refused, Steer, TokenSource, Wait, steering,
};

use crate::instance::{Instance, published, start, start_with, token};

async fn admin(instance: &Instance) -> Admin {
    let token = TokenSource::Token(token());
    Admin::in_data_dir(instance.data_dir.path(), token)
        .await
        .unwrap()
}

/// Carries out the next command as an engine's loop does: publish first, then answer.
async fn answer(instance: &mut Instance, state: State) -> Steer {
    let mut steer = instance.steered.recv().await.unwrap();
    let mut next = published();
    next.status.state = state;
    instance.publish.send_replace(Arc::new(next));
    let applied = Applied {
        state,
        reason: "asked by the operator".into(),
        since_ms: 5,
        ..Applied::default()
    };
    let (dummy, _) = tokio::sync::oneshot::channel();
    let answer = std::mem::replace(&mut steer.answer, dummy);
    answer.send(Ok(applied)).unwrap();
    steer
}

#[tokio::test]
async fn each_command_reaches_the_loop_and_its_answer_comes_back() {
    let mut instance = start().await;
    let admin = admin(&instance).await;
    for (command, state) in [
        (Command::Pause, State::Paused),
        (Command::Resume, State::Ready),
        (Command::Halt, State::Halted),
        (Command::Flatten, State::Halted),
        (Command::Reload, State::Ready),
    ] {
        let (applied, steer) = tokio::join!(
            admin.post(command, None, Wait::default()),
            answer(&mut instance, state)
        );
        assert_eq!((steer.command, steer.strategy), (command, None));
        assert_eq!(applied.unwrap().state, state);
        let status: Status = admin.get(Query::Status).await.unwrap();
        assert_eq!(
            status.state, state,
            "a query after the answer shows the new state"
        );
    }
}

#[tokio::test]
async fn a_command_may_name_one_strategy() {
    let mut instance = start().await;
    let admin = admin(&instance).await;
    let posted = admin.post(Command::Flatten, Some("mm"), Wait::default());
    let (applied, steer) = tokio::join!(posted, answer(&mut instance, State::Ready));
    assert_eq!(steer.strategy.as_deref(), Some("mm"));
    applied.unwrap();
}

#[tokio::test]
async fn an_invalid_body_does_nothing() {
    let mut instance = start().await;
    for body in [
        "x",
        "[]",
        "[null, null]",
        "[\"mm\", null]",
        "{\"strategy\": 1}",
        "{\"strat\": \"mm\"}",
        "null",
    ] {
        let answer = instance.request("POST", "/api/halt", body).await;
        answer.assert_refused(400);
    }
    assert!(instance.steered.try_recv().is_none());
}

#[tokio::test]
async fn a_query_does_nothing() {
    let mut instance = start().await;
    for path in ["/api/resume?strategy=ema", "/api/halt?", "/api/pause?x"] {
        let answer = instance.request("POST", path, "").await;
        answer.assert_refused(400);
    }
    assert!(instance.steered.try_recv().is_none());
}

#[tokio::test]
async fn a_refused_command_returns_reason_and_advice() {
    let mut instance = start().await;
    let admin = admin(&instance).await;
    let refuse = async {
        let steer = instance.steered.recv().await.unwrap();
        let refused = Refused {
            error: "there is no strategy mn".into(),
            what_to_do: "name one of: mm".into(),
        };
        steer.answer.send(Err(refused)).unwrap();
    };
    let (refused, ()) = tokio::join!(
        admin.post(Command::Pause, Some("mn"), Wait::default()),
        refuse
    );
    let refused = refused.unwrap_err();
    assert_eq!(refused.exit_code(), 1);
    assert_eq!(
        refused.to_string(),
        "there is no strategy mn; name one of: mm"
    );
    assert!(matches!(refused, QueryError::Refused(status, _) if status == 409));
}

#[tokio::test]
async fn a_late_engine_gives_504_and_still_has_the_command() {
    let mut instance =
        start_with(|settings| settings.answer_within = Duration::from_millis(20)).await;
    let late = instance.request("POST", "/api/halt", "").await;
    late.assert_refused(504);
    assert!(late.body.contains("may still"), "{}", late.body);
    let steer = instance.steered.recv().await.unwrap();
    assert_eq!(steer.command, Command::Halt);
    assert!(steer.is_wanted());
}

#[tokio::test]
async fn a_full_queue_gives_504_and_an_ended_loop_503() {
    let mut instance =
        start_with(|settings| settings.answer_within = Duration::from_millis(20)).await;
    for _ in 0..66 {
        // More than the queue holds, and nothing takes them out.
        instance
            .request("POST", "/api/pause", "")
            .await
            .assert_refused(504);
    }
    let (_, closed) = steering();
    drop(std::mem::replace(&mut instance.steered, closed));
    instance
        .request("POST", "/api/pause", "")
        .await
        .assert_refused(503);
}

#[tokio::test]
async fn a_dropped_answer_is_an_error() {
    let mut instance = start().await;
    let admin = admin(&instance).await;
    let drop_it = async { drop(instance.steered.recv().await) };
    let (failed, ()) = tokio::join!(admin.post(Command::Resume, None, Wait::default()), drop_it);
    assert_eq!(failed.unwrap_err().exit_code(), 1);
}
