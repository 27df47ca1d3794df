//! One fault switch: its effect, its target, and how often it applies. This module only parses
//! switches and draws random numbers.

use serde_json::{Map, Value};
use windvane_model::Time;
use windvane_model::random::SplitMix64;
use windvane_protocol::route::Surface;

use super::fields::{FieldError, Fields, required};

/// How a request with an unknown outcome ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownOutcome {
    /// HTTP 503.
    Status503,
    /// -1006.
    UnexpectedResponse,
    /// -1007.
    Timeout,
    /// The connection is cut.
    Cut,
    /// No response, and the connection stays open.
    HalfOpen,
}

/// How a body is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoil {
    /// An HTML page.
    Html,
    /// An empty body.
    Empty,
    /// The first half of the real body.
    Truncated,
}

/// The effect of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The outcome of a request stays unknown.
    Unknown { how: UnknownOutcome, accepted: bool },
    /// Delays before and after the venue acts. Up to `jitter_ms` is added to each.
    Delay {
        before_ms: u64,
        after_ms: u64,
        jitter_ms: u64,
    },
    /// A definite refusal.
    Refuse { status: u16, code: i32, msg: String },
    /// A body that is not a valid response.
    Body {
        spoil: Spoil,
        status: u16,
        accepted: bool,
    },
    /// 429 or 418 for every matching request.
    Ban {
        status: u16,
        retry_after_s: Option<u64>,
    },
    /// The clock is wrong by this many milliseconds.
    Skew { ms: i64 },
    /// A user event is sent late.
    Late { ms: u64, jitter_ms: u64 },
    /// A user event is sent twice.
    Twice { after_ms: u64 },
    /// A user event is never sent.
    Lost,
    /// A user event is sent after the one that follows it.
    Swap { within_ms: u64 },
    /// User events are delayed until the switch ends, and then sent in order or shuffled.
    Stall { shuffle: bool },
    /// Public frames are never sent, which leaves a gap in their numbers.
    Gap,
}

/// The target of a switch. An absent field matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) surface: Option<Surface>,
    /// Name of a route, or a prefix and `*`.
    pub(crate) route: Option<String>,
    pub(crate) account: Option<u16>,
    /// Name of a user event (`e`).
    pub(crate) event: Option<String>,
    /// Topic of a public stream, or a prefix and `*`.
    pub(crate) topic: Option<String>,
}

/// A fault switch.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    pub(crate) id: u64,
    pub(crate) fault: Fault,
    pub(crate) target: Target,
    /// The body of the request that set it.
    pub(crate) sent: Map<String, Value>,
    /// Number of matches that still pass without effect.
    skip: u64,
    /// Number of hits left; `None` means no limit.
    pub(crate) count: Option<u64>,
    /// Probability of a hit, in parts per million.
    probability_ppm: u64,
    /// When it ends; [`Time::NEVER`] by default.
    pub(crate) until: Time,
    pub(crate) hits: u64,
    random: SplitMix64,
}

