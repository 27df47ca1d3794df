//! The budgets of all surfaces of one address, and which of them share one counter of weight at the
//! venue.
//!
//! The documents say that limits are counted per IP. They do not say whether hosts share a counter
//! or whether the info endpoint has its own (docs/interface/limits.md#counters). So every pair of
//! surfaces counts as sharing until headers show otherwise.
//!
//! This module does no IO and does not wait.

use windvane_protocol::error::Limit;
use windvane_protocol::route::Surface;

use super::{Budget, Cost, Denied, Lane, LimitKind, RateLimit, Shares, Used, documented};

/// Number of surfaces.
const SURFACES: usize = Surface::ALL.len();
/// The number of header pairs that must show that two surfaces have separate counters.
const PROOFS: u8 = 3;
/// Two headers further apart than this prove nothing, because the venue's interval may have
/// restarted between them.
const CLOSE_MS: u64 = 10_000;

/// The budgets of one address.
///
/// ```
/// use windvane_client_core::budget::{Budgets, Cost, Lane, Shares};
/// use windvane_protocol::route::Surface;
///
/// let mut budgets = Budgets::new(Shares::default());
/// budgets.acquire(0, Surface::Futures, Lane::Query, &Cost::weight(100))?;
/// // The info endpoint may use the counter of the futures host.
/// let used = budgets.of(Surface::Rpc).weights(0).next();
/// assert_eq!(used, Some((60_000, 100, 2_400)));
/// # Ok::<(), windvane_client_core::budget::Denied>(())
/// ```
#[derive(Clone, Debug)]
pub struct Budgets {
    budgets: [Budget; SURFACES],
    sharing: Sharing,
}

/// The counts when a request was sent, for comparison with its response.
#[derive(Clone, Copy, Debug, Default)]
pub struct Departed {
    answered: [u64; SURFACES],
}

/// Evidence of shared counters, from headers.
#[derive(Clone, Debug, Default)]
struct Sharing {
    /// Weight that was sent so far, and weight whose response arrived, by surface.
    sent: [u64; SURFACES],
    answered: [u64; SURFACES],
    /// The last header of each surface.
    last: [Option<Seen>; SURFACES],
    /// How often headers of the first surface did not count weight that was sent to the second.
    apart: [[u8; SURFACES]; SURFACES],
    /// How often such headers did count it, since the last one that did not.
    together: [[u8; SURFACES]; SURFACES],
}

/// A header, and the weight that was sent to each surface before it arrived.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at_ms: u64,
    used: u32,
    sent: [u64; SURFACES],
}

impl Budgets {
    /// Budgets of which nothing is used, with the limits of the documents.
    pub fn new(shares: Shares) -> Self {
        let mut budgets = Self {
            budgets: Surface::ALL.map(|surface| Budget::new(&documented(surface), shares)),
            sharing: Sharing::default(),
        };
        budgets.take_shared_limits();
        budgets
    }

    /// The budget of a surface.
    pub const fn of(&mut self, surface: Surface) -> &mut Budget {
        &mut self.budgets[surface as usize]
    }

    /// The budget of a surface, read-only.
    pub const fn get(&self, surface: Surface) -> &Budget {
        &self.budgets[surface as usize]
    }

    /// Takes the limits of a surface's exchange information.
    pub fn set_limits(&mut self, surface: Surface, limits: &[RateLimit]) {
        self.of(surface).set_limits(limits);
        self.take_shared_limits();
    }

    /// Whether two surfaces may use one counter of weight.
    pub const fn may_share(&self, one: Surface, other: Surface) -> bool {
        let (one, other) = (one as usize, other as usize);
        self.sharing.apart[one][other] < PROOFS && self.sharing.apart[other][one] < PROOFS
    }

    /// Whether headers showed repeatedly that two surfaces use one counter.
    const fn are_seen_to_share(&self, one: Surface, other: Surface) -> bool {
        self.sharing.together[one as usize][other as usize] >= PROOFS
            && self.sharing.together[other as usize][one as usize] >= PROOFS
    }

    /// Counts a request that is about to be sent, or returns when it may be sent; then it is not
    /// counted.
    ///
    /// # Errors
    /// Why the request must wait.
    pub fn acquire(
        &mut self,
        now_ms: u64,
        surface: Surface,
        lane: Lane,
        cost: &Cost,
    ) -> Result<Departed, Denied> {
        self.of(surface).acquire(now_ms, lane, cost)?;
        for other in Surface::ALL {
            if other != surface && self.may_share(surface, other) {
                self.of(other).count_elsewhere(now_ms, lane, cost.weight);
            }
        }
        self.sharing.sent[surface as usize] += u64::from(cost.weight);
        Ok(Departed {
            answered: self.sharing.answered,
        })
    }

