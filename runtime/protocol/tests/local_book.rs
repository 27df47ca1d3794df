//! Compares the joined book with the true book. Frames may be lost, repeated or reordered. Then the
//! joined book equals the venue's book at its update id, or it reports that there is no book.

use proptest::prelude::*;
use windvane_model::Surface;
use windvane_protocol::local_book::{BookStep, LocalBook};

mod reference_book;

use reference_book::{FIRST_ID, Feed, feed, play};

/// The fate of a frame.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Lost,
    Twice,
    /// It arrives after the next frame.
    Late,
    /// A snapshot that is this many updates old arrives first.
    AfterSnapshot(usize),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => Just(Fate::Arrives),
        1 => Just(Fate::Lost),
        1 => Just(Fate::Twice),
        1 => Just(Fate::Late),
        2 => (0_usize..12).prop_map(Fate::AfterSnapshot),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_joined_book_equals_the_venues_book_or_is_absent(
        is_futures: bool,
        updates in prop::collection::vec((any::<bool>(), 0_u32..6, 0_u32..4), 1..80),
        sizes in prop::collection::vec(1_usize..5, 80),
        fates in prop::collection::vec(fate(), 80),
    ) {
        let surface = if is_futures { Surface::Futures } else { Surface::Spot };
        let truth = Feed::new(surface, &updates);
        let mut book = LocalBook::new(surface);
        let (mut from, mut late) = (0, None::<String>);
        for (size, fate) in sizes.into_iter().zip(fates) {
            if from == updates.len() {
                break;
            }
            let to = (from + size).min(updates.len());
            let frame = truth.frame(&updates, from, to);
            let mut arrive = |text: &str| {
                let step = feed(&mut book, text);
                truth.check(&book, step);
            };
            match fate {
                Fate::Lost => {}
                Fate::Late => {
                    if let Some(earlier) = late.replace(frame) {
                        arrive(&earlier);
                    }
                    from = to;
                    continue;
                }
                Fate::Arrives => arrive(&frame),
                Fate::Twice => {
                    arrive(&frame);
                    arrive(&frame);
                }
                Fate::AfterSnapshot(age) => {
                    arrive(&truth.snapshot(to.saturating_sub(age)));
                    arrive(&frame);
                }
            }
            if let Some(earlier) = late.take() {
                arrive(&earlier);
            }
            from = to;
        }
        // A fresh snapshot always restores the book, whatever happened before.
        let step = feed(&mut book, &truth.snapshot(from));
        truth.check(&book, step);
        prop_assert_eq!(book.update_id(), Some(FIRST_ID + from as i64));
    }

    /// Runs the code of the fuzz target on machines without a fuzzer.
    #[test]
    fn a_stream_of_any_bytes_keeps_the_book_correct(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        play(&bytes);
    }
}

#[test]
fn a_partial_depth_frame_replaces_the_book() {
    let mut book = LocalBook::new(Surface::Spot);
    let frame = |id: i64, bid: &str| {
        format!(
            r#"{{"stream":"a@depth5","data":{{"lastUpdateId":{id},"bids":[["{bid}","1"]],"asks":[]}}}}"#
        )
    };
    assert_eq!(feed(&mut book, &frame(7, "1.5")), BookStep::Applied);
    assert_eq!(feed(&mut book, &frame(8, "1.25")), BookStep::Applied);
    assert_eq!(feed(&mut book, &frame(6, "9")), BookStep::Dropped);
    let bids: Vec<String> = book.bids().map(|(price, _)| price.to_string()).collect();
    assert_eq!((bids, book.update_id()), (vec!["1.25".to_owned()], Some(8)));
}

/// The seeds of the fuzz target together reach every step under both join rules.
#[test]
fn the_fuzz_seeds_pass_and_reach_every_step() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/book_join");
    for word in ["spot", "futures"] {
        let mut seen = [0; 4];
        let mut seeds = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if !name.starts_with(word) {
                continue;
            }
            let steps = play(&std::fs::read(&path).unwrap());
            let steps = [steps.applied, steps.dropped, steps.waiting, steps.resync];
            assert!(steps.iter().sum::<usize>() > 0, "{name} is empty");
            seeds += 1;
            for (sum, more) in seen.iter_mut().zip(steps) {
                *sum += more;
            }
        }
        assert!(seeds >= 10, "{word}: {seeds} seeds");
        assert!(seen.iter().all(|sum| *sum > 5), "{word}: {seen:?}");
    }
}
