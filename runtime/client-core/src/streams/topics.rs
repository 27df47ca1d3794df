//! The subscriptions of each connection, and their commands.

use windvane_protocol::market_stream::{Command, Feed, Topic};

/// Topics of one SUBSCRIBE, which is then a few kilobytes long.
pub const BATCH: usize = 100;

/// Whether the core interface has the stream of a topic. `tradepro` is the only one
/// (docs/interface/market-data.md#tradepro).
pub const fn is_documented(topic: &Topic) -> bool {
    matches!(
        topic,
        Topic::Of {
            feed: Feed::TradePro,
            ..
        }
    )
}

/// The commands of a connection, each for up to `batch` topics. Other connections use the first
/// `before` ids.
pub fn subscriptions(topics: &[Topic], batch: usize, before: usize) -> Vec<String> {
    let ids = 1 + before as u64..;
    let batches = topics.chunks(batch).zip(ids);
    let messages = batches.map(|(batch, id)| Command::Subscribe(batch.to_vec()).message(id));
    messages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_subscribed_in_batches_with_ids() {
        let topics: Vec<Topic> = (0..250)
            .map(|at| Topic::of(&format!("A{at}USDT"), Feed::TradePro))
            .collect();
        let messages = subscriptions(&topics, BATCH, 0);
        assert_eq!(messages.len(), 3);
        assert!(messages[0].starts_with(
            r#"{"method":"SUBSCRIBE","params":["a0usdt@tradepro","a1usdt@tradepro","#
        ));
        assert!(messages[2].ends_with(r#""a249usdt@tradepro"],"id":3}"#));
    }
}
