//! Commands of the public market streams and their responses: `{method, params, id}` and `{result,
//! id}` (docs/interface/market-data.md#stream-commands). Commands need not wait for each other: the
//! ids match responses to commands.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Topic;
use crate::error::VenueError;
use crate::wire::Whole;

/// A command to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `SUBSCRIBE`.
    Subscribe(Vec<Topic>),
    /// `UNSUBSCRIBE`.
    Unsubscribe(Vec<Topic>),
    /// `LIST_SUBSCRIPTIONS`.
    ListSubscriptions,
}

impl Command {
    /// `method`.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Subscribe(_) => "SUBSCRIBE",
            Self::Unsubscribe(_) => "UNSUBSCRIBE",
            Self::ListSubscriptions => "LIST_SUBSCRIPTIONS",
        }
    }

    /// The message to send. It counts as one of the connection's messages per second.
    pub fn message(&self, id: u64) -> String {
        let method = self.method();
        let topics = match self {
            Self::Subscribe(topics) | Self::Unsubscribe(topics) => topics,
            Self::ListSubscriptions => {
                return format!("{{\"method\":\"{method}\",\"id\":{id}}}");
            }
        };
        // A topic contains no quote and no backslash: `Topic` refuses them.
        let topics: Vec<String> = topics.iter().map(|topic| format!("\"{topic}\"")).collect();
        let topics = topics.join(",");
        format!("{{\"method\":\"{method}\",\"params\":[{topics}],\"id\":{id}}}")
    }
}

/// The response to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandAnswer {
    /// `id` of the command; `None` if the command had no id or the id cannot be parsed.
    pub id: Option<i64>,
    /// `result`: the subscribed topics as the venue spells them, empty unless the command listed
    /// them; or the reason why the command was refused.
    pub result: Result<Vec<String>, VenueError>,
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
}

/// Distinguishes `"result":null` from a missing result.
fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Parses a response: `{result, id}`, or one of two undocumented forms, `{error: {code, msg}, id}`
/// and `{code, msg, id}`. `None` for any other frame.
pub(super) fn answer(text: &str) -> Option<CommandAnswer> {
    let raw: Raw<'_> = serde_json::from_str(text).ok()?;
    let id = raw
        .id
        .and_then(|id| serde_json::from_str::<Whole>(id.get()).ok());
    let result = if raw.code.is_some() {
        Err(serde_json::from_str(text).ok()?)
    } else if let Some(error) = raw.error {
        Err(serde_json::from_str(error.get()).ok()?)
    } else {
        Ok(serde_json::from_str(raw.result?.get()).unwrap_or_default())
    };
    Some(CommandAnswer {
        id: id.map(|id| id.0),
        result,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::code;
    use crate::market_stream::Feed;

    #[test]
    fn commands_are_compact_json() {
        let topics = vec![
            Topic::of("BTCUSDT", Feed::TradePro),
            Topic::of("ETHUSDT", Feed::BookTicker),
        ];
        assert_eq!(
            Command::Subscribe(topics.clone()).message(1),
            r#"{"method":"SUBSCRIBE","params":["btcusdt@tradepro","ethusdt@bookTicker"],"id":1}"#
        );
        assert_eq!(
            Command::Unsubscribe(topics[..1].to_vec()).message(312),
            r#"{"method":"UNSUBSCRIBE","params":["btcusdt@tradepro"],"id":312}"#
        );
        assert_eq!(
            Command::ListSubscriptions.message(3),
            r#"{"method":"LIST_SUBSCRIPTIONS","id":3}"#
        );
    }

    #[test]
    fn responses_match_commands_by_id() {
        let done = |id, topics: &[&str]| {
            let topics = topics.iter().map(|&topic| topic.to_owned()).collect();
            Some(CommandAnswer {
                id,
                result: Ok(topics),
            })
        };
        assert_eq!(answer(r#"{"result":null,"id":1}"#), done(Some(1), &[]));
        assert_eq!(answer(r#"{"result":null}"#), done(None, &[]));
        assert_eq!(
            answer(r#"{"result":["a@trade"],"id":"3"}"#),
            done(Some(3), &["a@trade"])
        );
        assert_eq!(answer(r#"{"e":"kline"}"#), None);
        for text in [
            r#"{"error":{"code":-1121,"msg":"m"},"id":4}"#,
            r#"{"code":"-1121","msg":"m","id":4}"#,
        ] {
            let refused = answer(text).unwrap();
            assert_eq!(refused.id, Some(4));
            assert_eq!(refused.result.unwrap_err().row(), Some(&code::BAD_SYMBOL));
        }
    }
}
