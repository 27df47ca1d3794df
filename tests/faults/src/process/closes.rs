//! Closes by others that the runtime has reported, until the journal has their cause durably. A
//! next process that finds the cause in the journal makes these closes again. Otherwise it does not
//! know of them.

use std::collections::VecDeque;

use crate::witness::WitnessEvent;

/// The closes of a process, each with the record number of the input that caused it.
pub struct Closes {
    /// The last record of the previous step; the next input is the record after it.
    before: u64,
    made: VecDeque<(u64, WitnessEvent)>,
}

impl Closes {
    /// For a process that has written this many records.
    pub const fn new(records: u64) -> Self {
        Self {
            before: records,
            made: VecDeque::new(),
        }
    }

    /// Adds a close of the running step, whose records end at `records` so far. Records that the
    /// step wrote after its input follow from the input and need not be durable: outputs of
    /// strategies, and the blocks that they end.
    pub fn note(&mut self, close: WitnessEvent, records: u64) {
        // A close before the first reported step has no input of its own here.
        let led = (self.before + 1).min(records);
        self.made.push_back((led, close));
    }

    /// A step ended with this record.
    pub const fn end_step(&mut self, record: u64) {
        self.before = record;
    }

    /// The journal is durable up to this record.
    pub fn durable(&mut self, record: u64) {
        self.made.retain(|(led, _)| *led > record);
    }

    /// The closes that the next process does not know if its journal ends with `record`. The last
    /// `but_last` closes are left out: the witness has not received them yet.
    pub fn after(&self, record: u64, but_last: usize) -> impl Iterator<Item = &WitnessEvent> {
        let seen = self.made.len().saturating_sub(but_last);
        let lost = self.made.iter().take(seen);
        let lost = lost.filter(move |(led, _)| *led > record);
        lost.map(|(_, close)| close)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close() -> WitnessEvent {
        WitnessEvent::ClosedOutside {
            process: 1,
            strategy: "gr0".to_owned(),
            instrument: "futures:BTCUSDT".to_owned(),
            qty: "-0.01".to_owned(),
        }
    }

    /// A close caused by record 11, in a step that ends with record 19.
    fn closed() -> Closes {
        let mut closes = Closes::new(10);
        closes.note(close(), 19);
        closes.end_step(19);
        closes
    }

    #[test]
    fn a_close_whose_input_is_durable_is_not_lost() {
        let mut closes = closed();
        // An order of this step ended a block, and that block ends with record 14.
        assert_eq!(closes.after(14, 0).count(), 0);
        assert_eq!(closes.after(11, 0).count(), 0);
        assert_eq!(closes.after(10, 0).count(), 1);
        assert_eq!(closes.after(10, 1).count(), 0);
        closes.durable(14);
        assert_eq!(closes.after(0, 0).count(), 0);
    }

    #[test]
    fn the_next_step_begins_after_the_last_one() {
        let mut closes = closed();
        closes.note(close(), 25);
        assert_eq!(closes.after(19, 0).count(), 1);
        assert_eq!(closes.after(20, 0).count(), 0);
    }

    #[test]
    fn a_close_at_the_start_is_in_its_last_record() {
        let mut closes = Closes::new(10);
        closes.note(close(), 10);
        assert_eq!(closes.after(9, 0).count(), 1);
        assert_eq!(closes.after(10, 0).count(), 0);
    }
}
