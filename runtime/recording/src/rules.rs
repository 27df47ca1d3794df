//! The rules of an instrument. They come from the configuration, from exchange information in the
//! recording, or are inferred from its prices and quantities, in this order.

use windvane_model::Instrument;
use windvane_model::decimal::Decimal;
use windvane_protocol::exchange_info::{self, ExchangeInfoError};
use windvane_protocol::symbol_rules::{LotRule, PriceRule, RulesError};
use windvane_protocol::{Assets, SymbolRules};

use super::Survey;
use windvane_config::{InstrumentName, InstrumentRules};

/// The source of an instrument's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RulesSource {
    /// `[[instrument]]`. Rules that it leaves out come from exchange information, if there is any.
    Configured,
    /// An exchange information line of the recording.
    ExchangeInfo,
    /// The greatest common divisors of recorded prices and quantities.
    Inferred,
}

impl RulesSource {
    /// The common source of all `sources`, or `mixed`.
    pub fn of_all(sources: impl IntoIterator<Item = Self>) -> &'static str {
        let mut sources = sources.into_iter();
        let Some(first) = sources.next() else {
            return "none";
        };
        if sources.all(|source| source == first) {
            first.as_str()
        } else {
            "mixed"
        }
    }

    /// The name in summaries: `configured`, `exchange-info` or `inferred`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::ExchangeInfo => "exchange-info",
            Self::Inferred => "inferred",
        }
    }
}

