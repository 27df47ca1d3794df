//! Conversions between the surfaces of the engine and those of the venue.

use windvane_model::Surface;

/// Converts a surface of the engine to one of the venue.
pub const fn venue_surface(surface: Surface) -> windvane_protocol::route::Surface {
    match surface {
        Surface::Spot => windvane_protocol::route::Surface::Spot,
        Surface::Futures => windvane_protocol::route::Surface::Futures,
    }
}

/// Converts a surface of the venue to one of the engine.
pub(crate) const fn engine_surface(surface: windvane_protocol::route::Surface) -> Surface {
    match surface {
        windvane_protocol::route::Surface::Spot => Surface::Spot,
        _ => Surface::Futures,
    }
}