    /// A response arrived with these headers; `departed` is the value that [`Self::acquire`]
    /// returned for its request.
    pub fn answered(
        &mut self,
        now_ms: u64,
        surface: Surface,
        cost: &Cost,
        departed: Departed,
        headers: &[Used],
    ) {
        for used in headers {
            self.of(surface).used(now_ms, used);
        }
        let has_limit = |used: &&Used| {
            let known = self.budgets[surface as usize].has_weight_limit(used.interval_ms);
            used.kind == LimitKind::Weight && known
        };
        let weight = headers.iter().find(has_limit).map(|used| used.used);
        if let Some(used) = weight {
            self.compare(now_ms, surface, cost, departed, used);
        }
        self.sharing.answered[surface as usize] += u64::from(cost.weight);
    }

    /// The venue refused a request because of a limit; see [`Budget::refused`]. A stop applies to
    /// every surface on the same host, and to every surface that has the same counter according to
    /// the headers.
    pub fn refused(
        &mut self,
        now_ms: u64,
        surface: Surface,
        (limit, after_ms): (Limit, Option<u64>),
        cost: &Cost,
        shares_host: impl Fn(Surface) -> bool,
    ) {
        if limit == Limit::Weight && self.of(surface).has_weight_left(now_ms) {
            // Something else uses this counter. It may be another surface, so drop the evidence of
            // separate counters.
            for other in 0..SURFACES {
                self.sharing.apart[surface as usize][other] = 0;
                self.sharing.apart[other][surface as usize] = 0;
            }
            self.take_shared_limits();
        }
        for other in Surface::ALL {
            let stops = shares_host(other) || self.are_seen_to_share(surface, other);
            if other == surface || (limit != Limit::Orders && stops) {
                self.of(other).refused(now_ms, limit, after_ms, cost);
            }
        }
        if limit == Limit::Weight {
            self.of(surface).weight_refused(now_ms);
        }
    }

    /// Compares two headers of a surface that arrived shortly after each other. If the sum grew by
    /// less than the weight that was sent to another surface in between, the two surfaces have
    /// separate counters.
    fn compare(
        &mut self,
        now_ms: u64,
        surface: Surface,
        cost: &Cost,
        departed: Departed,
        used: u32,
    ) {
        let place = surface as usize;
        let seen = Seen {
            at_ms: now_ms,
            used,
            sent: self.sharing.sent,
        };
        let Some(before) = self.sharing.last[place].replace(seen) else {
            return;
        };
        if used < before.used || now_ms > before.at_ms.saturating_add(CLOSE_MS) {
            return;
        }
        let grown = u64::from(used - before.used);
        // Weight that was sent after the first header arrived and answered before the second
        // request was sent.
        let between = |at: usize| departed.answered[at].saturating_sub(before.sent[at]);
        let own = between(place) + u64::from(cost.weight);
        let mut changed = false;
        for other in (0..SURFACES).filter(|other| *other != place) {
            let others = between(other);
            let apart = &mut self.sharing.apart[place][other];
            let together = &mut self.sharing.together[place][other];
            if others > 0 && grown < own + others {
                *apart = apart.saturating_add(1);
                *together = 0;
                changed |= *apart == PROOFS;
            } else if others > 0 && *apart < PROOFS {
                *apart = 0;
                *together = together.saturating_add(1);
            }
        }
        if changed {
            self.take_shared_limits();
        }
    }

