//! Tests of recordings as files: text in, tape out, and every kind of damage to a file.

use std::io::Write;
use std::path::{Path, PathBuf};

use windvane_model::{Instrument, MarketEvent, Surface};
use windvane_protocol::Assets;

use super::*;
use windvane_config::InstrumentName;

fn options(dir: &Path) -> Options {
    Options {
        cache_dir: Some(dir.join("cache")),
        ..Options::default()
    }
}

fn open(path: &Path, dir: &Path) -> Recording {
    Recording::open(path, &options(dir), &mut |_, _| {}).unwrap()
}

fn gzip(path: &Path, text: &str) {
    let file = std::fs::File::create(path).unwrap();
    let mut out = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap();
}

fn instrument(name: &str, recordings: &[&Recording]) -> Instrument {
    let surveys: Vec<&Survey> = recordings
        .iter()
        .map(|recording| recording.survey())
        .collect();
    let name = InstrumentName::parse(name).unwrap();
    resolve_instrument(&name, None, &surveys, &mut Assets::default())
        .unwrap()
        .0
}

/// All events as text: receive time, instrument, market event.
fn play(recordings: &[Recording], instruments: &[Instrument]) -> Vec<String> {
    let mut tape = Tape::new(recordings, instruments).unwrap();
    let mut seen = Vec::new();
    while let Some(chunk) = tape.next_chunk().unwrap() {
        for event in &chunk.events {
            let market = event.market(&chunk.levels);
            seen.push(format!(
                "{} {} {market:?}",
                event.recv.0, event.instrument.0
            ));
        }
        tape.recycle(chunk);
    }
    seen
}

fn trade(recv: i64, id: i64, price: &str) -> String {
    format!(
        "{recv} {{\"stream\":\"btcusdt@trade\",\"data\":{{\"e\":\"trade\",\"E\":{id},\"T\":{id},\
         \"s\":\"BTCUSDT\",\"t\":{id},\"p\":\"{price}\",\"q\":\"0.010\",\"X\":\"MARKET\",\
         \"m\":true}}}}\n"
    )
}

fn spot_trade(recv: i64, id: i64) -> String {
    format!(
        "{recv} {{\"e\":\"trade\",\"E\":{id},\"s\":\"BTCUSDT\",\"t\":{id},\"p\":\"100.50000000\",\
         \"q\":\"1.00000000\",\"T\":{id},\"m\":false,\"M\":true}}\n"
    )
}

fn diff(recv: i64, first: i64, last: i64, previous: i64) -> String {
    format!(
        "{recv} {{\"e\":\"depthUpdate\",\"E\":1,\"T\":1,\"s\":\"BTCUSDT\",\"U\":{first},\
         \"u\":{last},\"pu\":{previous},\"b\":[[\"100.0\",\"1.000\"]],\
         \"a\":[[\"100.2\",\"2.500\"],[\"100.3\",\"0\"]]}}\n"
    )
}

fn snapshot(recv: i64, id: i64) -> String {
    format!(
        "{recv} {{\"lastUpdateId\":{id},\"E\":1,\"T\":1,\"bids\":[[\"99.9\",\"1\"]],\
         \"asks\":[[\"100.1\",\"1\"]]}}\n"
    )
}

fn written(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("recording.txt");
    std::fs::write(&path, text).unwrap();
    path
}

/// The kinds of depth events in a text: `S` snapshot, `D` difference, `G` gap.
fn depth_of(text: &str) -> (String, Survey) {
    let dir = tempfile::tempdir().unwrap();
    let recording = open(&written(dir.path(), text), dir.path());
    let wanted = [instrument("futures:BTCUSDT", &[&recording])];
    let mut tape = Tape::new(std::slice::from_ref(&recording), &wanted).unwrap();
    let mut kinds = String::new();
    while let Some(chunk) = tape.next_chunk().unwrap() {
        for event in &chunk.events {
            match event.market(&chunk.levels) {
                MarketEvent::Depth { snapshot: true, .. } => kinds.push('S'),
                MarketEvent::Depth { .. } => kinds.push('D'),
                MarketEvent::Gap => kinds.push('G'),
                _ => {}
            }
        }
    }
    (kinds, recording.survey().clone())
}

