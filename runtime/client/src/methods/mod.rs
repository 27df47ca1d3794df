//! One typed method per route, by surface: `client.spot().new_order(&order).await`. Each is one
//! call of [`Client::send`] with the request type of its route, and nothing else.

use crate::client::Client;

/// Routes of the spot surface (spec 1).
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    pub(crate) client: &'a Client,
}

/// Routes of the futures surface (spec 2).
#[derive(Clone, Copy, Debug)]
pub struct Futures<'a> {
    pub(crate) client: &'a Client,
}

/// Routes of the chain API (spec 3).
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a> {
    pub(crate) client: &'a Client,
}

/// Methods of the JSON-RPC info endpoint (spec 3).
#[derive(Clone, Copy, Debug)]
pub struct Info<'a> {
    pub(crate) client: &'a Client,
}

impl Client {
    /// The spot surface.
    pub const fn spot(&self) -> Spot<'_> {
        Spot { client: self }
    }

    /// The futures surface.
    pub const fn futures(&self) -> Futures<'_> {
        Futures { client: self }
    }

    /// The chain API.
    pub const fn chain(&self) -> Chain<'_> {
        Chain { client: self }
    }

    /// The JSON-RPC info endpoint.
    pub const fn info(&self) -> Info<'_> {
        Info { client: self }
    }
}

impl<'a> Spot<'a> {
    /// The client that sends.
    pub const fn client(&self) -> &'a Client {
        self.client
    }
}

impl<'a> Futures<'a> {
    /// The client that sends.
    pub const fn client(&self) -> &'a Client {
        self.client
    }
}

impl<'a> Chain<'a> {
    /// The client that sends.
    pub const fn client(&self) -> &'a Client {
        self.client
    }
}

impl<'a> Info<'a> {
    /// The client that sends.
    pub const fn client(&self) -> &'a Client {
        self.client
    }
}
