//! Formats the charts as the JSON that the page's script draws. Numbers are exact decimals. Times
//! are milliseconds since the start of the run.

use std::fmt::Write;

use windvane_model::decimal::{AMOUNT_SCALE, Amount};
use windvane_model::ids::Time;
use windvane_model::order::Side;
use windvane_model::outside_text;

use super::charts::{Charts, InstrumentChart, MARKERS_MAX, PLOTS_MAX, Plot};
use super::series::Series;
use crate::Summary;
use crate::format::grouped;
use crate::text::decimal_text;

/// Plots share a chart only if the ratio of their ranges is at most this.
const RANGE_RATIO_MAX: i128 = 20;

/// How a panel is drawn. The script uses the same names.
#[derive(Clone, Copy)]
enum Style {
    /// Straight lines between values.
    Line,
    /// A value is valid until the next value.
    Step,
    /// An area below zero, in percent.
    Depth,
}

impl Style {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Step => "step",
            Self::Depth => "depth",
        }
    }
}

struct Panel<'a> {
    title: String,
    unit: &'a str,
    style: Style,
    height: u32,
    series: Vec<(&'a str, &'a Series)>,
    marks: Option<&'a InstrumentChart>,
    note: String,
}

/// All panels as one JSON object, which is safe inside a script element.
pub(super) fn chart_json(summary: &Summary, charts: &Charts) -> String {
    let panels: Vec<String> = panels(summary, charts)
        .iter()
        .map(|panel| panel.json(summary.start_time, summary.end_time))
        .collect();
    format!(
        "{{\"start\":{},\"length\":{},\"strategies\":{},\"panels\":[{}]}}",
        decimal_text(summary.start_time.0.into(), 6),
        decimal_text(
            i128::from(summary.end_time.0) - i128::from(summary.start_time.0),
            6
        ),
        quoted_list(charts.strategies.iter().map(String::as_str)),
        panels.join(",")
    )
}

fn panels<'a>(summary: &'a Summary, charts: &'a Charts) -> Vec<Panel<'a>> {
    let plain = |title: String, unit, style, height, series| Panel {
        title,
        unit,
        style,
        height,
        series,
        marks: None,
        note: String::new(),
    };
    let mut panels = Vec::new();
    for chart in &charts.instruments {
        let instrument = summary
            .instruments
            .iter()
            .find(|other| other.name == chart.name);
        let (base, quote) = instrument.map_or(("", ""), |found| (&*found.base, &*found.quote));
        panels.push(Panel {
            marks: Some(chart),
            note: marker_note(chart),
            ..plain(
                format!("Price and fills, {}", chart.name),
                quote,
                Style::Line,
                320,
                vec![("mid", &chart.mid)],
            )
        });
        let positions: Vec<_> = charts
            .positions
            .iter()
            .filter(|position| position.instrument == chart.name)
            .map(|position| (&*position.strategy, &position.qty))
            .collect();
        if !positions.is_empty() {
            let title = format!("Position, {}", chart.name);
            panels.push(plain(title, base, Style::Step, 150, positions));
        }
    }
    let quote = &*summary.quote_asset;
    let equity = vec![("equity", &charts.equity)];
    panels.push(plain("Equity".to_owned(), quote, Style::Line, 220, equity));
    let drawdown = vec![("drawdown", &charts.drawdown)];
    panels.push(plain(
        "Drawdown from the peak".to_owned(),
        "%",
        Style::Depth,
        120,
        drawdown,
    ));
    for group in plot_groups(&charts.plots) {
        let title = format!("Plotted by {}", group[0].strategy);
        let series = group
            .iter()
            .map(|plot| (&*plot.name, &plot.values))
            .collect();
        panels.push(Panel {
            note: dropped_note(charts.plot_points_dropped),
            ..plain(title, "", Style::Line, 200, series)
        });
    }
    panels
}

fn marker_note(chart: &InstrumentChart) -> String {
    let (kept, seen) = (chart.markers.kept().len() as u64, chart.markers.seen());
    if kept < seen {
        format!(
            "{} of {} fills are shown, an even selection of at most {}; fills.csv contains all",
            grouped(kept),
            grouped(seen),
            grouped(MARKERS_MAX as u64)
        )
    } else {
        String::new()
    }
}

fn dropped_note(points: u64) -> String {
    if points == 0 {
        return String::new();
    }
    format!(
        "{} points of further series are not shown: a strategy may plot at most {PLOTS_MAX} series",
        grouped(points)
    )
}

/// Groups plots into charts. Plots share a chart if they belong to the same strategy and their
/// ranges overlap and have a similar size.
fn plot_groups(plots: &[Plot]) -> Vec<Vec<&Plot>> {
    let mut groups: Vec<Vec<&Plot>> = Vec::new();
    for plot in plots {
        let fits = |group: &&mut Vec<&Plot>| {
            group[0].strategy == plot.strategy && alike(&group[0].values, &plot.values)
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(plot),
            None => groups.push(vec![plot]),
        }
    }
    groups
}