#[test]
fn a_line_of_100_mb_is_damage_and_needs_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording.gz");
    let file = std::fs::File::create(&path).unwrap();
    let mut out = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    out.write_all(trade(1_000, 1, "100.1").as_bytes()).unwrap();
    // Noise, so that it is not refused for its compression.
    let mut noise = vec![0_u8; 1 << 20];
    let mut state = 1_u32;
    for byte in &mut noise {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = b'a' + (state >> 28) as u8;
    }
    for _ in 0..100 {
        out.write_all(&noise).unwrap();
    }
    out.write_all(b"\n").unwrap();
    out.write_all(trade(2_000, 2, "100.2").as_bytes()).unwrap();
    out.finish().unwrap();
    let recording = open(&path, dir.path());
    let survey = recording.survey();
    assert_eq!((survey.lines, survey.events), (3, 2));
    assert_eq!(
        survey.damaged.first,
        [(2, "is longer than 16777216 bytes".to_owned())]
    );
    let options = Options {
        on_damage: OnDamage::Fail,
        ..options(dir.path())
    };
    let error = Recording::open(&path, &options, &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("line 2: is longer"), "{error}");
}

#[test]
fn a_file_that_decompresses_to_far_more_than_its_length_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording.gz");
    let file = std::fs::File::create(&path).unwrap();
    let mut out = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    out.write_all(trade(1_000, 1, "100.1").as_bytes()).unwrap();
    let blank = vec![b'\n'; 1 << 20];
    for _ in 0..400 {
        out.write_all(&blank).unwrap();
    }
    out.finish().unwrap();
    let recording = open(&path, dir.path());
    let cut = recording.survey().cut.as_ref().unwrap();
    assert!(cut.corrupt && cut.reason.contains("250 times"), "{cut:?}");
}

#[test]
fn a_pipe_and_a_device_are_no_recordings() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for (path, what) in [
        (pipe.as_path(), "a pipe"),
        ("/dev/zero".as_ref(), "a device"),
    ] {
        let refused = Recording::open(path, &options(dir.path()), &mut |_, _| {});
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(what), "{refused}");
    }
}

#[test]
fn a_damaged_line_is_named_and_skipped_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let text = trade(10, 1, "100.1") + "11 {\"e\":\"trade\",\n" + &trade(12, 2, "100.2");
    let path = written(dir.path(), &text);
    let recording = open(&path, dir.path());
    assert_eq!(recording.survey().damaged.count, 1);
    assert_eq!(recording.survey().damaged.first[0].0, 2);
    assert!(recording.notices()[0].contains("line 2: not a valid frame"));
    let wanted = [instrument("futures:BTCUSDT", &[&recording])];
    assert_eq!(play(&[recording], &wanted).len(), 2);
    // With `on_damage = fail`: first with the cache from above, then from the text.
    for options in [options(dir.path()), options(&dir.path().join("other"))] {
        let strict = Options {
            on_damage: OnDamage::Fail,
            ..options
        };
        let error = Recording::open(&path, &strict, &mut |_, _| {}).unwrap_err();
        assert!(
            matches!(error, RecordingError::Damaged { line: 2, .. }),
            "{error}"
        );
    }
}

#[test]
fn receive_times_that_go_backwards_are_raised_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let text = trade(10, 1, "100.1") + &trade(7, 2, "100.1") + &trade(12, 3, "100.1");
    let recording = open(&written(dir.path(), &text), dir.path());
    assert_eq!(recording.survey().backwards.count, 1);
    assert_eq!(recording.survey().backwards.first[0].0, 2);
    let wanted = [instrument("futures:BTCUSDT", &[&recording])];
    let times = play(&[recording], &wanted);
    let times: Vec<&str> = times.iter().map(|text| &text[..2]).collect();
    assert_eq!(times, ["10", "10", "12"]);
}

