//! One WebSocket as a task: it reports incoming events through a callback and takes outgoing
//! messages from a channel. The WebSocket library answers the venue's PINGs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::{IntoClientRequest, uri_mode};
use tokio_tungstenite::tungstenite::error::{TlsError, UrlError};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::stream::Mode;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async_with_config};
use windvane_client_core::streams::machine::LinkId;

use windvane_protocol::route::Surface;

use crate::client::Client;

use super::bounded::{Bounded, READ_MAX};
use super::received::Received;
use super::start::{self, StreamStartError};

/// Longest message of a stream, bytes. The longest documented ones list all symbols and have less
/// than 1 MiB.
const FRAME_BYTES_MAX: usize = 8 << 20;
/// Bytes that wait to be sent. A venue that sends PINGs and reads no answer must not fill the memory: the
/// library then keeps the answer to the last PING alone.
const WRITE_MAX: usize = 1 << 20;

impl Client {
    /// Opens a WebSocket of a surface at `path`, on a task of the current tokio runtime. `notify`
    /// receives the events in order; it returns `false` when no one listens any more.
    ///
    /// # Errors
    /// The settings have no WebSocket address of the surface.
    pub fn socket<F: Future<Output = bool> + Send + 'static>(
        &self,
        surface: Surface,
        (link, path): (LinkId, &str),
        notify: impl Fn(SocketEvent) -> F + Send + 'static,
    ) -> Result<mpsc::UnboundedSender<SocketCommand>, StreamStartError> {
        let address = start::address_for(self.settings(), surface, path)?;
        let dial = Dial {
            url: format!("{}{path}", address.as_str().trim_end_matches('/')),
            tls: self.tls(),
            within: self.settings().streams.connect_within,
        };
        let (sender, commands) = mpsc::unbounded_channel();
        tokio::spawn(run(link, dial, commands, notify));
        Ok(sender)
    }
}

/// An event on a socket.
#[derive(Debug)]
pub enum SocketEvent {
    /// The connection is open.
    Opened,
    /// The connection was not opened: the reason, and the venue's response if it refused.
    NotOpened(String, Refused),
    /// A frame.
    Text(Received),
    /// A frame that is not text; its length in bytes.
    Binary(usize),
    /// The venue answered a PING.
    Pong,
    /// The connection ended.
    Closed,
}

/// The venue's response to a refused handshake; empty without a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// HTTP status.
    pub status: Option<u16>,
    /// `Retry-After`.
    pub pause: Option<Duration>,
}

/// A command to a socket. Dropping the sender of commands closes the socket.
#[derive(Debug)]
pub enum SocketCommand {
    /// Send a message.
    Send(String),
    /// Send a PING.
    Ping,
}

/// The address to connect to, with TLS configuration and timeout.
#[derive(Clone, Debug)]
pub(super) struct Dial {
    pub(super) url: String,
    pub(super) tls: Arc<rustls::ClientConfig>,
    pub(super) within: Duration,
}

/// Runs until either side closes the socket, or until `notify` reports that no one listens.
pub(super) async fn run<F: Future<Output = bool> + Send>(
    link: LinkId,
    dial: Dial,
    mut commands: mpsc::UnboundedReceiver<SocketCommand>,
    notify: impl Fn(SocketEvent) -> F + Send,
) {
    let mut socket = match tokio::time::timeout(dial.within, connect(&dial)).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(error)) => {
            let not_opened = SocketEvent::NotOpened(error.to_string(), refused(&error));
            notify(not_opened).await;
            return;
        }
        Err(_) => {
            let why = format!("no handshake within {} ms", dial.within.as_millis());
            let not_opened = SocketEvent::NotOpened(why, Refused::default());
            notify(not_opened).await;
            return;
        }
    };
    if !notify(SocketEvent::Opened).await {
        return;
    }
    while let Some(event) = step(link, &mut socket, &mut commands).await {
        let is_closed = matches!(event, SocketEvent::Closed);
        if !notify(event).await || is_closed {
            return;
        }
        // Let each frame be processed before the next one is read. If many arrive together, the
        // first does not wait for the last.
        tokio::task::yield_now().await;
    }
}

