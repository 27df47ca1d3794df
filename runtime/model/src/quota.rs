//! How strategies share a limit of the account, so that one strategy cannot take all of it.
//!
//! Half of the limit is divided into equal shares. A strategy may always use its share, because the
//! others cannot take it. The other half is common: the first one to ask gets it. A tenth of the
//! limit, taken from the common half and divided equally too, is kept for orders that only reduce
//! a position. A small limit may have no room for that part.

/// One limit of the account, divided between strategies. The unit is that of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    limit: i128,
    strategies: i128,
    share: i128,
    for_exits: i128,
}

/// What the strategies use of a limit, together with the order that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaUse {
    /// What the asking strategy would use, with its order.
    pub own: i128,
    /// What the account would use, with this order.
    pub account: i128,
    /// The unused shares of the other strategies: the sum of [`Quota::unused`].
    pub unused_by_others: i128,
    /// Whether the order only reduces a position.
    pub is_exit: bool,
}

impl Quota {
    /// Divides a limit between `strategies`. `least` is the smallest share: what one order uses.
    /// `None` if there are fewer than two strategies, because one alone has everything.
    pub fn new(limit: i128, strategies: usize, least: i128) -> Option<Self> {
        let strategies = i128::try_from(strategies).ok().filter(|count| *count > 1)?;
        let share = (limit / 2 / strategies).max(least);
        let common = (limit - share * strategies).max(0);
        // At most half of the common part: a small limit must leave room for opening orders.
        let for_exits = (limit / 10 / strategies)
            .max(least)
            .min(common / strategies / 2);
        Some(Self {
            limit,
            strategies,
            share,
            for_exits,
        })
    }

    /// Divides an amount of which orders that only reduce a position take nothing, so that nothing is
    /// kept for them. `None` if there are fewer than two strategies.
    pub fn of_amount(limit: i128, strategies: usize) -> Option<Self> {
        let quota = Self::new(limit, strategies, 0)?;
        Some(Self {
            for_exits: 0,
            ..quota
        })
    }

    /// What one strategy may always use.
    pub const fn share(&self) -> i128 {
        self.share
    }

    /// The unused share of a strategy. `own_limit` is its own limit of the same kind: it needs no
    /// more than this.
    pub fn unused(&self, used: i128, own_limit: Option<i128>) -> i128 {
        let share = own_limit.map_or(self.share, |own| own.min(self.share));
        (share - used).max(0)
    }

    /// Whether an order fits although none of the other strategies uses less than it does.
    pub const fn has_plenty(&self, account: i128) -> bool {
        account + (self.share + self.for_exits) * self.strategies <= self.limit
    }

    /// Whether the order may be sent. The caller checks that the account stays within the limit.
    pub const fn admits(&self, usage: &QuotaUse) -> bool {
        let own_part = if usage.is_exit {
            self.share + self.for_exits
        } else {
            self.share
        };
        let kept = usage.unused_by_others + self.for_exits * self.strategies;
        usage.own <= own_part || usage.account + kept <= self.limit
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(limit: i128, strategies: usize) -> (i128, i128) {
        let quota = Quota::new(limit, strategies, 1).unwrap();
        (quota.share, quota.for_exits)
    }

    #[test]
    fn half_is_shared_and_a_tenth_is_for_exits() {
        assert_eq!(Quota::new(200, 1, 1), None);
        assert_eq!(parts(200, 2), (50, 10));
        assert_eq!(parts(200, 10), (10, 2));
        assert_eq!(parts(8, 2), (2, 1));
        assert_eq!(parts(5, 2), (1, 0));
        assert_eq!(parts(3, 2), (1, 0));
        assert_eq!(parts(2, 3), (1, 0), "never below one order");
    }

    /// Strategies that place and end orders one by one.
    struct Orders {
        quota: Quota,
        used: Vec<i128>,
    }

    impl Orders {
        fn usage(&self, strategy: usize, is_exit: bool) -> QuotaUse {
            let others = self.used.iter().enumerate();
            let others = others.filter(|(at, _)| *at != strategy);
            QuotaUse {
                own: self.used[strategy] + 1,
                account: self.used.iter().sum::<i128>() + 1,
                unused_by_others: others.map(|(_, used)| self.quota.unused(*used, None)).sum(),
                is_exit,
            }
        }
    }

    proptest! {
        #[test]
        fn no_strategy_takes_the_share_of_another(
            limit in 0_i128..60,
            count in 2_usize..6,
            steps in prop::collection::vec((0_usize..6, 0_u8..4), 0..300),
        ) {
            let quota = Quota::new(limit, count, 1).unwrap();
            let mut orders = Orders { quota, used: vec![0; count] };
            let divides = limit >= quota.share * quota.strategies;
            for (strategy, kind) in steps {
                let strategy = strategy % count;
                if kind == 0 {
                    orders.used[strategy] = (orders.used[strategy] - 1).max(0);
                    continue;
                }
                let usage = orders.usage(strategy, kind == 1);
                let fits = usage.account <= limit;
                let admitted = fits && quota.admits(&usage);
                if divides && usage.own <= quota.share {
                    prop_assert!(admitted, "refused below its share: {usage:?}");
                }
                if divides && usage.is_exit && usage.own <= quota.share + quota.for_exits {
                    prop_assert!(admitted, "an exit was refused: {usage:?}");
                }
                prop_assert!(admitted || !fits || !quota.has_plenty(usage.account));
                orders.used[strategy] += i128::from(admitted);
                prop_assert!(orders.used.iter().sum::<i128>() <= limit.max(0));
            }
        }
    }
}
