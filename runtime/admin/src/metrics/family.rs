//! A line of the table as a type. Its kind decides how it can be written, and its number of labels
//! how many values are needed. Label values are ids or values of closed lists, never free text,
//! addresses or order ids, because each new value is a series that stays in memory.

use std::marker::PhantomData;

use metrics::{Key, Label, Level, Metadata, Unit, with_recorder};

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, None);

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows during the life of the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Quantiles 0.5, 0.9, 0.99 and 1 of the last minute, and sum and count since the start.
    Summary,
}

impl Kind {
    /// The name of the kind in Prometheus.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Summary => "summary",
        }
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Name.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Unit of its value.
    pub unit: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// Its meaning.
    pub meaning: &'static str,
}

impl Line {
    /// Registers the meaning with the current recorder.
    pub(super) fn describe(&self) {
        let (name, meaning) = (self.name.into(), self.meaning.into());
        let unit: Option<Unit> = None;
        with_recorder(|recorder| match self.kind {
            Kind::Counter => recorder.describe_counter(name, unit, meaning),
            Kind::Gauge => recorder.describe_gauge(name, unit, meaning),
            Kind::Summary => recorder.describe_histogram(name, unit, meaning),
        });
    }
}

/// A line that is written through handles of type `H`, one for each set of `N` label values.
#[derive(Debug)]
pub struct Family<H, const N: usize> {
    line: Line,
    handle: PhantomData<fn() -> H>,
}

/// Counters with `N` labels.
pub type Counters<const N: usize> = Family<metrics::Counter, N>;
/// Gauges with `N` labels.
pub type Gauges<const N: usize> = Family<metrics::Gauge, N>;
/// Summaries with `N` labels.
pub type Summaries<const N: usize> = Family<metrics::Histogram, N>;

impl<H, const N: usize> Family<H, N> {
    const fn new(
        kind: Kind,
        name: &'static str,
        unit: &'static str,
        labels: &'static [&'static str; N],
        meaning: &'static str,
    ) -> Self {
        let line = Line {
            name,
            kind,
            unit,
            labels,
            meaning,
        };
        Self {
            line,
            handle: PhantomData,
        }
    }

    /// The line of the table.
    pub const fn line(&self) -> Line {
        self.line
    }

    fn key(&self, values: [&str; N]) -> Key {
        let labels = self.line.labels.iter().zip(values);
        let labels: Vec<_> = labels
            .map(|(name, value)| Label::new(*name, value.to_owned()))
            .collect();
        Key::from_parts(self.line.name, labels)
    }
}

impl<const N: usize> Counters<N> {
    pub(super) const fn counter(
        name: &'static str,
        unit: &'static str,
        labels: &'static [&'static str; N],
        meaning: &'static str,
    ) -> Self {
        Self::new(Kind::Counter, name, unit, labels, meaning)
    }

    /// The counter of these label values. Keep it in hot code.
    pub fn of(&self, values: [&str; N]) -> metrics::Counter {
        with_recorder(|recorder| recorder.register_counter(&self.key(values), &METADATA))
    }
}

impl<const N: usize> Gauges<N> {
    pub(super) const fn gauge(
        name: &'static str,
        unit: &'static str,
        labels: &'static [&'static str; N],
        meaning: &'static str,
    ) -> Self {
        Self::new(Kind::Gauge, name, unit, labels, meaning)
    }

    /// The gauge of these label values. Keep it in hot code.
    pub fn of(&self, values: [&str; N]) -> metrics::Gauge {
        with_recorder(|recorder| recorder.register_gauge(&self.key(values), &METADATA))
    }
}

impl<const N: usize> Summaries<N> {
    pub(super) const fn summary(
        name: &'static str,
        unit: &'static str,
        labels: &'static [&'static str; N],
        meaning: &'static str,
    ) -> Self {
        Self::new(Kind::Summary, name, unit, labels, meaning)
    }

    /// The summary of these label values. Keep it in hot code.
    pub fn of(&self, values: [&str; N]) -> metrics::Histogram {
        with_recorder(|recorder| recorder.register_histogram(&self.key(values), &METADATA))
    }
}
