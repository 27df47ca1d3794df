//! Ids and time as newtypes, so that the compiler finds an id used in place of another.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Nanoseconds since the Unix epoch, UTC. The engine has no clock; callers pass the time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(pub i64);

impl Time {
    /// The far future: a timer that never fires.
    pub const NEVER: Self = Self(i64::MAX);

    /// Converts milliseconds, the unit of the venue's messages.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }
    /// Whole milliseconds since the epoch.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }
    /// Later by `ns` nanoseconds.
    #[must_use]
    pub const fn plus_ns(self, ns: i64) -> Self {
        Self(self.0.saturating_add(ns))
    }
    /// Later by `ms` milliseconds.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        self.plus_ns(ms.saturating_mul(1_000_000))
    }
}

/// Index of an instrument in the engine's table, in the order of the configuration.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct InstrumentId(pub u16);

/// Index of a strategy in the engine's table, in the order of the configuration.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct StrategyId(pub u16);

/// Index of an asset in the engine's table of asset names.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct AssetId(pub u16);

/// Number of an own order: increases by one with every accepted order of the process, from 1. It is
/// the `<sequence>` of the client order id.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct OrderSeq(pub u64);

/// The venue's order id (`orderId`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct VenueOrderId(pub i64);

/// The venue's trade id (`t` of an execution, `id` of an account trade); unique per instrument.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct TradeId(pub i64);

/// A client order id: 1 to 36 characters of letters, digits, `.`, `:`, `/`, `_`, `-`
/// (docs/interface/orders.md#place-a-futures-order). Stored inline, so that a copy needs no
/// allocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientOrderId {
    bytes: [u8; Self::LEN_MAX],
    len: u8,
}

/// Why a text is not a valid client order id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientOrderIdError {
    /// Empty, or over 36 characters (-4015).
    #[error("a client order id has 1 to 36 characters, not {0}")]
    Length(usize),
    /// A character outside the allowed set (-1100).
    #[error("character {0:?} is not allowed in a client order id (letters, digits and . : / _ -)")]
    Character(char),
}

impl ClientOrderId {
    /// The longest id that the venue accepts (-4015).
    pub const LEN_MAX: usize = 36;

    /// Checks length and characters.
    pub fn new(text: &str) -> Result<Self, ClientOrderIdError> {
        if text.is_empty() || text.len() > Self::LEN_MAX {
            return Err(ClientOrderIdError::Length(text.chars().count()));
        }
        let allowed = |c: &char| c.is_ascii_alphanumeric() || ".:/_-".contains(*c);
        if let Some(bad) = text.chars().find(|c| !allowed(c)) {
            return Err(ClientOrderIdError::Character(bad));
        }
        let mut bytes = [0; Self::LEN_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self {
            bytes,
            len: text.len() as u8,
        })
    }

    /// The client order id of an order as the venue reports it. The venue may report a text that no
    /// client can send (docs/interface/README.md#13-forced-orders). Such a text is replaced by `/`,
    /// its letters and digits, `/` and a hash of the whole text. The result is the same each time,
    /// and it never has the form of an own id.
    pub fn from_venue(text: &str) -> Self {
        /// The space that remains beside two slashes and the longest hash.
        const KEPT: usize = ClientOrderId::LEN_MAX - 2 - 13;
        if let Ok(id) = Self::new(text) {
            return id;
        }
        let mut id = Self {
            bytes: [0; Self::LEN_MAX],
            len: 0,
        };
        id.push(b"/");
        let allowed = text.bytes().filter(u8::is_ascii_alphanumeric);
        for byte in allowed.take(KEPT) {
            id.push(&[byte]);
        }
        id.push(b"/");
        // FNV-1a is enough: the hash only has to be the same on every machine.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        id.push_base36(hash);
        id
    }

    /// A placeholder for an unknown id.
    pub const fn unknown() -> Self {
        let mut bytes = [0; Self::LEN_MAX];
        bytes[0] = b'-';
        Self { bytes, len: 1 }
    }

    /// The id of an own order: `<strategy>.<epoch>.<sequence>`, numbers in base 36.
    ///
    /// It has at most 36 characters: at most 8 for the strategy id, and at most 13 for each 64-bit
    /// number in base 36.
    pub fn own(strategy: &StrategyName, epoch: u64, sequence: OrderSeq) -> Self {
        let mut id = Self {
            bytes: [0; Self::LEN_MAX],
            len: 0,
        };
        id.push(strategy.as_str().as_bytes());
        id.push(b".");
        id.push_base36(epoch);
        id.push(b".");
        id.push_base36(sequence.0);
        id
    }