#[test]
fn a_cut_file_gives_what_came_before_the_cut() {
    let text: String = (1..=5000).map(|id| trade(id, id, "100.1")).collect();
    let zstd = ruzstd::encoding::compress_to_vec(
        text.as_bytes(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let dir = tempfile::tempdir().unwrap();
    let gz = dir.path().join("whole.gz");
    gzip(&gz, &text);
    for whole in [std::fs::read(gz).unwrap(), zstd] {
        let path = dir.path().join("recording");
        std::fs::write(&path, &whole).unwrap();
        let recording = open(&path, dir.path());
        assert_eq!(
            (recording.survey().events, &recording.survey().cut),
            (5000, &None)
        );
        std::fs::write(&path, &whole[..whole.len() * 2 / 3]).unwrap();
        let strict = Options {
            on_damage: OnDamage::Fail,
            ..options(dir.path())
        };
        let recording = Recording::open(&path, &strict, &mut |_, _| {}).unwrap();
        let survey = recording.survey();
        let cut = survey.cut.as_ref().unwrap();
        assert!(!cut.corrupt && survey.damaged.count == 0, "{survey:?}");
        assert!(survey.events == cut.after_line && survey.events < 5000);
        assert!(
            recording
                .notices()
                .iter()
                .any(|notice| notice.contains("is cut off after line"))
        );
    }
}

#[test]
fn appended_gzip_members_and_zstd_frames_are_one_recording() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (trade(1, 1, "100.1"), trade(2, 2, "100.2"));
    let part = dir.path().join("part");
    let packed = |text: &str| {
        gzip(&part, text);
        std::fs::read(&part).unwrap()
    };
    let zstd = |text: &str| {
        ruzstd::encoding::compress_to_vec(
            text.as_bytes(),
            ruzstd::encoding::CompressionLevel::Fastest,
        )
    };
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..], &zstd(&two)].concat();
    for whole in [
        [packed(&one), packed(&two)].concat(),
        [zstd(&one), skipped].concat(),
    ] {
        let path = dir.path().join("recording");
        std::fs::write(&path, whole).unwrap();
        let survey = open(&path, dir.path()).survey().clone();
        assert_eq!((survey.events, survey.cut), (2, None));
    }
}

#[test]
fn a_gap_ends_the_book_and_the_next_snapshot_rebuilds_it() {
    let text = diff(1, 5, 8, 4)
        + &diff(2, 9, 12, 8)
        + &snapshot(3, 10)
        + &diff(4, 13, 15, 12)
        + &diff(5, 20, 22, 19)
        + &diff(6, 23, 25, 22)
        + &snapshot(7, 24)
        + &diff(8, 26, 27, 25);
    let (kinds, survey) = depth_of(&text);
    // The first difference is older than the first snapshot. The difference after the gap waits for
    // the second snapshot.
    assert_eq!(kinds, "SDDGSDD");
    let futures = survey.instrument(Surface::Futures, "BTCUSDT").unwrap();
    assert_eq!((futures.gaps.count, futures.gaps.first[0].0), (1, 5));
    assert_eq!(
        (futures.snapshots, futures.depths, futures.depths_unused),
        (2, 4, 2)
    );
}

#[test]
fn without_a_snapshot_no_depth_is_delivered() {
    let text = trade(1, 1, "100.1") + &diff(2, 5, 8, 4) + &diff(3, 9, 12, 8);
    let (kinds, survey) = depth_of(&text);
    assert_eq!(kinds, "");
    assert!(survey.notices()[0].contains("the book is only its best prices"));
}

