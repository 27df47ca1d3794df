//! Writes the seeds of the fuzz targets into `fuzz/corpus`: frames of the tests, and requests and
//! responses of a few routes. Run it again when the order of the route table changes.

use std::io::Error;
use std::path::Path;

use windvane_model::encode::{record_input, record_market};
use windvane_model::record::{Chain, Format, Recorder};
use windvane_model::{Input, Level, MarketEvent, StrategyId, Time};
use windvane_protocol::route;
use windvane_wire_examples as examples;

/// One response in every `ANSWERS_STEP` is a seed, because their shapes repeat.
const ANSWERS_STEP: usize = 5;
/// Routes that together use every signing scheme.
const SIGNED: [&str; 9] = [
    "futures.new_order",
    "futures.batch_orders",
    "futures.approve_agent",
    "spot.new_order",
    "spot.withdraw",
    "spot.create_api_key",
    "spot.keepalive_listen_key",
    "chain.spot_solana_withdraw",
    "chain.transfer",
];

fn main() -> Result<(), Error> {
    frames()?;
    routes()?;
    printing()?;
    admin()?;
    signer()?;
    journal()?;
    books()
}

/// Requests to the admin server: over TCP, through the socket, and with a proof.
fn admin() -> Result<(), Error> {
    let halt = "POST /api/halt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 34\r\n\r\n\
                {\"strategy\": \"a\", \"wait_ms\": 1000}";
    let nonce = "0123456789abcdef".repeat(4);
    let challenge = format!("GET /proof?nonce={nonce} HTTP/1.1\r\nHost: [::1]:7000\r\n\r\n");
    let proven = format!(
        "POST /api/halt HTTP/1.1\r\nHost: 127.0.0.1:7000\r\nAuthorization: Windvane \
         {nonce}:{nonce}\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    let bearer = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n\r\n";
    let chunked = "POST /api/reload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\
                   Expect: 100-continue\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let web = "GET /ready HTTP/1.1\r\nHost: evil.example\r\nOrigin: https://evil.example\r\n\r\n";
    for (name, way, text) in [
        ("halt_tcp", 0, halt),
        ("halt_socket", 1, halt),
        ("challenge", 0, challenge.as_str()),
        ("wrong_proof", 0, proven.as_str()),
        ("bearer", 0, bearer),
        ("chunked", 1, chunked),
        ("web_page", 1, web),
        ("proof_halt", 2, "POST\n/api/halt\n"),
        ("proof_resume", 2, "POST\n/api/resume\n{\"strategy\":\"a\"}"),
        ("proof_reload", 2, "POST\n/api/reload\n{\"config\":\"/c\"}"),
        ("proof_status", 2, "GET\n/api/status?x=%41\n"),
    ] {
        let mut bytes = vec![way];
        bytes.extend_from_slice(text.as_bytes());
        seed("admin_request", name, &bytes)?;
    }
    Ok(())
}

/// Frames of the signer's socket, written out: this crate does not know them.
fn signer() -> Result<(), Error> {
    let text = |text: &str| {
        let mut bytes = vec![text.len() as u8];
        bytes.extend_from_slice(text.as_bytes());
        bytes
    };
    let order = [("symbol", "BTCUSDT"), ("side", "BUY")];
    let order = order.map(|(name, value)| [text(name), text(value)].concat());
    // Number, route, version, parameters, stamp.
    let request = [
        vec![1],
        text("futures.new_order"),
        vec![1, 2, 2],
        order.concat(),
        vec![1, 7, 9],
    ]
    .concat();
    let refused = [vec![9, 1], text("no")].concat();
    // Number, accepted, path, no query, no headers, body, method.
    let signed = [
        vec![9, 0],
        text("/fapi/v3/order"),
        vec![0, 0, 1],
        text("a=b"),
        vec![3],
    ]
    .concat();
    for (name, record) in [
        ("request", request),
        ("refused", refused),
        ("signed", signed),
    ] {
        let length = record.len() as u8 + 1;
        let frame = [vec![length, 0, 0, 0, 1], record].concat();
        seed(
            "signer_wire",
            name,
            &[vec![4], frame.clone(), frame].concat(),
        )?;
    }
    Ok(())
}

/// A block of the journal in each format.
fn journal() -> Result<(), Error> {
    for (number, format) in [Format::V1, Format::V3].into_iter().enumerate() {
        let mut recorder = Recorder::from_chain(Chain::default(), true);
        recorder.set_format(format);
        let depth = MarketEvent::Depth {
            update_id: 7,
            snapshot: true,
            bids: &[Level { price: 1, qty: 2 }],
            asks: &[],
        };
        record_market(&mut recorder, Time(5), 0, &depth);
        let saved = Input::Saved {
            strategy: StrategyId(0),
            handled: 3,
            state: Some(b"state"),
        };
        record_input(&mut recorder, Time(6), &saved);
        recorder.seal();
        for block in std::iter::from_fn(|| recorder.poll_block()) {
            let length = (block.orders.len() as u16).to_be_bytes();
            let mut bytes = vec![number as u8, length[0], length[1]];
            bytes.extend_from_slice(&block.orders);
            bytes.extend_from_slice(block.market.as_deref().unwrap_or_default());
            seed(
                "journal_block",
                &format!("format_{}", format.version()),
                &bytes,
            )?;
        }
    }
    Ok(())
}

/// Responses for the printing, and texts that try to control a terminal.
fn printing() -> Result<(), Error> {
    for example in examples::all().iter().step_by(ANSWERS_STEP) {
        let name = example.route.replace(['{', '}'], "");
        seed("answer_printing", &name, example.answer.as_bytes())?;
    }
    let nested = "[".repeat(1_000) + &"]".repeat(1_000);
    seed("answer_printing", "nested", nested.as_bytes())?;
    let quotes = r#"{"a\\":"\"[[{","b":[ {} ,[1.10,-0e-9]]}"#;
    seed("answer_printing", "quotes", quotes.as_bytes())?;
    for (name, limit, split, text) in [
        (
            "escapes",
            200,
            3,
            "\u{1b}[2J\u{9b}31m\r\n\t\u{7f}\u{202e}\u{200b}\u{e0041}",
        ),
        ("cut", 3, 1, "é\u{1b}不\u{1f600}"),
        ("plain", 9, 4, "BTCUSDT"),
    ] {
        let mut bytes = vec![0, limit, split];
        bytes.extend_from_slice(text.as_bytes());
        seed("outside_text", name, &bytes)?;
    }
    Ok(())
}

fn seed(target: &str, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(name), bytes)
}

