//! Choices inside the matching engine for points that the documents leave open.

use windvane_model::AssetId;

/// The behaviour of a conditional order that triggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Triggered {
    /// It continues as the same order.
    #[default]
    GoesOn,
    /// It expires and continues with a new order id and the same client order id.
    NewNumber,
    /// It expires, and a new order continues with a client order id of the venue.
    NewOrder,
}

/// The choices. Each default is the strict reading of the documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenTerms {
    /// An order whose rest cannot be filled at once ends CANCELED instead of EXPIRED.
    pub rest_is_canceled: bool,
    /// A post-only order that would trade at once is rejected instead of accepted and expired.
    pub post_only_is_refused: bool,
    /// Resting orders that can only close stay open when the position is flat.
    pub closing_orders_stay: bool,
    /// The client order id of a futures order that has ended stays in use.
    pub ended_ids_stay_taken: bool,
    /// The commission of a spot buy is taken in the asset that was bought.
    pub spot_fee_is_received: bool,
    /// The behaviour of a conditional order that triggers.
    pub triggered: Triggered,
    /// Futures commissions are taken in this asset instead of the margin asset.
    pub futures_fee_asset: Option<AssetId>,
}