    /// The documents state no limits for Chain and the info endpoint. While they may share the
    /// counter of futures, they use its limit.
    fn take_shared_limits(&mut self) {
        let futures = self.of(Surface::Futures).limits();
        for surface in [Surface::Chain, Surface::Rpc] {
            let limits = if self.may_share(surface, Surface::Futures) {
                let weights = futures.iter();
                let weights = weights.filter(|limit| limit.kind == LimitKind::Weight);
                weights.copied().collect()
            } else {
                documented(surface)
            };
            self.of(surface).set_limits(&limits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;

    /// Sends a request to a surface; the response's header reports `used` as the sum.
    fn send(budgets: &mut Budgets, now_ms: u64, surface: Surface, weight: u32, used: u32) {
        let cost = Cost::weight(weight);
        let departed = budgets.acquire(now_ms, surface, Lane::Reconcile, &cost);
        let header = Used {
            kind: LimitKind::Weight,
            interval_ms: MINUTE_MS,
            used,
        };
        let departed = departed.unwrap();
        budgets.answered(now_ms + 10, surface, &cost, departed, &[header]);
    }

    fn used(budgets: &mut Budgets, now_ms: u64, surface: Surface) -> u32 {
        budgets.of(surface).weights(now_ms).next().unwrap().1
    }

    #[test]
    fn surfaces_share_a_counter_until_headers_disagree() {
        let mut budgets = Budgets::new(Shares::default());
        send(&mut budgets, 0, Surface::Futures, 40, 40);
        assert_eq!(used(&mut budgets, 20, Surface::Spot), 40);
        // Each surface has its own counter: the sums of spot never contain the weight of futures.
        for turn in 0..5_u32 {
            let now_ms = u64::from(turn) * 1_000 + 100;
            send(&mut budgets, now_ms, Surface::Spot, 5, 5 * (turn + 1));
            send(
                &mut budgets,
                now_ms + 500,
                Surface::Futures,
                40,
                40 * (turn + 2),
            );
        }
        assert!(!budgets.may_share(Surface::Spot, Surface::Futures));
        let before = used(&mut budgets, 6_000, Surface::Spot);
        send(&mut budgets, 6_000, Surface::Futures, 40, 280);
        assert_eq!(used(&mut budgets, 6_100, Surface::Spot), before);
    }

    #[test]
    fn surfaces_with_one_counter_keep_sharing_it() {
        let mut budgets = Budgets::new(Shares::default());
        let mut sum = 0;
        for turn in 0..20_u64 {
            for surface in [Surface::Futures, Surface::Rpc, Surface::Spot] {
                sum += 7;
                send(&mut budgets, turn * 1_000, surface, 7, sum);
            }
        }
        for other in [Surface::Rpc, Surface::Spot] {
            assert!(budgets.may_share(Surface::Futures, other));
        }
        assert_eq!(used(&mut budgets, 20_000, Surface::Rpc), sum);
        // Both hosts use the same counter, so the stop applies to spot too.
        let refusal = (Limit::Weight, Some(5_000));
        budgets.refused(20_000, Surface::Futures, refusal, &Cost::weight(1), |_| {
            false
        });
        assert!(budgets.of(Surface::Spot).stopped_until(20_001).is_some());
    }

    #[test]
    fn the_info_endpoint_works_while_futures_use_exceeds_1200() {
        let mut budgets = Budgets::new(Shares::default());
        send(&mut budgets, 0, Surface::Futures, 40, 1_440);
        send(&mut budgets, 100, Surface::Rpc, 1, 1_441);
        let again = budgets.acquire(200, Surface::Rpc, Lane::Reconcile, &Cost::weight(1));
        assert!(again.is_ok(), "{again:?}");
    }

    #[test]
    fn a_separate_counter_of_the_info_endpoint_is_detected() {
        let mut budgets = Budgets::new(Shares::default());
        for turn in 0..6_u32 {
            let now_ms = u64::from(turn) * 2_000;
            send(&mut budgets, now_ms, Surface::Futures, 40, 40 * (turn + 1));
            send(&mut budgets, now_ms + 100, Surface::Rpc, 1, turn + 1);
        }
        assert!(!budgets.may_share(Surface::Rpc, Surface::Futures));
        let limit = budgets.of(Surface::Rpc).weights(12_000).next().unwrap().2;
        assert_eq!(limit, 1_200);
    }

    #[test]
    fn an_unexplained_refusal_makes_surfaces_share_again() {
        let mut budgets = Budgets::new(Shares::default());
        for turn in 0..6_u32 {
            let now_ms = u64::from(turn) * 2_000;
            send(&mut budgets, now_ms, Surface::Futures, 40, 40 * (turn + 1));
            send(&mut budgets, now_ms + 100, Surface::Rpc, 1, turn + 1);
        }
        let refusal = (Limit::Weight, Some(5_000));
        budgets.refused(12_000, Surface::Rpc, refusal, &Cost::weight(1), |_| true);
        assert!(budgets.may_share(Surface::Rpc, Surface::Futures));
        assert!(budgets.of(Surface::Futures).stopped_until(12_001).is_some());
    }
}