fn frames() -> Result<(), Error> {
    let user = include_str!("../tests/user_frames.txt").lines();
    let market = include_str!("../tests/frames.txt").lines();
    for (name, frame) in user.chain(market).filter_map(|line| line.split_once(' ')) {
        let surface = if name.starts_with("spot") { '0' } else { '1' };
        seed("user_stream", name, format!("{surface}{frame}").as_bytes())?;
    }
    Ok(())
}

fn routes() -> Result<(), Error> {
    for (at, example) in examples::all().iter().enumerate() {
        let Some(index) = route::all().position(|route| route.name == example.route) else {
            continue;
        };
        let name = example.route.replace(['{', '}'], "");
        let Ok(index) = u8::try_from(index) else {
            continue;
        };
        if at % ANSWERS_STEP == 0 {
            let mut bytes = vec![index, 0];
            bytes.extend_from_slice(example.answer.as_bytes());
            seed("rest_answers", &name, &bytes)?;
        }
        if SIGNED.contains(&example.route) {
            let lines = example
                .parameters
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            let text = lines.collect::<Vec<_>>().join("\n");
            for version in 0..2 {
                let mut bytes = vec![index, version];
                bytes.extend_from_slice(text.as_bytes());
                seed("signing", &format!("{name}_{version}"), &bytes)?;
            }
        }
    }
    for (name, status, body) in [
        ("error", 2, r#"{"code":"-1121","msg":"Invalid symbol."}"#),
        ("html", 9, "<html><body>503</body></html>"),
        (
            "banned",
            133,
            r#"{"code":-1003,"msg":"banned until 1659146400000"}"#,
        ),
    ] {
        let mut bytes = vec![0, status];
        bytes.extend_from_slice(body.as_bytes());
        seed("rest_answers", name, &bytes)?;
    }
    Ok(())
}

/// The fate of a frame, as `tests/reference_book` decodes it from a byte.
#[derive(Clone, Copy)]
enum Fate {
    Lost,
    Late,
    Twice,
    /// A snapshot that is this many updates old arrives before the frame.
    Snapshot(u8),
    /// All late frames arrive after it, the last one first.
    Catches,
    /// The frame repeats this many earlier updates.
    Overlaps(u8),
    Arrives,
}

impl Fate {
    const fn byte(self) -> u8 {
        match self {
            Self::Lost => 0,
            Self::Late => 1,
            Self::Twice => 2,
            Self::Snapshot(age) => 3 | age << 3,
            Self::Catches => 4,
            Self::Overlaps(age) => 5 | age << 3,
            Self::Arrives => 6,
        }
    }
}

/// Streams by their subject: the fates of their frames, repeated in a cycle, and the number of
/// updates of a frame.
const STREAMS: [(&str, &[Fate], u8); 9] = {
    use Fate::{Arrives, Catches, Late, Lost, Overlaps, Snapshot, Twice};
    [
        ("joined", &[Snapshot(2), Arrives, Arrives], 3),
        ("waits", &[Arrives, Arrives, Arrives, Snapshot(9)], 2),
        ("gap", &[Snapshot(0), Arrives, Lost, Arrives, Arrives], 2),
        (
            "overlap",
            &[Snapshot(1), Overlaps(1), Overlaps(5), Arrives],
            2,
        ),
        ("repeated", &[Snapshot(3), Twice, Twice], 4),
        ("equal_ids", &[Snapshot(0), Snapshot(0), Arrives, Twice], 1),
        ("late", &[Snapshot(1), Late, Late, Catches, Arrives], 1),
        ("reset", &[Snapshot(0), Arrives, Lost, Snapshot(31)], 4),
        (
            "old_snapshots",
            &[Arrives, Snapshot(4), Arrives, Snapshot(20)],
            1,
        ),
    ]
};

/// Seeds for both join rules: each of the streams, and streams in which everything is random.
fn books() -> Result<(), Error> {
    for (surface, word) in [(0, "spot"), (1, "futures")] {
        for (name, fates, size) in STREAMS {
            let fates = fates.iter().cycle().take(40);
            let fates: Vec<u8> = fates.map(|fate| fate.byte()).collect();
            seed(
                "book_join",
                &format!("{word}_{name}"),
                &stream(surface, &fates, size),
            )?;
        }
        for frames in [20, 180] {
            let mut draw = drawn(7 + surface);
            let fates: Vec<u8> = draw.by_ref().take(frames).collect();
            let mut bytes = stream(surface, &fates, 1);
            for chunk in bytes[1..].chunks_exact_mut(3) {
                chunk[1] ^= draw.next().unwrap_or_default() & 0xC0;
            }
            seed("book_join", &format!("{word}_drawn_{frames}"), &bytes)?;
        }
    }
    Ok(())
}

/// A stream of frames with these fates and `size` random updates each.
fn stream(surface: u8, fates: &[u8], size: u8) -> Vec<u8> {
    let mut draw = drawn(surface);
    let mut bytes = vec![surface];
    for fate in fates {
        let (price, qty) = (draw.next(), draw.next());
        let qty = qty.unwrap_or_default() % 4;
        bytes.extend([price.unwrap_or_default(), (size - 1) << 6 | qty, *fate]);
    }
    bytes
}

/// Pseudo-random bytes of a small generator.
fn drawn(seed: u8) -> impl Iterator<Item = u8> {
    let mut state = u32::from(seed);
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
}