    /// Splits an own id into strategy, epoch and sequence; `None` if the id does not have that
    /// form.
    pub fn parse_own(&self) -> Option<(&str, u64, OrderSeq)> {
        let text = self.as_str();
        let (name, numbers) = text.split_once('.')?;
        let (epoch, sequence) = numbers.split_once('.')?;
        StrategyName::check(name).then_some(())?;
        Some((
            name,
            parse_base36(epoch)?,
            OrderSeq(parse_base36(sequence)?),
        ))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        // The bytes are always ASCII, so this cannot fail. An empty text would be harmless.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    fn push(&mut self, text: &[u8]) {
        let start = usize::from(self.len);
        self.bytes[start..start + text.len()].copy_from_slice(text);
        self.len += text.len() as u8;
    }

    fn push_base36(&mut self, mut value: u64) {
        let mut digits = [0_u8; 13];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b"0123456789abcdefghijklmnopqrstuvwxyz"[(value % 36) as usize];
            value /= 36;
            if value == 0 {
                break;
            }
        }
        self.push(&digits[at..]);
    }
}

/// Accepts only the form that this program writes: lower case, no sign, no leading zero.
fn parse_base36(text: &str) -> Option<u64> {
    if text.is_empty() || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    text.bytes().try_fold(0_u64, |value, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'z' => byte - b'a' + 10,
            _ => return None,
        };
        value.checked_mul(36)?.checked_add(u64::from(digit))
    })
}

impl std::fmt::Display for ClientOrderId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ClientOrderId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ClientOrderId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        Self::new(text).map_err(serde::de::Error::custom)
    }
}

impl std::fmt::Debug for ClientOrderId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// The id of a strategy: 1 to 8 characters of `a-z 0-9 -`. It is part of every client order id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StrategyName(String);

/// A text is not a valid strategy id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("strategy id {0:?} must have 1 to 8 characters of a-z, 0-9 and -")]
pub struct StrategyNameError(pub String);

impl StrategyName {
    /// Checks length and characters.
    pub fn new(text: &str) -> Result<Self, StrategyNameError> {
        if Self::check(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(StrategyNameError(text.to_owned()))
        }
    }

    fn check(text: &str) -> bool {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        (1..=8).contains(&text.len()) && text.bytes().all(allowed)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_own_id_fits_into_36_characters() {
        let name = StrategyName::new("abcdefgh").unwrap();
        let id = ClientOrderId::own(&name, u64::MAX, OrderSeq(u64::MAX));
        assert_eq!(id.as_str().len(), 36);
        assert!(ClientOrderId::new(id.as_str()).is_ok());
    }

    #[test]
    fn foreign_ids_are_not_own() {
        for text in [
            "autoclose-123",
            "a.b",
            "mm.01.2",
            "mm.-1.2",
            "MM.1.2",
            "mm.1.2.3",
            "mm..1",
        ] {
            assert_eq!(
                ClientOrderId::new(text).unwrap().parse_own(),
                None,
                "{text}"
            );
        }
    }

    #[test]
    fn bad_ids_name_the_rule() {
        assert_eq!(ClientOrderId::new(""), Err(ClientOrderIdError::Length(0)));
        assert_eq!(
            ClientOrderId::new("a b"),
            Err(ClientOrderIdError::Character(' '))
        );
    }

    #[test]
    fn invalid_venue_ids_map_to_distinct_foreign_ids() {
        let long = "mm.1.2".repeat(9);
        let other = format!("{long}x");
        let ids = ["", "mm.1.2 ", "äö", &long, &other].map(ClientOrderId::from_venue);
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(id.parse_own(), None, "{id}");
            assert_eq!(ClientOrderId::new(id.as_str()), Ok(*id));
            assert!(!ids[..n].contains(id), "{id}");
        }
        assert_eq!(ClientOrderId::from_venue("mm.1.2").as_str(), "mm.1.2");
    }

    proptest! {
        #[test]
        fn every_venue_text_maps_to_a_valid_id(text in ".*") {
            let id = ClientOrderId::from_venue(&text);
            prop_assert_eq!(ClientOrderId::new(id.as_str()), Ok(id));
            prop_assert!(id.as_str() == text || id.parse_own().is_none());
        }

        #[test]
        fn own_ids_round_trip(name in "[a-z0-9-]{1,8}", epoch: u64, sequence: u64) {
            let name = StrategyName::new(&name).unwrap();
            let id = ClientOrderId::own(&name, epoch, OrderSeq(sequence));
            prop_assert_eq!(id.parse_own(), Some((name.as_str(), epoch, OrderSeq(sequence))));
        }
    }
}
