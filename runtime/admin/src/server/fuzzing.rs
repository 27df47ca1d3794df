//! The server without sockets, for the fuzz target of requests (`runtime/protocol/fuzz`).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use http::Method;
use tokio::io::{AsyncRead, AsyncWrite};

use super::access_control::AccessControl;
use super::connections::connection;
use super::visits::{Arrival, Unknown};
use super::{Served, Settings, Tcp, routes};
use crate::proof::Nonces;
use crate::token::{Token, TokenError};

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Every route of a server with a token.
#[derive(Debug)]
pub struct Connections {
    token: Token,
    nonces: Arc<Nonces>,
    router: Router,
    unknown: Arc<Unknown>,
}

impl Connections {
    /// A server that serves this.
    ///
    /// # Errors
    /// The system gave no random bytes.
    pub fn new(served: Served) -> Result<Self, TokenError> {
        let token = Token::from_text(&hex::encode(crate::token::random::<32>()?), "a new one")?;
        let listen = SocketAddr::new(ADDRESS, 7000);
        let mut settings = Settings::new("/");
        settings.tcp = Some(Tcp::new(listen, token.clone()));
        let nonces = Arc::new(Nonces::new()?);
        let access_control = AccessControl::new(&settings, Some(listen), Arc::clone(&nonces));
        Ok(Self {
            token,
            nonces,
            router: routes::router(settings, served, access_control),
            unknown: Arc::default(),
        })
    }

    /// Serves a connection that came over TCP.
    pub async fn serve_tcp(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        self.serve(stream, Arrival::Tcp(ADDRESS)).await;
    }

    /// Serves a connection that came through the Unix socket.
    pub async fn serve_socket(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        self.serve(stream, Arrival::Socket).await;
    }

    async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        arrival: Arrival,
    ) {
        let visit = self.unknown.arrive(arrival);
        connection(stream, self.router.clone(), visit).await;
    }

    /// A valid `Authorization` header of one request.
    ///
    /// # Errors
    /// The system gave no random bytes.
    pub fn authorization(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<String, TokenError> {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or_default();
        let nonce = self.nonces.issue()?;
        Ok(self.token.authorization(&nonce, &method, path, body))
    }
}
