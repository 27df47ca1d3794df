//! Collects the data of the report's charts during the run, in constant memory.

use windvane_model::decimal::{AMOUNT_SCALE, Amount, div_half_even, pow10};
use windvane_model::ids::Time;
use windvane_model::order::Side;

use super::series::Series;
use crate::{EquityRow, FillRow};

/// Largest number of fills that the price chart of an instrument shows.
pub(super) const MARKERS_MAX: usize = 4000;
/// Largest number of series that one strategy may plot. Points of further series are counted and
/// dropped.
pub(super) const PLOTS_MAX: usize = 32;

/// The data of all charts.
#[derive(Debug, Default)]
pub struct Charts {
    /// Ids of the strategies that had a fill, in the order of their first fill.
    pub strategies: Vec<String>,
    /// One chart per instrument, in the order of the configuration.
    pub instruments: Vec<InstrumentChart>,
    /// One chart per strategy and instrument with a fill.
    pub positions: Vec<PositionChart>,
    /// Equity, scale 8.
    pub equity: Series,
    /// Drawdown, a fraction at scale 8.
    pub drawdown: Series,
    /// Series that strategies plotted.
    pub plots: Vec<Plot>,
    /// Number of dropped points, from series beyond [`PLOTS_MAX`].
    pub plot_points_dropped: u64,
}

/// Price and fills of one instrument.
#[derive(Debug)]
pub struct InstrumentChart {
    /// Name of the instrument.
    pub name: String,
    /// Mid price, scale 8.
    pub mid: Series,
    /// Fills.
    pub markers: Markers,
}

/// One strategy's position in one instrument, computed from its fills.
#[derive(Debug)]
pub struct PositionChart {
    /// Id of the strategy.
    pub strategy: String,
    /// Name of the instrument.
    pub instrument: String,
    /// Signed quantity after each fill, scale 8.
    pub qty: Series,
    net: i128,
}

/// A series that a strategy plots.
#[derive(Debug)]
pub struct Plot {
    /// Id of the strategy.
    pub strategy: String,
    /// Name of the series.
    pub name: String,
    /// Values at scale 8.
    pub values: Series,
}

/// One fill in the price chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Time of the fill.
    pub time: Time,
    /// Price, scale 8.
    pub price: i128,
    /// Side.
    pub side: Side,
    /// Whether the order was the maker.
    pub maker: bool,
    /// Quantity, scale 8.
    pub qty: i128,
    /// Index into [`Charts::strategies`].
    pub strategy: usize,
}

/// At most [`MARKERS_MAX`] fills, spread evenly over all fills. Each time the list is full, every
/// second entry is removed, and from then on only half as many are added.
#[derive(Debug)]
pub struct Markers {
    kept: Vec<Marker>,
    stride: u64,
    seen: u64,
}

impl Default for Markers {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            stride: 1,
            seen: 0,
        }
    }
}

impl Markers {
    fn push(&mut self, marker: Marker) {
        if self.seen.is_multiple_of(self.stride) {
            if self.kept.len() == MARKERS_MAX {
                let mut keep = false;
                self.kept.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                self.kept.push(marker);
            }
        }
        self.seen += 1;
    }

    /// The fills in the list, oldest first.
    pub fn kept(&self) -> &[Marker] {
        &self.kept
    }

    /// Number of all fills.
    pub fn seen(&self) -> u64 {
        self.seen
    }
}

impl Charts {
    /// Charts for these instruments.
    pub fn new(instruments: &[String]) -> Self {
        let chart = |name: &String| InstrumentChart {
            name: name.clone(),
            mid: Series::default(),
            markers: Markers::default(),
        };
        Self {
            instruments: instruments.iter().map(chart).collect(),
            ..Self::default()
        }
    }

