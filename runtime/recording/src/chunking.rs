//! Collects events into chunks. Each chunk has one scale per instrument and kind of number: the
//! smallest that holds all its numbers. It also computes the greatest common divisors of prices and
//! quantities.

use windvane_model::decimal::{Decimal, pow10};
use windvane_model::{InstrumentId, Level};
use windvane_protocol::{BookLevels, Number, NumberError};

use super::RecordingError;
use super::cache::Writer;
use super::chunk::{EVENTS_MAX, LEVELS_FULL, Scales, Stored};
use super::tape_event::TapeEvent;

/// Collects events and writes each full chunk.
pub(super) struct Chunking {
    writer: Writer,
    stored: Stored,
    instruments: Vec<Instrument>,
    events: u64,
}

/// Prices or quantities of one instrument.
#[derive(Clone, Copy, Debug, Default)]
struct Quantum {
    /// Decimal places of the mantissas in the current chunk.
    scale: u8,
    /// Greatest common divisor and largest absolute value in the current chunk.
    divisor: u64,
    largest: u64,
    /// Greatest common divisor of all earlier chunks: `total / 10^total_scale`.
    total: u128,
    total_scale: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Instrument {
    price: Quantum,
    qty: Quantum,
}

impl Chunking {
    pub(super) fn new(writer: Writer) -> Self {
        Self {
            writer,
            stored: Stored::default(),
            instruments: Vec::new(),
            events: 0,
        }
    }

    /// Prepares for numbers with this many decimals. If they have more decimals than before, the
    /// current chunk ends. Call it before [`Self::price`] and similar methods.
    #[inline]
    pub(super) fn fit(
        &mut self,
        index: usize,
        price_scale: u8,
        qty_scale: u8,
    ) -> Result<(), RecordingError> {
        if let Some(known) = self.instruments.get(index)
            && price_scale <= known.price.scale
            && qty_scale <= known.qty.scale
        {
            return Ok(());
        }
        self.widen(index, price_scale, qty_scale)
    }

    fn widen(&mut self, index: usize, price: u8, qty: u8) -> Result<(), RecordingError> {
        if index >= self.instruments.len() {
            self.instruments.resize(index + 1, Instrument::default());
        }
        self.flush()?;
        let known = &mut self.instruments[index];
        known.price.scale = known.price.scale.max(price);
        known.qty.scale = known.qty.scale.max(qty);
        Ok(())
    }

    /// Returns a price as a mantissa in the current chunk's scale.
    #[inline]
    pub(super) fn price(&mut self, index: usize, number: Number) -> Result<i64, NumberError> {
        self.instruments[index].price.take(number)
    }

    /// Returns a quantity as a mantissa in the current chunk's scale.
    #[inline]
    pub(super) fn qty(&mut self, index: usize, number: Number) -> Result<i64, NumberError> {
        self.instruments[index].qty.take(number)
    }

    /// Adds the levels of a depth event. Returns the index of the first one.
    pub(super) fn levels(
        &mut self,
        index: usize,
        levels: &BookLevels,
    ) -> Result<usize, NumberError> {
        let Instrument { price, qty } = &mut self.instruments[index];
        let start = self.stored.chunk.levels.len();
        for level in levels.all() {
            let mantissas = price
                .take(Number {
                    mantissa: level.price,
                    scale: levels.price_scale(),
                })
                .and_then(|price| {
                    let scale = levels.qty_scale();
                    let mantissa = level.qty;
                    Ok((price, qty.take(Number { mantissa, scale })?))
                });
            match mantissas {
                Ok((price, qty)) => self.stored.chunk.levels.push(Level { price, qty }),
                Err(error) => {
                    self.stored.chunk.levels.truncate(start);
                    return Err(error);
                }
            }
        }
        Ok(start)
    }

