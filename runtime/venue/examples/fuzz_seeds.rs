//! Writes the seeds of the fuzz targets into `fuzz/corpus`: frames of the tests, and requests and
//! answers of a few routes. To be run again when the route table changes its order.

use std::io::Error;
use std::path::Path;

use windvane_venue::route;
use windvane_venue::wire::examples;

/// Of the answers, every so manieth is a seed: their shapes repeat.
const ANSWERS_STEP: usize = 5;
/// Routes with requests of each way to sign.
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

/// Updates and fates drawn by a small generator: what matters is their length.
fn books() -> Result<(), Error> {
    for (surface, frames) in [(0, 20), (1, 20), (0, 180), (1, 180)] {
        let mut state = 7_u32 + surface;
        let mut bytes = vec![surface as u8];
        for _ in 0..3 * frames {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.push((state >> 24) as u8);
        }
        seed("book_join", &format!("surface_{surface}_{frames}"), &bytes)?;
    }
    Ok(())
}