impl std::fmt::Display for RulesSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an instrument has no rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The instrument is not in any recording.
    #[error(
        "{name} is in no recording{}; add a recording of it to backtest.data",
        known(.recorded)
    )]
    Unknown {
        /// The instrument.
        name: InstrumentName,
        /// The recorded instruments.
        recorded: Vec<String>,
    },
    /// The recording contains the instrument, but no price or no quantity of it.
    #[error("{0} has no prices in the recording; set its tick and step in [[instrument]]")]
    NoPrices(InstrumentName),
    /// The base and quote assets are not known.
    #[error("{0} does not end in a known quote asset; set its base and quote in [[instrument]]")]
    Assets(InstrumentName),
    /// The exchange information line is invalid.
    #[error(transparent)]
    ExchangeInfo(#[from] ExchangeInfoError),
    /// The rules do not fit the engine's scales.
    #[error(transparent)]
    Rules(#[from] RulesError),
}

fn known(recorded: &[String]) -> String {
    if recorded.is_empty() {
        return String::new();
    }
    format!(" (recorded: {})", recorded.join(", "))
}

/// Known quote assets at the end of symbols. A longer one comes before a shorter one that is its
/// ending.
const QUOTES: [&str; 22] = [
    "FDUSD", "USDT", "USDC", "BUSD", "TUSD", "USDP", "USDD", "USD1", "USDF", "DAI", "EUR", "GBP",
    "TRY", "BRL", "JPY", "AUD", "USD", "BTC", "ETH", "BNB", "SOL", "XRP",
];

/// Splits a symbol into base and quote, by the known quote asset at its end.
pub fn split_symbol(symbol: &str) -> Option<(&str, &str)> {
    // `BTCUSDT_240927`: the part after the underscore is the delivery date.
    let pair = symbol.split('_').next().unwrap_or(symbol);
    QUOTES.iter().find_map(|quote| {
        let base = pair.strip_suffix(quote)?;
        (!base.is_empty()).then_some((base, *quote))
    })
}

/// The rules of `name`, from the best available source.
///
/// # Errors
/// [`ResolveError`] names the missing rule and where to set it.
pub fn resolve_instrument(
    name: &InstrumentName,
    configured: Option<&InstrumentRules>,
    surveys: &[&Survey],
    assets: &mut Assets,
) -> Result<(Instrument, RulesSource), ResolveError> {
    let recorded = |survey: &&Survey| survey.instrument(name.surface, &name.symbol).cloned();
    let found: Vec<_> = surveys.iter().filter_map(recorded).collect();
    let entry = found
        .iter()
        .find_map(|survey| survey.exchange_info.as_deref());
    let mut rules = match entry {
        Some(entry) => exchange_info::symbol_rules(entry)?,
        None => named(name, configured)?,
    };
    let steps = |step: fn(&super::InstrumentSurvey) -> Decimal| {
        found.iter().map(step).fold(Decimal::ZERO, divisor)
    };
    let (price_step, qty_step) = (steps(|s| s.price_step), steps(|s| s.qty_step));
    let source = if let Some(configured) = configured {
        configure(&mut rules, configured);
        RulesSource::Configured
    } else if entry.is_some() {
        RulesSource::ExchangeInfo
    } else if found.is_empty() {
        let all = surveys.iter().flat_map(|survey| &survey.instruments);
        return Err(ResolveError::Unknown {
            name: name.clone(),
            recorded: all.map(super::InstrumentSurvey::name).collect(),
        });
    } else {
        infer(&mut rules, name, price_step, qty_step)?;
        RulesSource::Inferred
    };
    let instrument = rules.instrument_for(price_step, qty_step, assets)?;
    Ok((instrument, source))
}

/// Rules with only the name and the assets.
fn named(
    name: &InstrumentName,
    configured: Option<&InstrumentRules>,
) -> Result<SymbolRules, ResolveError> {
    let split = split_symbol(&name.symbol);
    let base = configured
        .and_then(|rules| rules.base.as_deref())
        .or(split.map(|(base, _)| base));
    let quote = configured
        .and_then(|rules| rules.quote.as_deref())
        .or(split.map(|(_, quote)| quote));
    let (Some(base), Some(quote)) = (base, quote) else {
        return Err(ResolveError::Assets(name.clone()));
    };
    Ok(SymbolRules::unknown(
        name.surface,
        &name.symbol,
        base,
        quote,
    ))
}

fn configure(rules: &mut SymbolRules, configured: &InstrumentRules) {
    if let Some(base) = &configured.base {
        rules.base.clone_from(base);
    }
    if let Some(quote) = &configured.quote {
        rules.quote.clone_from(quote);
    }
    let before = rules.price.unwrap_or_default();
    rules.price = Some(PriceRule {
        min: configured.min_price.unwrap_or(before.min),
        max: configured.max_price.unwrap_or(before.max),
        tick: configured.tick,
    });
    let lot = |before: Option<LotRule>, max: Option<Decimal>| {
        let before = before.unwrap_or_default();
        Some(LotRule {
            min: configured.min_qty.unwrap_or(before.min),
            max: max.unwrap_or(before.max),
            step: configured.step,
        })
    };
    rules.lot_size = lot(rules.lot_size, configured.max_qty);
    let market_max = configured.max_market_qty.or(configured.max_qty);
    rules.market_lot_size = lot(rules.market_lot_size, market_max);
    rules.min_notional = configured.min_notional.or(rules.min_notional);
    rules.max_num_orders = configured.max_num_orders.or(rules.max_num_orders);
}

/// Sets the tick and the step, and the step as the smallest quantity. It sets no other limits.
fn infer(
    rules: &mut SymbolRules,
    name: &InstrumentName,
    tick: Decimal,
    step: Decimal,
) -> Result<(), ResolveError> {
    if tick.is_zero() || step.is_zero() {
        return Err(ResolveError::NoPrices(name.clone()));
    }
    rules.price = Some(PriceRule {
        tick,
        ..PriceRule::default()
    });
    let lot = Some(LotRule {
        min: step,
        max: Decimal::ZERO,
        step,
    });
    (rules.lot_size, rules.market_lot_size) = (lot, lot);
    Ok(())
}

/// Greatest common divisor of two steps. 0 means "unknown".
fn divisor(mut a: Decimal, mut b: Decimal) -> Decimal {
    while !b.is_zero() {
        (a, b) = (b, a % b);
    }
    a.normalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstrumentSurvey;

    fn name(text: &str) -> InstrumentName {
        InstrumentName::parse(text).unwrap()
    }

    fn survey(entry: Option<&str>) -> Survey {
        let name = name("futures:BTCUSDT");
        let mut known = InstrumentSurvey::new(name.surface, &name.symbol);
        known.price_step = Decimal::new(10, 2);
        known.qty_step = Decimal::new(1, 3);
        known.exchange_info = entry.map(str::to_owned);
        Survey {
            instruments: vec![known],
            ..Survey::default()
        }
    }

    fn configured(text: &str) -> InstrumentRules {
        toml::from_str(text).unwrap()
    }

    const ENTRY: &str = r#"{"symbol":"BTCUSDT","contractType":"PERPETUAL","status":"TRADING",
        "baseAsset":"XBT","quoteAsset":"USD","marginAsset":"USDT","filters":[
        {"filterType":"PRICE_FILTER","minPrice":"1","maxPrice":"1000","tickSize":"0.5"},
        {"filterType":"LOT_SIZE","minQty":"0.01","maxQty":"7","stepSize":"0.01"},
        {"filterType":"MIN_NOTIONAL","notional":"5"}]}"#;

    #[test]
    fn configuration_completes_the_rules_of_the_best_source() {
        let futures = name("futures:BTCUSDT");
        let mut assets = Assets::default();
        let (plain, informed) = (survey(None), survey(Some(ENTRY)));
        let mut resolve = |rules: Option<&InstrumentRules>, survey: &Survey| {
            resolve_instrument(&futures, rules, &[survey], &mut assets).unwrap()
        };
        let (inferred, source) = resolve(None, &plain);
        assert_eq!(
            (source.as_str(), inferred.price_scale, inferred.qty_scale),
            ("inferred", 1, 3)
        );
        assert_eq!(inferred.filters.price.unwrap().tick_size, 1);
        assert_eq!(inferred.filters.min_notional, None);

        let (given, source) = resolve(None, &informed);
        assert_eq!(source, RulesSource::ExchangeInfo);
        assert_eq!(given.filters.price.unwrap().tick_size, 5);

        let rules = configured("name = \"futures:BTCUSDT\"\ntick = \"0.25\"\nstep = \"0.1\"");
        let (both, source) = resolve(Some(&rules), &informed);
        assert_eq!((source, both.price_scale), (RulesSource::Configured, 2));
        assert_eq!(both.filters.price.unwrap().max_price, 100_000);
        let lot = both.filters.lot_size.unwrap();
        // Quantities are recorded with three decimals, so the scale is finer than the configured
        // step.
        assert_eq!(both.qty_scale, 3);
        assert_eq!((lot.min_qty, lot.max_qty, lot.step_size), (10, 7000, 100));
        assert_eq!(both.filters.min_notional, given.filters.min_notional);
        assert_eq!(
            (assets.names()[0].as_str(), assets.name(both.base)),
            ("BTC", "XBT")
        );
    }

    #[test]
    fn missing_rules_are_named() {
        let resolve = |text: &str, survey: &Survey| {
            resolve_instrument(&name(text), None, &[survey], &mut Assets::default())
                .unwrap_err()
                .to_string()
        };
        let mut plain = survey(None);
        assert_eq!(
            resolve("spot:BTCUSDT", &plain),
            "spot:BTCUSDT is in no recording (recorded: futures:BTCUSDT); add a recording of it to \
             backtest.data"
        );
        assert!(resolve("spot:ABCXYZ", &plain).contains("set its base and quote"));
        plain.instruments[0].price_step = Decimal::ZERO;
        assert!(resolve("futures:BTCUSDT", &plain).contains("set its tick and step"));
    }

    #[test]
    fn symbols_split_at_their_quote_asset() {
        assert_eq!(split_symbol("BTCUSDT"), Some(("BTC", "USDT")));
        assert_eq!(split_symbol("ETHBTC"), Some(("ETH", "BTC")));
        assert_eq!(split_symbol("BTCUSD_240927"), Some(("BTC", "USD")));
        assert_eq!(split_symbol("BNBFDUSD"), Some(("BNB", "FDUSD")));
        assert_eq!((split_symbol("USDT"), split_symbol("ABCXYZ")), (None, None));
    }
}
