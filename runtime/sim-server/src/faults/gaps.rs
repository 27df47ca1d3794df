//! Fault switches that drop public frames.

use super::switch::{Switch, names, wide};

/// Switches that drop public frames. The hub owns them, because the frames pass there.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    switches: Vec<Switch>,
}

impl Gaps {
    /// Whether a frame of a topic is dropped.
    #[inline]
    pub(crate) fn lose(&mut self, surface: windvane_model::Surface, topic: &str) -> bool {
        let mut lost = false;
        for switch in &mut self.switches {
            let target = &switch.target;
            let concerns = target.surface.is_none_or(|wanted| wanted == wide(surface))
                && (target.topic.as_deref()).is_none_or(|wanted| names(wanted, topic));
            lost |= concerns && switch.hit();
        }
        lost
    }

    pub(crate) fn set(&mut self, switch: Switch) {
        self.switches.push(switch);
    }

    /// Keeps the switches for which `keep` is true; returns how many were removed.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Switch) -> bool) -> usize {
        let before = self.switches.len();
        self.switches.retain(keep);
        before - self.switches.len()
    }

    pub(crate) fn switches(&self) -> &[Switch] {
        &self.switches
    }
}