impl Switch {
    /// Parses a switch.
    ///
    /// # Errors
    /// A field is invalid; the error has the field and the rule.
    pub(crate) fn parse(body: &[u8], id: u64, seed: u64, now: Time) -> Result<Self, FieldError> {
        let mut fields = Fields::parse(body)?;
        let sent = fields.all();
        let target = Target {
            surface: fields.word("surface", SURFACES)?,
            route: fields.text("route")?,
            account: match fields.whole("account")? {
                None => None,
                Some(n) => Some(u16::try_from(n).map_err(|_| FieldError::Malformed {
                    field: "account",
                    value: n.to_string(),
                    rule: "the place of an account in the ready line".into(),
                })?),
            },
            event: fields.text("event")?,
            topic: fields.text("topic")?,
        };
        let skip = fields.whole("skip")?.unwrap_or(0);
        let count = fields.whole("count")?;
        let probability = fields.decimal("probability")?;
        let probability_ppm = match probability {
            None => 1_000_000,
            Some(share) => windvane_model::decimal::rescale(share, 6)
                .and_then(|ppm| u64::try_from(ppm).ok())
                .filter(|ppm| *ppm <= 1_000_000)
                .ok_or_else(|| FieldError::Malformed {
                    field: "probability",
                    value: share.to_string(),
                    rule: "between 0 and 1".into(),
                })?,
        };
        let for_ms = fields.whole("for_ms")?;
        let seed = fields.whole("seed")?.unwrap_or(seed);
        let fault = fault(&mut fields)?;
        fields.finish()?;
        if matches!(fault, Fault::Stall { .. }) && for_ms.is_none() {
            return Err(FieldError::Missing("for_ms"));
        }
        Ok(Self {
            id,
            fault,
            target,
            sent,
            skip,
            count,
            probability_ppm,
            until: for_ms.map_or(Time::NEVER, |ms| {
                now.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX))
            }),
            hits: 0,
            random: SplitMix64::new(seed.wrapping_add(id)),
        })
    }

    /// Whether this match is a hit. The first `skip` matches are not, and the count and the
    /// probability limit the others.
    pub(crate) fn hit(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        if self.count == Some(0) || self.random.below(1_000_000) >= self.probability_ppm {
            return false;
        }
        self.hits += 1;
        if let Some(count) = &mut self.count {
            *count -= 1;
        }
        true
    }

    /// A number below `bound` from the switch's own sequence; 0 for a bound of 0.
    pub(crate) fn draw(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// Whether the switch can have no further effect.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.count == Some(0) || self.until <= now
    }
}

/// Whether a pattern, which is a name or a prefix and `*`, matches this name.
pub(crate) fn names(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    }
}

/// Converts a surface of orders to one of routes.
pub(super) const fn wide(surface: windvane_model::Surface) -> Surface {
    match surface {
        windvane_model::Surface::Spot => Surface::Spot,
        windvane_model::Surface::Futures => Surface::Futures,
    }
}

pub(crate) const SURFACES: &[(&str, Surface)] = &[
    ("spot", Surface::Spot),
    ("futures", Surface::Futures),
    ("chain", Surface::Chain),
    ("rpc", Surface::Rpc),
];

const UNKNOWN_OUTCOMES: &[(&str, UnknownOutcome)] = &[
    ("503", UnknownOutcome::Status503),
    ("-1006", UnknownOutcome::UnexpectedResponse),
    ("-1007", UnknownOutcome::Timeout),
    ("cut", UnknownOutcome::Cut),
    ("half_open", UnknownOutcome::HalfOpen),
];

/// A year.
const SKEW_MS_MAX: i64 = 365 * 24 * 60 * 60 * 1_000;

/// The names of all switches.
const NAMES: &[&str] = &[
    "unknown", "delay", "refuse", "html", "empty", "truncate", "ban", "skew", "late", "twice",
    "lost", "swap", "stall", "gap",
];

fn fault(fields: &mut Fields) -> Result<Fault, FieldError> {
    let name = required("fault", fields.text("fault"))?;
    Ok(match name.as_str() {
        "unknown" => Fault::Unknown {
            how: required("how", fields.word("how", UNKNOWN_OUTCOMES))?,
            accepted: required("accepted", fields.boolean("accepted"))?,
        },
        "delay" => Fault::Delay {
            before_ms: fields.whole("before_ms")?.unwrap_or(0),
            after_ms: fields.whole("after_ms")?.unwrap_or(0),
            jitter_ms: fields.whole("jitter_ms")?.unwrap_or(0),
        },
        "refuse" => Fault::Refuse {
            status: status(fields, 400)?,
            code: required("code", fields.signed("code")).and_then(|code| {
                i32::try_from(code).map_err(|_| FieldError::Malformed {
                    field: "code",
                    value: code.to_string(),
                    rule: "an error code of docs/interface/errors.md".into(),
                })
            })?,
            msg: fields.text("msg")?.unwrap_or_default(),
        },
        "html" => Fault::Body {
            spoil: Spoil::Html,
            status: status(fields, 502)?,
            accepted: fields.boolean("accepted")?.unwrap_or(false),
        },
        "empty" => Fault::Body {
            spoil: Spoil::Empty,
            status: status(fields, 200)?,
            accepted: fields.boolean("accepted")?.unwrap_or(true),
        },
        "truncate" => Fault::Body {
            spoil: Spoil::Truncated,
            status: 200,
            accepted: true,
        },
        "ban" => Fault::Ban {
            status: ban_status(fields)?,
            retry_after_s: fields.whole("retry_after_s")?,
        },
        "skew" => Fault::Skew { ms: skew(fields)? },
        "late" => Fault::Late {
            ms: required("ms", fields.whole("ms"))?,
            jitter_ms: fields.whole("jitter_ms")?.unwrap_or(0),
        },
        "twice" => Fault::Twice {
            after_ms: fields.whole("after_ms")?.unwrap_or(0),
        },
        "lost" => Fault::Lost,
        "swap" => Fault::Swap {
            within_ms: fields.whole("within_ms")?.unwrap_or(1_000),
        },
        "stall" => Fault::Stall {
            shuffle: fields.boolean("shuffle")?.unwrap_or(false),
        },
        "gap" => Fault::Gap,
        _ => {
            return Err(FieldError::Malformed {
                field: "fault",
                value: name,
                rule: format!("one of {}", NAMES.join(", ")),
            });
        }
    })
}

