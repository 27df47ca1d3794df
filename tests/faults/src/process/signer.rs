//! A signer process beside the run. It signs requests after a delay, and never answers some of
//! them.
//!
//! The content of requests must not matter here: it signs everything that it gets.

use std::collections::VecDeque;

use windvane_client_core::gateway::{Gateway, Unsigned};
use windvane_config::Config;
use windvane_live::exchange;
use windvane_session::{Exchange, Signing};

use crate::witness::RequestId;

use super::MS;

/// How the calls of a life are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignerTerms {
    /// Delay of a separate signer, nanoseconds; `None` if the run signs by itself.
    pub delay_ns: Option<i64>,
    /// One call in this many is never answered; 0 means that all are answered.
    pub silent_every: u64,
}

impl SignerTerms {
    /// The signer of the life with this seed: one life in four has a separate signer. It is
    /// computed instead of drawn, so that it changes no other draw.
    pub fn of(seed: u64) -> Self {
        const DELAYS_NS: [i64; 4] = [MS / 5, MS, 20 * MS, 300 * MS];
        let is_elsewhere = seed % 4 == 1;
        let nth = usize::try_from(seed / 4 % 4).unwrap_or(0);
        Self {
            delay_ns: is_elsewhere.then(|| DELAYS_NS[nth]),
            silent_every: if seed / 16 % 2 == 1 { 61 } else { 0 },
        }
    }

    /// Whether some calls are never answered.
    pub const fn is_silent(self) -> bool {
        self.delay_ns.is_some() && self.silent_every > 0
    }

    /// The exchange of a process that sends its calls through this gateway.
    pub fn exchange(self, config: &Config, gateway: Gateway) -> Box<dyn Exchange> {
        let signing = match self.delay_ns {
            Some(_) => Signing::Elsewhere,
            None => Signing::Here,
        };
        exchange::signed(config, gateway, signing)
    }
}

/// The signer of one process.
#[derive(Debug)]
pub struct Signer {
    terms: SignerTerms,
    signed: u64,
    waiting: VecDeque<(i64, RequestId, Unsigned)>,
}

impl Signer {
    /// A signer without calls.
    pub const fn new(terms: SignerTerms) -> Self {
        Self {
            terms,
            signed: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Takes a call for signing.
    pub fn take(&mut self, now_ns: i64, id: RequestId, unsigned: Unsigned) {
        self.signed += 1;
        let every = self.terms.silent_every;
        if every > 0 && self.signed.is_multiple_of(every) {
            return;
        }
        let due_ns = now_ns + self.terms.delay_ns.unwrap_or(0);
        self.waiting.push_back((due_ns, id, unsigned));
    }

    /// When the next signature is ready.
    pub fn due_ns(&self) -> Option<i64> {
        let (due_ns, ..) = self.waiting.front()?;
        Some(*due_ns)
    }

    /// The next call whose signature is ready by now.
    pub fn signed(&mut self, now_ns: i64) -> Option<(RequestId, Unsigned)> {
        self.waiting
            .pop_front_if(|(due_ns, ..)| *due_ns <= now_ns)
            .map(|(_, id, unsigned)| (id, unsigned))
    }
}
