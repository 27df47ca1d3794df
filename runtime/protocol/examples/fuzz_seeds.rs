//! Writes the seeds of the fuzz targets into `fuzz/corpus`: frames of the tests, and requests and
//! responses of a few routes. Run it again when the order of the route table changes.

use std::io::Error;
use std::path::Path;

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
    books()
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