fn skew(fields: &mut Fields) -> Result<i64, FieldError> {
    let ms = required("ms", fields.signed("ms"))?;
    let valid = (-SKEW_MS_MAX..=SKEW_MS_MAX).contains(&ms);
    valid.then_some(ms).ok_or_else(|| FieldError::Malformed {
        field: "ms",
        value: ms.to_string(),
        rule: format!("at most {SKEW_MS_MAX}, a year, to either side"),
    })
}

fn status(fields: &mut Fields, otherwise: u16) -> Result<u16, FieldError> {
    let Some(status) = fields.whole("status")? else {
        return Ok(otherwise);
    };
    let valid = u16::try_from(status)
        .ok()
        .filter(|s| (200..600).contains(s));
    valid.ok_or_else(|| FieldError::Malformed {
        field: "status",
        value: status.to_string(),
        rule: "an HTTP status from 200 to 599".into(),
    })
}

fn ban_status(fields: &mut Fields) -> Result<u16, FieldError> {
    let status = status(fields, 429)?;
    let valid = [418, 429].contains(&status);
    valid
        .then_some(status)
        .ok_or_else(|| FieldError::Malformed {
            field: "status",
            value: status.to_string(),
            rule: "429 or 418".into(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(body: &str) -> Result<Switch, FieldError> {
        Switch::parse(body.as_bytes(), 1, 7, Time(0))
    }

    #[test]
    fn an_error_names_a_misspelt_field() {
        let error = switch(r#"{"fault":"lost","acount":1}"#).unwrap_err();
        assert_eq!(error, FieldError::Unknown("acount".into()));
        let error = switch(r#"{"fault":"unknown","how":"504","accepted":true}"#).unwrap_err();
        assert!(error.to_string().contains("503, -1006"), "{error}");
        assert!(switch(r#"{"fault":"lost","probability":1.5}"#).is_err());
        assert!(switch(r#"{"fault":"stall"}"#).is_err());
    }

    #[test]
    fn a_switch_skips_then_hits_then_ends() {
        let mut switch = switch(r#"{"fault":"lost","skip":2,"count":2}"#).unwrap();
        let hits: Vec<_> = (0..6).map(|_| switch.hit()).collect();
        assert_eq!(hits, [false, false, true, true, false, false]);
        assert!(switch.is_over(Time(0)));
        assert_eq!(switch.hits, 2);
    }

    #[test]
    fn the_same_seed_draws_the_same_hits() {
        let draw = || {
            let mut switch = switch(r#"{"fault":"lost","probability":"0.3"}"#).unwrap();
            (0..1_000).map(|_| switch.hit()).collect::<Vec<_>>()
        };
        let hits = draw();
        assert_eq!(hits, draw());
        let share = hits.iter().filter(|hit| **hit).count();
        assert!((250..350).contains(&share), "{share} of 1,000");
    }

    #[test]
    fn a_pattern_with_a_star_matches_by_prefix() {
        assert!(names("futures.*", "futures.new_order"));
        assert!(names("futures.new_order", "futures.new_order"));
        assert!(!names("futures.new", "futures.new_order"));
    }
}