    /// Adds an event and sets its `line`. Writes the chunk when it is full.
    #[inline]
    pub(super) fn push(&mut self, line: u64, mut event: TapeEvent) -> Result<(), RecordingError> {
        let chunk = &mut self.stored.chunk;
        if chunk.events.is_empty() {
            self.stored.first_line = line;
        }
        // A depth frame that waited for its snapshot may have an earlier line than the chunk. It
        // gets the first line of the chunk.
        event.line = line.saturating_sub(self.stored.first_line) as u32;
        chunk.events.push(event);
        self.events += 1;
        if chunk.events.len() >= EVENTS_MAX || chunk.levels.len() >= LEVELS_FULL {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), RecordingError> {
        if self.stored.chunk.events.is_empty() {
            return Ok(());
        }
        self.stored.scales.clear();
        let mut cuts = Vec::with_capacity(self.instruments.len());
        for (index, known) in self.instruments.iter_mut().enumerate() {
            let is_used = known.price.largest > 0 || known.qty.largest > 0;
            let (price_cut, qty_cut) = (known.price.close(), known.qty.close());
            cuts.push((price_cut.divisor, qty_cut.divisor));
            if is_used {
                self.stored.scales.push(Scales {
                    instrument: index as u16,
                    price_scale: price_cut.scale,
                    qty_scale: qty_cut.scale,
                    price_max: price_cut.largest,
                    qty_max: qty_cut.largest,
                });
            }
        }
        shrink(&mut self.stored, &cuts);
        self.writer.chunk(&self.stored)?;
        self.stored.chunk.events.clear();
        self.stored.chunk.levels.clear();
        Ok(())
    }

    /// Writes the last chunk. Returns the writer, the number of events, and the greatest common
    /// divisors of prices and quantities per instrument.
    pub(super) fn finish(mut self) -> Result<Finished, RecordingError> {
        self.flush()?;
        let steps = self.instruments.iter();
        let steps = steps.map(|known| (known.price.step(), known.qty.step()));
        Ok(Finished {
            steps: steps.collect(),
            events: self.events,
            writer: self.writer,
        })
    }
}

/// The results of [`Chunking`].
pub(super) struct Finished {
    pub(super) writer: Writer,
    pub(super) events: u64,
    /// Greatest common divisors of price and quantity, per instrument.
    pub(super) steps: Vec<(Decimal, Decimal)>,
}

/// How to reduce a chunk's mantissas to the smallest scale.
struct Cut {
    divisor: i64,
    scale: u8,
    largest: i64,
}

impl Quantum {
    #[inline]
    fn take(&mut self, number: Number) -> Result<i64, NumberError> {
        let mantissa = number.at(self.scale)?;
        let size = mantissa.unsigned_abs();
        self.largest = self.largest.max(size);
        // The divisor nearly always divides the next number too, so one division is usually enough.
        if self.divisor == 0 || !size.is_multiple_of(self.divisor) {
            self.divisor = gcd(self.divisor.into(), size.into()) as u64;
        }
        Ok(mantissa)
    }

    /// Ends the current chunk for this kind of number.
    fn close(&mut self) -> Cut {
        let mut zeros = 0;
        while zeros < self.scale
            && self
                .divisor
                .is_multiple_of(10_u64.pow(u32::from(zeros) + 1))
        {
            zeros += 1;
        }
        let divisor = pow10(zeros);
        let scale = self.scale - zeros;
        let largest = self.largest as i64 / divisor;
        self.add_to_total(u128::from(self.divisor) / divisor as u128, scale);
        (self.divisor, self.largest) = (0, 0);
        Cut {
            divisor,
            scale,
            largest,
        }
    }

    fn add_to_total(&mut self, divisor: u128, scale: u8) {
        let finest = scale.max(self.total_scale);
        let at_finest = |value: u128, scale: u8| value * pow10(finest - scale) as u128;
        let before = at_finest(self.total, self.total_scale);
        self.total = gcd(before, at_finest(divisor, scale));
        self.total_scale = finest;
    }

    fn step(&self) -> Decimal {
        windvane_model::decimal::decimal(self.total as i128, self.total_scale)
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Divides each mantissa by its instrument's power of ten, which divides all of them.
fn shrink(stored: &mut Stored, cuts: &[(i64, i64)]) {
    if cuts.iter().all(|&cut| cut == (1, 1)) {
        return;
    }
    let chunk = &mut stored.chunk;
    for event in &mut chunk.events {
        let Some(&(price, qty)) = cuts.get(usize::from(event.instrument.0)) else {
            continue;
        };
        event.scale(&mut chunk.levels, |p, q| (p / price, q / qty));
    }
}

/// The id of an instrument within its recording.
pub(super) fn local_id(index: usize) -> InstrumentId {
    InstrumentId(index as u16)
}
