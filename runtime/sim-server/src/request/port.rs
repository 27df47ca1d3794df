//! The ports of the server.

use windvane_protocol::route::Surface;

/// The purpose of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Spot: REST and WebSocket.
    Spot,
    /// Futures, and also the paths of the Chain API and the info endpoint.
    Futures,
    /// Chain API.
    Chain,
    /// JSON-RPC info endpoint.
    Rpc,
    /// Fault switches and the exact state.
    Control,
}

impl Port {
    /// All ports, in the order of their numbers.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Spot,
        Self::Futures,
        Self::Chain,
        Self::Rpc,
        Self::Control,
    ];

    /// The surfaces that the port serves. The futures port also serves the Chain API and the info
    /// endpoint: their paths differ, and configurations often use one base address for all three.
    pub(crate) const fn surfaces(self) -> &'static [Surface] {
        match self {
            Self::Spot => &[Surface::Spot],
            Self::Futures => &[Surface::Futures, Surface::Chain, Surface::Rpc],
            Self::Chain => &[Surface::Chain],
            Self::Rpc => &[Surface::Rpc],
            Self::Control => &[],
        }
    }

    /// The surface whose weight counter is used for a request without a route.
    pub(crate) fn surface(self) -> Surface {
        self.surfaces().first().copied().unwrap_or(Surface::Spot)
    }
}
