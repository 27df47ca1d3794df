//! Logs for the tests of the rules, written step by step. A test decides for each request whether
//! and how it is answered.

use serde_json::{Value, json};

use super::Check;
use crate::witness::{
    Answer, Entry, IntentTerms, LimitTerms, ProcessEvent, Request, Rest, StrategyTerms, Terms,
    View, WitnessEvent,
};

/// A strategy `mm` on one futures symbol.
pub fn terms() -> Terms {
    let instruments = vec!["futures:BTCUSDT".to_owned()];
    Terms {
        seed: 1,
        strategies: vec![StrategyTerms {
            id: "mm".to_owned(),
            module: "market_maker".to_owned(),
            instruments: instruments.clone(),
            limits: LimitTerms::default(),
            on_fault: "cancel".to_owned(),
        }],
        limits: LimitTerms::default(),
        max_daily_loss: None,
        instruments,
        countdown_ms: 30_000,
        renew_ms: 10_000,
        reconcile_ms: 30_000,
        recv_window_ms: 5_000,
        v3: false,
        on_start: "adopt".to_owned(),
        on_stop: "cancel".to_owned(),
        on_liquidation: "halt".to_owned(),
        converge_ns: 60_000_000_000,
        is_stream_slow: false,
        is_signer_silent: false,
        pauses_to_rest: false,
        entries_to_tick: false,
        rounds_fees: false,
        is_documented: false,
        hedge: false,
    }
}

/// The first verdict of a rule about a log.
pub fn verdict(mut rule: impl Check, log: &Log) -> Result<(), String> {
    log.entries.iter().try_for_each(|entry| rule.see(entry))
}

/// The verdict of a rule about a log and the state at rest after it.
pub fn at_rest(mut rule: impl Check, log: &Log, truth: Value, view: View) -> Result<(), String> {
    log.entries.iter().try_for_each(|entry| rule.see(entry))?;
    rule.at_rest(&Rest {
        at_ns: log.now_ns,
        truth,
        view,
    })
}

/// A log under construction.
#[derive(Clone)]
pub struct Log {
    entries: Vec<Entry>,
    now_ns: i64,
    process: u32,
    requests: u64,
}

impl Log {
    pub fn new() -> Self {
        Self {
            entries: Vec::new(),
            now_ns: 1_700_000_000_000_000_000,
            process: 1,
            requests: 0,
        }
    }

    fn with(mut self, seen: WitnessEvent) -> Self {
        let number = self.entries.len() as u64;
        let at_ns = self.now_ns;
        self.entries.push(Entry {
            number,
            at_ns,
            seen,
        });
        self
    }

    pub fn later_ms(mut self, ms: i64) -> Self {
        self.now_ns += ms * 1_000_000;
        self
    }

    /// Starts a new life of the process, with a clean journal unless it is the first.
    pub fn start(self) -> Self {
        let first = self.entries.is_empty();
        self.start_after(if first { "fresh" } else { "clean" })
    }

    /// Starts a new life of the process, with this verdict on its journal.
    pub fn start_after(self, journal: &str) -> Self {
        self.boot().run_after(journal)
    }

    /// Starts a new life of the process, which has not read its journal yet.
    pub fn boot(mut self) -> Self {
        self.process += u32::from(!self.entries.is_empty());
        let process = self.process;
        self.with(WitnessEvent::Process(ProcessEvent::Started { process }))
    }