    /// Adds a fill to the price chart and to the strategy's position.
    pub fn fill(&mut self, fill: &FillRow<'_>) {
        let strategy = self.strategy(fill.strategy);
        let known = |chart: &&mut InstrumentChart| chart.name == fill.instrument;
        if let Some(chart) = self.instruments.iter_mut().find(known) {
            chart.markers.push(Marker {
                time: fill.time,
                price: at_amount_scale(fill.price.into(), fill.price_scale.into()),
                side: fill.side,
                maker: fill.maker,
                qty: at_amount_scale(fill.qty.into(), fill.qty_scale.into()),
                strategy,
            });
        }
        let same = |chart: &PositionChart| {
            chart.strategy == fill.strategy && chart.instrument == fill.instrument
        };
        let at = self.positions.iter().position(same).unwrap_or_else(|| {
            self.positions.push(PositionChart {
                strategy: fill.strategy.to_owned(),
                instrument: fill.instrument.to_owned(),
                qty: Series::default(),
                net: 0,
            });
            self.positions.len() - 1
        });
        let chart = &mut self.positions[at];
        let qty = at_amount_scale(fill.qty.into(), fill.qty_scale.into());
        chart.net += qty * i128::from(fill.side.sign());
        chart.qty.push(fill.time, chart.net);
    }

    fn strategy(&mut self, id: &str) -> usize {
        let known = self.strategies.iter().position(|known| known == id);
        known.unwrap_or_else(|| {
            self.strategies.push(id.to_owned());
            self.strategies.len() - 1
        })
    }

    /// Adds the mid price of an instrument. `instrument` is its index in the configuration.
    pub fn price(&mut self, time: Time, instrument: usize, mid: Amount) {
        if let Some(chart) = self.instruments.get_mut(instrument) {
            chart.mid.push(time, mid.0);
        }
    }

    /// Adds the account's equity at the end of a second.
    pub fn equity(&mut self, row: &EquityRow, drawdown: i128) {
        self.equity.push(row.time, row.equity.0);
        self.drawdown.push(row.time, drawdown);
    }

    fn series_of(&self, strategy: &str) -> usize {
        let own = self.plots.iter().filter(|plot| plot.strategy == strategy);
        own.count()
    }

    /// Adds a point `value / 10^scale` of a strategy's own series.
    pub fn plot(&mut self, time: Time, strategy: &str, series: &str, value: i64, scale: u32) {
        let same = |plot: &Plot| plot.name == series && plot.strategy == strategy;
        let at = match self.plots.iter().position(same) {
            Some(at) => at,
            None if self.series_of(strategy) < PLOTS_MAX => {
                self.plots.push(Plot {
                    strategy: strategy.to_owned(),
                    name: series.to_owned(),
                    values: Series::default(),
                });
                self.plots.len() - 1
            }
            None => {
                self.plot_points_dropped += 1;
                return;
            }
        };
        self.plots[at]
            .values
            .push(time, at_amount_scale(value.into(), scale));
    }
}

/// `mantissa / 10^scale` in units of 1e-8, rounded half to even. Very small values become 0.
fn at_amount_scale(mantissa: i128, scale: u32) -> i128 {
    let places = u32::from(AMOUNT_SCALE);
    match u8::try_from(scale.abs_diff(places)) {
        Ok(shift @ 0..=18) if scale <= places => mantissa * i128::from(pow10(shift)),
        Ok(shift @ 0..=18) => div_half_even(mantissa, pow10(shift).into()),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_thinned_evenly() {
        let mut markers = Markers::default();
        for at in 0..10_001 {
            markers.push(Marker {
                time: Time(at),
                price: 0,
                side: Side::Buy,
                maker: true,
                qty: 0,
                strategy: 0,
            });
        }
        assert_eq!(markers.seen(), 10_001);
        let times: Vec<i64> = markers.kept().iter().map(|marker| marker.time.0).collect();
        assert!(times.len() <= MARKERS_MAX);
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 4));
        assert_eq!(times.last(), Some(&10_000));
    }

    #[test]
    fn plots_beyond_the_limit_are_counted() {
        let mut charts = Charts::default();
        for series in 0..=PLOTS_MAX {
            charts.plot(Time(1), "mm", &series.to_string(), 5, 0);
        }
        assert_eq!(charts.plots.len(), PLOTS_MAX);
        assert_eq!(charts.plot_points_dropped, 1);
        charts.plot(Time(1), "other", "0", 5, 0);
        assert_eq!(
            charts.plots.len(),
            PLOTS_MAX + 1,
            "one strategy leaves room"
        );
        assert_eq!(charts.plots[0].values.buckets()[0].last, 500_000_000);
    }
}
