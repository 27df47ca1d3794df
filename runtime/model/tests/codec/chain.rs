//! Chains of blocks: an intact chain verifies to its fingerprint, and damage is reported with its
//! block.

use windvane_model::encode;
use windvane_model::market::MarketEvent;
use windvane_model::record::{self, Block, ChainError, Recorder};
use windvane_model::{Input, InstrumentId, Time};

use super::blocks;

/// A chain of five blocks with three records each. One record of each block is a market record.
fn chain() -> (Vec<Block>, record::Hash) {
    let mut recorder = Recorder::new(true);
    for i in 0..10 {
        encode::record_input(&mut recorder, Time(i), &Input::Timeout);
        if i % 2 == 1 {
            let gap = Input::Market {
                instrument: InstrumentId(0),
                event: MarketEvent::Gap,
            };
            encode::record_input(&mut recorder, Time(i), &gap);
            recorder.seal();
        }
    }
    let fingerprint = recorder.fingerprint();
    (blocks(&mut recorder), fingerprint)
}

#[test]
fn a_whole_chain_verifies_to_its_fingerprint() {
    let (blocks, fingerprint) = chain();
    assert_eq!(blocks.len(), 5);
    assert_eq!(record::verify(&blocks), Ok(fingerprint));
    assert_eq!(record::verify([]), Ok([0; 32]));
}

#[test]
fn the_first_bad_block_is_named() {
    let error = |damage: fn(&mut Vec<Block>)| {
        let (mut blocks, _) = chain();
        damage(&mut blocks);
        record::verify(&blocks).unwrap_err()
    };
    let missing = ChainError::Number {
        expected: 2,
        found: 3,
    };
    assert_eq!(error(|b| drop(b.remove(2))), missing);
    assert_eq!(
        error(|b| b[1].orders[3] ^= 1),
        ChainError::Hash { block: 1 }
    );
    assert_eq!(error(|b| b[1].hash[3] ^= 1), ChainError::Hash { block: 1 });
    assert_eq!(
        error(|b| b[3].previous[0] ^= 1),
        ChainError::Previous { block: 3 }
    );
    let shifted = ChainError::FirstRecord {
        block: 4,
        expected: 13,
        found: 8,
    };
    assert_eq!(error(|b| b[4].first_record = 8), shifted);
    let market = |change: fn(&mut Vec<u8>)| {
        let (mut blocks, _) = chain();
        change(blocks[1].market.as_mut().unwrap());
        record::verify(&blocks)
    };
    let damaged = Err(ChainError::Market { block: 1 });
    assert_eq!(market(|bytes| bytes[0] ^= 1), damaged);
    assert_eq!(market(Vec::clear), damaged);
}

#[test]
fn a_replaced_block_with_a_valid_hash_breaks_the_next_block() {
    let (mut blocks, _) = chain();
    blocks[2].orders[5] ^= 1;
    blocks[2].hash = blocks[2].computed_hash();
    assert_eq!(
        record::verify(&blocks),
        Err(ChainError::Previous { block: 3 })
    );
}

#[test]
fn undecodable_records_with_a_valid_hash_are_reported() {
    let (mut blocks, _) = chain();
    blocks.truncate(3);
    blocks[2].orders[0] = 99;
    blocks[2].hash = blocks[2].computed_hash();
    let error = record::verify(&blocks).unwrap_err();
    assert!(
        matches!(error, ChainError::Records { block: 2, .. }),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "block 2: unknown record kind 99 at byte 0: damaged, or from a newer version?"
    );
}

#[test]
fn a_block_without_its_market_part_is_verified_by_its_digest() {
    let (mut blocks, fingerprint) = chain();
    let whole: Vec<_> = blocks[3].records().collect();
    assert_eq!(whole.len(), 3);
    blocks[3].market = None;
    assert_eq!(record::verify(&blocks), Ok(fingerprint));
    let orders: Vec<_> = blocks[3].records().collect();
    assert_eq!(orders, whole[..2], "sequences do not change");

    blocks[3].market_digest[0] ^= 1;
    let damaged = Err(ChainError::Hash { block: 3 });
    assert_eq!(
        record::verify(&blocks),
        damaged,
        "the hash covers the digest"
    );
}