    /// The process got this verdict on its journal, and runs.
    pub fn run_after(self, journal: &str) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Process(ProcessEvent::Running {
            process,
            epoch: u64::from(process),
            journal: journal.to_owned(),
        }))
    }

    pub fn state(self, to: &str) -> Self {
        self.with(WitnessEvent::State {
            from: "syncing".to_owned(),
            to: to.to_owned(),
            degraded_reasons: Vec::new(),
        })
    }

    /// The process is stopped.
    pub fn paused(self) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Process(ProcessEvent::Paused { process }))
    }

    /// The stopped process continues.
    pub fn resumed(self) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Process(ProcessEvent::Resumed { process }))
    }

    pub fn faults_ended(self) -> Self {
        self.with(WitnessEvent::FaultsEnded)
    }

    /// The user stream of futures connects or ends.
    pub fn stream(self, up: bool) -> Self {
        self.stream_of(1, up)
    }

    /// One of several user streams of futures connects or ends.
    pub fn stream_of(self, stream: u64, up: bool) -> Self {
        self.with(WitnessEvent::Stream {
            stream,
            surface: "futures".to_owned(),
            user: true,
            up,
        })
    }

    /// An order is released.
    pub fn release(self, id: &str) -> Self {
        let at_ns = self.now_ns;
        self.with(WitnessEvent::Released {
            client_order_id: id.to_owned(),
            at_ns,
        })
    }

    /// A strategy intends an order to buy 1 at 100.
    pub fn intend(self, id: &str) -> Self {
        self.intend_order(id, "BUY", Some("100"), false)
    }

    /// A strategy intends an order of 1; without a price it is a market order.
    pub fn intend_order(self, id: &str, side: &str, price: Option<&str>, reduces: bool) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Intended {
            process,
            client_order_id: id.to_owned(),
            terms: IntentTerms {
                instrument: "futures:BTCUSDT".to_owned(),
                side: side.to_owned(),
                qty: Some("1".to_owned()),
                price: price.map(str::to_owned),
                reduce_only: reduces,
                ..IntentTerms::default()
            },
        })
    }

    /// The state of a strategy, with the order if it intended one.
    pub fn knew(self, strategy: &str, state: u64, id: Option<&str>) -> Self {
        self.with(WitnessEvent::Knew {
            strategy: strategy.to_owned(),
            client_order_id: id.map(str::to_owned),
            state,
        })
    }

    /// A strategy gets a state that it saved earlier.
    pub fn given(self, strategy: &str, state: u64) -> Self {
        self.with(WitnessEvent::Given {
            strategy: strategy.to_owned(),
            state,
        })
    }

    /// A command of the operator, for one strategy or for the whole run.
    pub fn command(self, command: &str, strategy: Option<&str>) -> Self {
        self.with(WitnessEvent::Commanded {
            strategy: strategy.map(str::to_owned),
            command: command.to_owned(),
        })
    }

    /// The kill switches in the file beside the journal.
    pub fn kill_switch_file(self, account: &str, strategies: &[(&str, &str)]) -> Self {
        let strategies = strategies.iter();
        let of_each =
            strategies.map(|(id, kill_switch)| ((*id).to_owned(), (*kill_switch).to_owned()));
        self.with(WitnessEvent::KillSwitchesStored {
            account: account.to_owned(),
            strategies: of_each.collect(),
        })
    }

    /// The operator was notified that all commands so far are durable.
    pub fn commands_kept(self) -> Self {
        self.with(WitnessEvent::CommandsKept)
    }

    /// A strategy is put into quarantine.
    pub fn quarantined(self, strategy: &str) -> Self {
        self.with(WitnessEvent::Quarantined {
            strategy: strategy.to_owned(),
        })
    }

    /// Adds a line of the log in which the runtime reports that all positions are closed.
    pub fn flattened(self, truth: Value) -> Self {
        self.with(WitnessEvent::Flattened(truth))
    }

    /// An orderly stop is requested.
    pub fn stopping(self) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Stopping { process })
    }

    /// The process ended in order.
    pub fn stopped(self, truth: Value) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Stopped {
            process,
            how: "stopped".to_owned(),
            truth,
        })
    }

    /// The handshake of a stream is sent.
    pub fn handshake(self) -> Self {
        self.with(WitnessEvent::Handshake {
            surface: "futures".to_owned(),
        })
    }

    /// The file beside the journal has a ban that lasts this long.
    pub fn remember_ban(self, ms: i64) -> Self {
        let until_ns = self.now_ns + ms * 1_000_000;
        self.with(WitnessEvent::BanRemembered { until_ns })
    }

    /// A sign of health for the spot watchdog process.
    pub fn heartbeat(self) -> Self {
        self.with(WitnessEvent::Heartbeat)
    }

    /// The user stream of spot connects or ends.
    pub fn spot_stream(self, up: bool) -> Self {
        self.with(WitnessEvent::Stream {
            stream: 2,
            surface: "spot".to_owned(),
            user: true,
            up,
        })
    }

    /// The process reads the open spot orders.
    pub fn read_spot_orders(mut self) -> Self {
        self.requests += 1;
        let request = Request {
            id: self.requests,
            process: self.process,
            surface: "spot".to_owned(),
            route: "spot.open_orders".to_owned(),
            method: "GET".to_owned(),
            path: "/api/v1/openOrders".to_owned(),
            params: Vec::new(),
        };
        self.with(WitnessEvent::Sent(request))
            .with_answer(200, &[], "[]")
    }

    /// A reload begins that changes these strategies.
    pub fn reloading(self, strategies: &[&str]) -> Self {
        let strategies = strategies.iter().map(|one| (*one).to_owned()).collect();
        self.with(WitnessEvent::Reloading { strategies })
    }

    /// A strategy gets a new instance.
    pub fn renewed(self, strategy: &str) -> Self {
        self.with(WitnessEvent::Renewed {
            strategy: strategy.to_owned(),
        })
    }

    /// The reload is complete.
    pub fn reloaded(self) -> Self {
        self.with(WitnessEvent::Reloaded { refused: false })
    }

    /// The venue's true state during a flatten.
    pub fn closing(self, truth: Value) -> Self {
        self.with(WitnessEvent::Closing(truth))
    }

    /// A market order of 1 was executed or refused: the true state before and after it.
    pub fn market(self, id: &str, side: &str, view: View, truth: (Value, Value)) -> Self {
        self.market_of(id, (side, "BOTH"), view, truth)
    }

    /// Like [`Self::market`], for an order with this side and this position side: `BOTH`, `LONG` or
    /// `SHORT`.
    pub fn market_of(
        self,
        id: &str,
        (side, position_side): (&str, &str),
        view: View,
        (before, after): (Value, Value),
    ) -> Self {
        let params = [
            ("newClientOrderId", id.to_owned()),
            ("side", side.to_owned()),
            ("positionSide", position_side.to_owned()),
            ("quantity", "1".to_owned()),
        ];
        let open_requests = self.clone().request("POST", "/fapi/v1/order", &params);
        let what = open_requests
            .entries
            .into_iter()
            .rfind(|entry| matches!(entry.seen, WitnessEvent::Arrived { .. }));
        let Some(WitnessEvent::Arrived { what, .. }) = what.map(|entry| entry.seen) else {
            return self;
        };
        self.with(WitnessEvent::Market {
            what,
            view: Box::new(view),
            before,
            after,
        })
    }

    /// The runtime revives an order that had ended.
    pub fn revived(self, id: &str) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Adjusted {
            process,
            kind: "alive".to_owned(),
            of: id.to_owned(),
            from: String::new(),
            to: String::new(),
        })
    }

    /// The runtime reports that the venue denies an order.
    pub fn denied(self, id: &str) -> Self {
        self.with(WitnessEvent::Denied {
            client_order_id: id.to_owned(),
        })
    }

    /// An act of somebody else that the venue executed.
    pub fn act(self, act: Value) -> Self {
        self.with(WitnessEvent::Act { act, done: true })
    }

    /// A sample of the venue's true state.
    pub fn truth(self, truth: Value) -> Self {
        self.with(WitnessEvent::Truth(truth))
    }

    /// The public top of the book.
    pub fn top(self, instrument: &str, bid: &str) -> Self {
        self.with(WitnessEvent::Top {
            instrument: instrument.to_owned(),
            bid: bid.to_owned(),
            ask: bid.to_owned(),
        })
    }

    pub fn durable(self, id: &str) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Durable {
            process,
            client_order_ids: vec![id.to_owned()],
        })
    }

    /// The venue executed this much of an order, whether a stream reports it or not.
    pub fn executed(self, id: &str, executed_qty: &str) -> Self {
        self.with(WitnessEvent::Executed {
            client_order_id: id.to_owned(),
            executed_qty: executed_qty.to_owned(),
        })
    }

    pub fn booked(self, id: &str, trade_id: i64, qty: &str) -> Self {
        self.booked_for(id, trade_id, qty, "0")
    }

    /// A fill of 1 with a fee.
    pub fn charged(self, id: &str, trade_id: i64, fee: &str) -> Self {
        self.booked_for(id, trade_id, "1", fee)
    }

    /// An account trade reported the commission of a fill.
    pub fn late_fee(self, trade_id: i64, fee: &str) -> Self {
        let process = self.process;
        self.with(WitnessEvent::LateFee {
            process,
            instrument: "futures:BTCUSDT".to_owned(),
            order_id: 1,
            trade_id,
            fee: fee.to_owned(),
            fee_asset: "USDT".to_owned(),
            estimate: "0".to_owned(),
            in_balance: false,
        })
    }

    /// Outside orders closed this part of a strategy's position.
    pub fn closed_outside(self, strategy: &str, qty: &str) -> Self {
        let process = self.process;
        self.with(WitnessEvent::ClosedOutside {
            process,
            strategy: strategy.to_owned(),
            instrument: "futures:BTCUSDT".to_owned(),
            qty: qty.to_owned(),
        })
    }

    /// The venue closed a position itself, and the runtime reported it.
    pub fn forced_close(self) -> Self {
        let process = self.process;
        self.with(WitnessEvent::ForcedClose {
            process,
            instrument: "futures:BTCUSDT".to_owned(),
            qty: "1".to_owned(),
        })
    }

    fn booked_for(self, id: &str, trade_id: i64, qty: &str, fee: &str) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Booked {
            process,
            instrument: "futures:BTCUSDT".to_owned(),
            client_order_id: id.to_owned(),
            trade_id,
            side: "BUY".to_owned(),
            qty: qty.to_owned(),
            quote: "0".to_owned(),
            fee: fee.to_owned(),
            fee_asset: "USDT".to_owned(),
            realized: "0".to_owned(),
        })
    }

    /// A purchase on spot: its quantity and quote amount, and its fee with the asset.
    pub fn bought_on_spot(
        self,
        id: &str,
        trade_id: i64,
        (qty, quote): (&str, &str),
        (fee, asset): (&str, &str),
    ) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Booked {
            process,
            instrument: "spot:BTCUSDT".to_owned(),
            client_order_id: id.to_owned(),
            trade_id,
            side: "BUY".to_owned(),
            qty: qty.to_owned(),
            quote: quote.to_owned(),
            fee: fee.to_owned(),
            fee_asset: asset.to_owned(),
            realized: "0".to_owned(),
        })
    }

    /// The runtime's own balance before and after a step.
    pub fn balance(self, from: &str, to: &str) -> Self {
        self.balance_of("futures:USDT", from, to)
    }

    /// The runtime's own value of the balance `of`, before and after a step.
    pub fn balance_of(self, of: &str, from: &str, to: &str) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Balance {
            process,
            of: of.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            by_fills: true,
        })
    }

    pub fn adjusted_balance(self, from: &str, to: &str) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Adjusted {
            process,
            kind: "balance".to_owned(),
            of: "futures:USDT".to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }

    /// A notice of the journal.
    pub fn journal(self, word: &str) -> Self {
        self.with(WitnessEvent::Journal(word.to_owned()))
    }

    pub fn adjusted(self, kind: &str, from: &str, to: &str) -> Self {
        let process = self.process;
        self.with(WitnessEvent::Adjusted {
            process,
            kind: kind.to_owned(),
            of: "futures:BTCUSDT".to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }

    /// A request to futures that arrives.
    pub fn request(self, method: &str, path: &str, params: &[(&str, String)]) -> Self {
        let mut all = vec![("symbol", "BTCUSDT".to_owned())];
        all.retain(|_| !path.ends_with("/openOrders"));
        all.extend_from_slice(params);
        self.request_plain(method, path, &all)
    }

    /// A request with only these parameters.
    pub fn request_plain(mut self, method: &str, path: &str, params: &[(&str, String)]) -> Self {
        self.requests += 1;
        let owned = |(name, value): &(&str, String)| ((*name).to_owned(), value.clone());
        let request = Request {
            id: self.requests,
            process: self.process,
            surface: "futures".to_owned(),
            route: path.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            params: params.iter().map(owned).collect(),
        };
        let id = request.id;
        self.with(WitnessEvent::Sent(request.clone()))
            .with(WitnessEvent::Arrived {
                request: id,
                copy: 0,
                what: request,
            })
    }

    /// The response to the last request reaches the runtime.
    pub fn with_answer(self, status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let answer = Answer {
            status,
            headers: headers.iter().map(owned).collect(),
            body: body.to_owned(),
        };
        let request = self.requests;
        self.with(WitnessEvent::Answered {
            request,
            copy: 0,
            answer: answer.clone(),
        })
        .with(WitnessEvent::AnswerReceived {
            request,
            answer: Some(answer),
        })
    }

    /// An earlier request is executed only now.
    pub fn answered_late(self, request: u64) -> Self {
        self.with(WitnessEvent::Answered {
            request,
            copy: 0,
            answer: Answer {
                status: 200,
                headers: Vec::new(),
                body: String::new(),
            },
        })
    }

    /// No response comes.
    pub fn without_answer(self) -> Self {
        let request = self.requests;
        self.with(WitnessEvent::AnswerReceived {
            request,
            answer: None,
        })
    }

    /// An order to buy 1 at 100 that is intended and sent.
    pub fn order(self, id: &str) -> Self {
        self.intend(id).place(id)
    }

    /// An order to sell 1 at 100 that is intended and sent.
    pub fn order_sell(self, id: &str) -> Self {
        self.intend_order(id, "SELL", Some("100"), false)
            .place_sell(id)
    }

    /// An order to buy 1 at 100.
    pub fn place(self, id: &str) -> Self {
        self.send(id, "BUY", false)
    }

    /// An order to sell 1 at 100.
    pub fn place_sell(self, id: &str) -> Self {
        self.send(id, "SELL", false)
    }

    /// An order to sell 1 at 100 that only reduces.
    pub fn place_reducing(self, id: &str) -> Self {
        self.send(id, "SELL", true)
    }

    /// A market order of 1.
    pub fn place_market(self, id: &str, side: &str) -> Self {
        let params = [
            ("newClientOrderId", id.to_owned()),
            ("side", side.to_owned()),
            ("quantity", "1".to_owned()),
        ];
        self.request("POST", "/fapi/v1/order", &params)
    }

    /// A market order of this quantity that only reduces.
    pub fn place_close(self, id: &str, side: &str, qty: &str) -> Self {
        let params = [
            ("newClientOrderId", id.to_owned()),
            ("side", side.to_owned()),
            ("quantity", qty.to_owned()),
            ("reduceOnly", "true".to_owned()),
        ];
        self.request("POST", "/fapi/v1/order", &params)
    }

    fn send(self, id: &str, side: &str, reduces: bool) -> Self {
        let params = [
            ("newClientOrderId", id.to_owned()),
            ("side", side.to_owned()),
            ("quantity", "1".to_owned()),
            ("price", "100".to_owned()),
            ("reduceOnly", reduces.to_string()),
        ];
        self.request("POST", "/fapi/v1/order", &params)
    }

    pub fn cancel(self, id: &str) -> Self {
        let params = [("origClientOrderId", id.to_owned())];
        self.request("DELETE", "/fapi/v1/order", &params)
    }

    pub fn read_open_orders(self) -> Self {
        self.request("GET", "/fapi/v1/openOrders", &[])
            .with_answer(200, &[], "[]")
    }

    /// A countdown is requested.
    pub fn countdown(self, ms: i64) -> Self {
        let params = [("countdownTime", ms.to_string())];
        self.request("POST", "/fapi/v1/countdownCancelAll", &params)
    }

    /// A countdown is requested and confirmed.
    pub fn arm(self, ms: i64) -> Self {
        let body = json!({"symbol": "BTCUSDT", "countdownTime": ms.to_string()});
        self.countdown(ms).with_answer(200, &[], &body.to_string())
    }

    pub fn order_event(self, id: &str, status: &str, executed: &str) -> Self {
        let order = json!({"c": id, "X": status, "z": executed});
        self.user_event(&json!({"e": "ORDER_TRADE_UPDATE", "o": order}))
    }

    /// A user event that is delivered.
    pub fn user_event(self, event: &Value) -> Self {
        let number = self.entries.len() as u64;
        let text = event.to_string();
        self.with(WitnessEvent::Emitted {
            event: number,
            surface: "futures".to_owned(),
            stream: 1,
            text,
        })
        .with(WitnessEvent::Delivered {
            event: number,
            stream: 1,
        })
    }

    pub fn pong(self) -> Self {
        self.with(WitnessEvent::Pong { stream: 1 })
    }
}