type Socket = WebSocketStream<Bounded<MaybeTlsStream<TcpStream>>>;

/// Connects, with TLS for `wss`, and does the handshake. The library's own function has no place
/// for [`Bounded`] above TLS.
async fn connect(dial: &Dial) -> Result<Socket, tungstenite::Error> {
    let request = dial.url.as_str().into_client_request()?;
    let mode = uri_mode(request.uri())?;
    let host = request.uri().host().ok_or(UrlError::NoHostName)?;
    // Without the brackets of an IPv6 address.
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let port = request.uri().port_u16().unwrap_or(match mode {
        Mode::Plain => 80,
        Mode::Tls => 443,
    });
    let tcp = TcpStream::connect((host.as_str(), port)).await?;
    tcp.set_nodelay(true)?;
    let stream = match mode {
        Mode::Plain => MaybeTlsStream::Plain(tcp),
        Mode::Tls => {
            let name = ServerName::try_from(host).map_err(|_| TlsError::InvalidDnsName)?;
            let connector = TlsConnector::from(Arc::clone(&dial.tls));
            MaybeTlsStream::Rustls(connector.connect(name, tcp).await?)
        }
    };
    let limits = WebSocketConfig::default()
        .read_buffer_size(READ_MAX)
        .max_write_buffer_size(WRITE_MAX)
        .max_message_size(Some(FRAME_BYTES_MAX))
        .max_frame_size(Some(FRAME_BYTES_MAX));
    let (socket, _) = client_async_with_config(request, Bounded::new(stream), Some(limits)).await?;
    Ok(socket)
}

/// The next event; `None` when the driver wants the socket closed.
async fn step(
    link: LinkId,
    socket: &mut Socket,
    commands: &mut mpsc::UnboundedReceiver<SocketCommand>,
) -> Option<SocketEvent> {
    loop {
        let command = tokio::select! {
            message = socket.next() => match read(link, message) {
                Some(event) => return Some(event),
                None => continue,
            },
            command = commands.recv() => command,
        };
        let message = match command {
            Some(SocketCommand::Send(text)) => Message::text(text),
            Some(SocketCommand::Ping) => Message::Ping(tungstenite::Bytes::new()),
            None => {
                // The other side may be half open, so do not wait long for its close frame.
                let _ = tokio::time::timeout(Duration::from_secs(1), socket.close(None)).await;
                return None;
            }
        };
        if let Err(error) = socket.send(message).await {
            tracing::debug!(link, %error, "sending on the WebSocket failed");
            return Some(SocketEvent::Closed);
        }
    }
}

fn read(link: LinkId, message: Option<Result<Message, tungstenite::Error>>) -> Option<SocketEvent> {
    match message {
        Some(Ok(Message::Text(text))) => Some(SocketEvent::Text(Received::now(text))),
        Some(Ok(Message::Binary(bytes))) => Some(SocketEvent::Binary(bytes.len())),
        Some(Ok(Message::Pong(_))) => Some(SocketEvent::Pong),
        Some(Ok(Message::Ping(_) | Message::Frame(_))) => None,
        Some(Ok(Message::Close(frame))) => {
            tracing::debug!(link, ?frame, "the venue closed the WebSocket");
            Some(SocketEvent::Closed)
        }
        Some(Err(error)) => {
            tracing::debug!(link, %error, "reading from the WebSocket failed");
            Some(SocketEvent::Closed)
        }
        None => Some(SocketEvent::Closed),
    }
}

fn refused(error: &tungstenite::Error) -> Refused {
    let tungstenite::Error::Http(response) = error else {
        return Refused::default();
    };
    let header = response.headers().get("retry-after");
    let seconds = header.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Refused {
        status: Some(response.status().as_u16()),
        pause: seconds.map(Duration::from_secs),
    }
}