#[test]
fn stale_and_damaged_caches_are_created_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), &trade(1, 1, "100.1"));
    let recording = open(&path, dir.path());
    assert!(recording.notices().is_empty());
    assert!(open(&path, dir.path()).notices().is_empty());
    std::fs::write(&path, trade(1, 1, "100.1") + &trade(2, 2, "100.2")).unwrap();
    let recording = open(&path, dir.path());
    assert!(
        recording.notices()[0].contains("is stale"),
        "{:?}",
        recording.notices()
    );
    assert_eq!(recording.survey().events, 2);
    // One flipped bit, in the header, in a chunk and in the survey.
    let wanted = [instrument("futures:BTCUSDT", &[&recording])];
    let expected = play(std::slice::from_ref(&recording), &wanted);
    let whole = std::fs::read(recording.cache_path()).unwrap();
    for at in [70, 200, whole.len() - 5] {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        std::fs::write(recording.cache_path(), &bad).unwrap();
        let again = open(&path, dir.path());
        let mut tape = Tape::new(std::slice::from_ref(&again), &wanted).unwrap();
        tape.next_chunk().unwrap();
        let notices = again.notices().into_iter().chain(tape.notices().to_vec());
        assert!(
            notices.into_iter().any(|notice| notice.contains("damaged")),
            "byte {at}"
        );
        assert_eq!(play(&[again], &wanted), expected);
        assert_eq!(std::fs::read(recording.cache_path()).unwrap(), whole);
    }
    // Nobody writes into this pipe.
    std::fs::remove_file(recording.cache_path()).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(recording.cache_path())
        .status();
    assert!(made.unwrap().success());
    assert_eq!(play(&[open(&path, dir.path())], &wanted), expected);
    assert_eq!(std::fs::read(recording.cache_path()).unwrap(), whole);
}

#[test]
fn recordings_merge_by_time_and_then_by_file_order() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.gz"), dir.path().join("b"));
    gzip(&a, &(trade(10, 1, "100.1") + &trade(30, 2, "100.1")));
    std::fs::write(
        &b,
        spot_trade(10, 1) + &spot_trade(20, 2) + &spot_trade(40, 3),
    )
    .unwrap();
    let recordings = [open(&a, dir.path()), open(&b, dir.path())];
    let all: Vec<&Recording> = recordings.iter().collect();
    let wanted = [
        instrument("spot:BTCUSDT", &all),
        instrument("futures:BTCUSDT", &all),
    ];
    let order: Vec<String> = play(&recordings, &wanted);
    let order: Vec<&str> = order.iter().map(|text| &text[..4]).collect();
    assert_eq!(order, ["10 1", "10 0", "20 0", "30 1", "40 0"]);
    // Instruments that were not requested are left out.
    assert_eq!(play(&recordings, &wanted[..1]).len(), 3);
}

#[test]
fn a_price_below_the_configured_tick_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let text = trade(1, 1, "100.10") + &trade(2, 2, "100.25");
    let recording = open(&written(dir.path(), &text), dir.path());
    let mut coarse = instrument("futures:BTCUSDT", &[&recording]);
    assert_eq!(
        (coarse.price_scale, coarse.filters.price.unwrap().tick_size),
        (2, 5)
    );
    coarse.price_scale = 1;
    let error = Tape::new(&[recording], &[coarse])
        .unwrap()
        .next_chunk()
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("line 2: price 100.25 of futures:BTCUSDT does not fit 1 decimal"),
        "{text}"
    );
}

#[test]
fn finer_numbers_later_in_a_recording_need_no_second_pass() {
    let dir = tempfile::tempdir().unwrap();
    let text = trade(1, 1, "100") + &trade(2, 2, "100.5") + &trade(3, 3, "100.125");
    let recording = open(&written(dir.path(), &text), dir.path());
    let wanted = [instrument("futures:BTCUSDT", &[&recording])];
    let prices: Vec<String> = play(&[recording], &wanted);
    for (text, price) in prices.iter().zip(["100000", "100500", "100125"]) {
        assert!(text.contains(&format!("price: {price},")), "{text}");
    }
}

#[test]
fn a_snapshot_is_assigned_to_the_right_instrument() {
    let other = |line: String| line.replace("BTCUSDT", "ETHUSDT");
    // The prices are equal, so only the ids identify the instrument.
    let text = diff(1, 5, 8, 4)
        + &other(diff(2, 500, 520, 499))
        + &other(diff(3, 530, 540, 520))
        + &snapshot(4, 535)
        + &diff(5, 9, 12, 8);
    let dir = tempfile::tempdir().unwrap();
    let survey = open(&written(dir.path(), &text), dir.path())
        .survey()
        .clone();
    let snapshots: Vec<u64> = survey
        .instruments
        .iter()
        .map(|known| known.snapshots)
        .collect();
    assert_eq!((snapshots, survey.unassigned.count), (vec![0, 1], 0));
    // One snapshot comes before all other frames, the other is far from every price.
    let text = snapshot(1, 7) + &diff(2, 5, 8, 4) + &snapshot(3, 9).replace("99.9", "9.9");
    let survey = open(&written(dir.path(), &text), dir.path())
        .survey()
        .clone();
    assert_eq!(
        (
            survey.instruments[0].snapshots,
            survey.instruments[0].depths
        ),
        (1, 1)
    );
}