fn alike(left: &Series, right: &Series) -> bool {
    let (Some((left_min, left_max)), Some((right_min, right_max))) = (left.range(), right.range())
    else {
        return false;
    };
    let (left_width, right_width) = (left_max - left_min, right_max - right_min);
    left_min <= right_max
        && right_min <= left_max
        && left_width <= right_width.saturating_mul(RANGE_RATIO_MAX)
        && right_width <= left_width.saturating_mul(RANGE_RATIO_MAX)
}

impl Panel<'_> {
    fn json(&self, start: Time, end: Time) -> String {
        let series: Vec<String> = self
            .series
            .iter()
            .map(|(name, values)| series_json(name, values, start, end, self.style))
            .collect();
        format!(
            "{{\"title\":{},\"unit\":{},\"style\":\"{}\",\"height\":{},\"note\":{},\
             \"series\":[{}],\"marks\":{}}}",
            quoted(&self.title),
            quoted(self.unit),
            self.style.as_str(),
            self.height,
            quoted(&self.note),
            series.join(","),
            self.marks
                .map_or_else(|| "null".to_owned(), |chart| marks_json(chart, start)),
        )
    }
}

/// The columns of a series: `t` is the time of the last value in a bucket, `v` is that value, and
/// `lo` and `hi` are the extremes.
fn series_json(name: &str, series: &Series, start: Time, end: Time, style: Style) -> String {
    let sign = if matches!(style, Style::Depth) {
        -100
    } else {
        1
    };
    let mut columns = [const { String::new() }; 4];
    let mut push = |time: Time, values: [i128; 3]| {
        let comma = if columns[0].is_empty() { "" } else { "," };
        let _ = write!(columns[0], "{comma}{}", since(start, time));
        for (column, value) in columns[1..].iter_mut().zip(values) {
            let _ = write!(column, "{comma}{}", number(value));
        }
    };
    if let (Style::Step, Some(first)) = (style, series.buckets().first())
        && first.time > start
    {
        push(start, [0, 0, 0]);
    }
    for bucket in series.buckets() {
        let (low, high) = (bucket.min * sign, bucket.max * sign);
        push(
            bucket.time,
            [bucket.last * sign, low.min(high), low.max(high)],
        );
    }
    if let (Style::Step, Some(last)) = (style, series.buckets().last())
        && last.time < end
    {
        push(end, [last.last, last.last, last.last]);
    }
    let [time, value, low, high] = columns;
    format!(
        "{{\"name\":{},\"t\":[{time}],\"v\":[{value}],\"lo\":[{low}],\"hi\":[{high}]}}",
        quoted(name)
    )
}

/// The rows of the fill markers: `[time, price, quantity, side sign, maker, strategy]`.
fn marks_json(chart: &InstrumentChart, start: Time) -> String {
    let mut rows = String::new();
    for (at, marker) in chart.markers.kept().iter().enumerate() {
        let _ = write!(
            rows,
            "{}[{},{},{},{},{},{}]",
            if at == 0 { "" } else { "," },
            since(start, marker.time),
            number(marker.price),
            number(marker.qty),
            if marker.side == Side::Buy { 1 } else { -1 },
            u8::from(marker.maker),
            marker.strategy,
        );
    }
    format!("[{rows}]")
}

/// Milliseconds since the start, with three decimals.
fn since(start: Time, time: Time) -> String {
    let ns = i128::from(time.0) - i128::from(start.0);
    decimal_text(ns / 1000, 3)
}

/// A value at scale 8 as a JSON number. The script needs at most 8 decimals.
fn number(value: i128) -> String {
    decimal_text(Amount(value).0, AMOUNT_SCALE)
}

fn quoted_list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", texts.map(quoted).collect::<Vec<_>>().join(","))
}

/// A name as a JSON string that cannot close the script element around it. Hidden characters are
/// escaped, because the script shows the name.
fn quoted(text: &str) -> String {
    serde_json::Value::from(&*outside_text::name(text))
        .to_string()
        .replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_end_the_script() {
        let json = quoted("</script><b>\"\\\u{2028}");
        assert!(!json.contains('<') && !json.contains('\u{2028}'), "{json}");
        let back: String = serde_json::from_str(&json).unwrap();
        assert_eq!(back, "</script><b>\"\\\\u{2028}");
    }

    #[test]
    fn plots_of_like_range_share_a_chart() {
        let plot = |name: &str, strategy: &str, values: [i128; 2]| {
            let mut series = Series::default();
            for (at, value) in values.into_iter().enumerate() {
                series.push(Time(at as i64), value);
            }
            Plot {
                strategy: strategy.to_owned(),
                name: name.to_owned(),
                values: series,
            }
        };
        let plots = [
            plot("fast", "ema", [100, 200]),
            plot("slow", "ema", [120, 180]),
            plot("sign", "ema", [-1, 1]),
            plot("fast", "other", [100, 200]),
        ];
        let names: Vec<Vec<&str>> = plot_groups(&plots)
            .iter()
            .map(|group| group.iter().map(|plot| &*plot.name).collect())
            .collect();
        assert_eq!(names, [vec!["fast", "slow"], vec!["sign"], vec!["fast"]]);
    }
}
