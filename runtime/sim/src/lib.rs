//! The simulated venue, pure: matching, queues, latency, margin.