#[test]
fn only_the_first_trade_stream_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let aggregate = "2 {\"e\":\"aggTrade\",\"E\":1,\"s\":\"BTCUSDT\",\"a\":1,\"p\":\"100.1\",\
                     \"q\":\"1\",\"f\":1,\"l\":1,\"T\":1,\"m\":true}\n";
    let text = trade(1, 1, "100.1") + aggregate + &trade(3, 2, "100.1");
    let survey = open(&written(dir.path(), &text), dir.path())
        .survey()
        .clone();
    // The aggregate trade does not state its surface, so it gets that of the other frames.
    assert_eq!(survey.instruments.len(), 1);
    assert_eq!(
        (
            survey.instruments[0].trades,
            survey.instruments[0].trades_doubled
        ),
        (2, 1)
    );
}

#[test]
fn a_tradepro_is_a_trade_whose_taker_is_estimated() {
    let dir = tempfile::tempdir().unwrap();
    let pro = |recv: u32, id: u32, price: &str| {
        format!(
            "{recv} {{\"stream\":\"btcusdt@tradepro\",\"data\":{{\"e\":\"tradepro\",\"E\":1,\"T\":1,\
             \"s\":\"BTCUSDT\",\"t\":{id},\"p\":\"{price}\",\"q\":\"1\",\"h\":\"0x\",\
             \"m\":[\"hidden\",\"hidden\"]}}}}\n"
        )
    };
    let text = pro(1, 1, "100.1") + &pro(2, 2, "100.0") + &trade(3, 2, "100.0");
    let survey = open(&written(dir.path(), &text), dir.path())
        .survey()
        .clone();
    let trades = &survey.instruments[0];
    assert_eq!((trades.trades, trades.trades_doubled), (2, 1));
}

#[test]
fn marks_contain_funding_and_ignore_the_price_scale() {
    let dir = tempfile::tempdir().unwrap();
    let mark = "2 {\"e\":\"markPriceUpdate\",\"E\":1,\"s\":\"BTCUSDT\",\"p\":\"100.12345678\",\
                \"i\":\"100.1\",\"r\":\"0.0001\",\"T\":9}\n";
    let text = trade(1, 1, "100.1") + mark;
    let recording = open(&written(dir.path(), &text), dir.path());
    let wanted = [instrument("futures:BTCUSDT", &[&recording])];
    assert_eq!(wanted[0].price_scale, 1);
    let seen = play(&[recording], &wanted);
    assert!(seen[1].contains("mark: 10012345678, index: 10010000000, funding_rate: 10000"));
    assert!(
        seen[1].contains("next_funding: Time(9000000)"),
        "{}",
        seen[1]
    );
}

#[test]
fn concurrent_openers_all_get_a_complete_cache() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (1..=20_000).map(|id| trade(id, id, "100.1")).collect();
    let path = written(dir.path(), &text);
    std::thread::scope(|scope| {
        let openers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| open(&path, dir.path())))
            .collect();
        for opener in openers {
            let recording = opener.join().unwrap();
            let wanted = [instrument("futures:BTCUSDT", &[&recording])];
            assert_eq!(play(&[recording], &wanted).len(), 20_000);
        }
    });
    // No temporary file remains next to the cache.
    assert_eq!(
        std::fs::read_dir(dir.path().join("cache")).unwrap().count(),
        1
    );
}

/// Uses recordings of a real venue. `WINDVANE_RECORDINGS` names their folder (CONTRIBUTING.md); they
/// are not in this repository.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test must be visible")]
fn real_recordings_have_no_gaps_and_depth_agrees_with_tops() {
    let Some(folder) = std::env::var_os("WINDVANE_RECORDINGS") else {
        eprintln!("skipped: WINDVANE_RECORDINGS names no folder with recordings of a real venue");
        return;
    };
    for (file, name) in [
        ("usdm-btcusdt-20240808.gz", "futures:BTCUSDT"),
        ("spot-btcusdt-20240808.gz", "spot:BTCUSDT"),
    ] {
        let path = Path::new(&folder).join(file);
        assert!(path.exists(), "{} does not exist", path.display());
        let dir = tempfile::tempdir().unwrap();
        let recording = open(&path, dir.path());
        let known = &recording.survey().instruments[0];
        assert_eq!(
            (known.name().as_str(), known.gaps.count, known.snapshots),
            (name, 0, 1)
        );
        assert_eq!(recording.notices(), [""; 0]);
        let tick = if name.starts_with('f') { "0.1" } else { "0.01" };
        assert_eq!(known.price_step.to_string(), tick);
        let (agreed, compared) = compare_books(&recording, name);
        eprintln!(
            "{name}: {agreed} of {compared} depth frames agree with a top of the same update"
        );
        assert!(
            compared > 300 && agreed == compared,
            "{agreed} of {compared}"
        );
    }
}

/// Rebuilds the book from depth events. Compares its best bid and ask with book tops of the same
/// update id.
fn compare_books(recording: &Recording, name: &str) -> (u64, u64) {
    use std::collections::BTreeMap;
    let wanted = [instrument(name, &[recording])];
    let mut tape = Tape::new(std::slice::from_ref(recording), &wanted).unwrap();
    let (mut bids, mut asks) = (BTreeMap::new(), BTreeMap::new());
    let mut tops = BTreeMap::new();
    let (mut agreed, mut compared) = (0, 0);
    while let Some(chunk) = tape.next_chunk().unwrap() {
        for event in &chunk.events {
            match event.market(&chunk.levels) {
                MarketEvent::Top {
                    update_id,
                    bid,
                    ask,
                } => {
                    tops.insert(update_id, (bid, ask));
                }
                MarketEvent::Depth {
                    update_id,
                    snapshot,
                    bids: b,
                    asks: a,
                } => {
                    if snapshot {
                        (bids, asks) = (BTreeMap::new(), BTreeMap::new());
                    }
                    for (side, levels) in [(&mut bids, b), (&mut asks, a)] {
                        for level in levels {
                            side.insert(level.price, level.qty);
                        }
                        side.retain(|_, qty| *qty != 0);
                    }
                    if let Some((bid, ask)) = tops.get(&update_id) {
                        compared += 1;
                        let best = (bids.last_key_value(), asks.first_key_value());
                        let same =
                            best == (Some((&bid.price, &bid.qty)), Some((&ask.price, &ask.qty)));
                        agreed += u64::from(same);
                    }
                }
                _ => {}
            }
        }
    }
    (agreed, compared)
}

#[test]
fn a_receive_time_far_ahead_is_damage() {
    let day = 86_400_000_000_000;
    for far in [31 * day, i64::MAX] {
        let text = trade(10, 1, "100.1") + &trade(far, 2, "100.2") + &trade(12, 3, "100.3");
        let dir = tempfile::tempdir().unwrap();
        let recording = open(&written(dir.path(), &text), dir.path());
        let survey = recording.survey();
        assert_eq!((survey.damaged.count, survey.backwards.count), (1, 0));
        assert_eq!((survey.events, survey.last_recv_ns), (2, 12));
    }
}

#[test]
fn negative_numbers_are_damage_and_zero_trades_are_ignored() {
    let text = trade(10, 1, "100.1") + &trade(11, 2, "-100.1") + &trade(12, 3, "0");
    let dir = tempfile::tempdir().unwrap();
    let recording = open(&written(dir.path(), &text), dir.path());
    let survey = recording.survey();
    assert_eq!(survey.damaged.first[0].1, "its price -100.1 is below 0");
    assert_eq!(
        (survey.damaged.count, survey.ignored, survey.events),
        (1, 1, 1)
    );
}
