//! One request and its answer, over a new connection.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::QueryError;
use crate::socket::{self, NotReached};

/// Far more than the size of all orders of an account.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Where an instance listens.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// The socket of this data folder.
    Socket(PathBuf),
    /// A TCP address.
    Tcp(SocketAddr),
}

impl Place {
    /// The name of the server in the `Host` header.
    pub(super) fn host(&self) -> String {
        match self {
            Self::Socket(_) => "localhost".to_owned(),
            Self::Tcp(address) => address.to_string(),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(data_dir) => write!(f, "{}", socket::path(data_dir).display()),
            Self::Tcp(address) => write!(f, "{address}"),
        }
    }
}

/// A request without a response.
pub(super) enum Broken {
    /// No program listens there.
    Nobody,
    /// The program there is not the instance, for this reason.
    Stranger(String),
    /// The listener does not respond in time, like a stopped process.
    Late,
    /// The response is not complete or not HTTP.
    Cut(String),
    /// Another user can change or replace the data folder, or it belongs to another user.
    Folder { data_dir: PathBuf, why: String },
    /// Any other error.
    Other(String),
}

impl Broken {
    pub(super) fn at(self, place: &Place) -> QueryError {
        let what = match self {
            Self::Nobody => {
                return QueryError::NotRunning(format!("no program listens at {place}"));
            }
            Self::Stranger(why) => {
                let at = place.to_string();
                return QueryError::NotThisInstance { at, why };
            }
            Self::Folder { data_dir, why } => return QueryError::Folder { data_dir, why },
            Self::Late => "does not answer".to_owned(),
            Self::Cut(error) => format!("broke the connection: {error}"),
            Self::Other(error) => error,
        };
        let at = place.to_string();
        QueryError::Failed { at, what }
    }
}

impl Broken {
    /// The socket of this data folder was not reached.
    pub(super) fn socket(reached: NotReached, data_dir: &Path) -> Self {
        match reached {
            NotReached::Folder(error) => Self::Folder {
                data_dir: data_dir.to_owned(),
                why: error.about_folder(data_dir),
            },
            NotReached::Absent | NotReached::Stale => Self::Nobody,
            NotReached::Stranger { user } => Self::Stranger(format!(
                "it runs as user {user}, who is not the user of the instance"
            )),
            NotReached::Failed(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Self::Other(
                    "cannot be reached: it belongs to another user; run the command as the user of \
                     the instance, for example with sudo -u windvane"
                        .to_owned(),
                )
            }
            NotReached::Failed(error) => Self::Other(format!("cannot be reached: {error}")),
        }
    }
}

/// Sends a request and waits for its answer, at most for this time.
pub(super) async fn exchange(
    place: &Place,
    request: http::Result<Request<Full<Bytes>>>,
    within: Duration,
) -> Result<Response<Bytes>, Broken> {
    let request = request.map_err(|error| {
        Broken::Other(format!(
            "was not asked, the request cannot be built: {error}"
        ))
    })?;
    let exchanged = async {
        match place {
            Place::Socket(data_dir) => over(connect_socket(data_dir).await?, request).await,
            Place::Tcp(address) => over(connect_tcp(*address).await?, request).await,
        }
    };
    let exchanged = timeout(within, exchanged).await;
    exchanged.unwrap_or(Err(Broken::Late))
}

async fn connect_socket(data_dir: &Path) -> Result<tokio::net::UnixStream, Broken> {
    let connected = socket::connect(data_dir).await;
    connected.map_err(|reached| Broken::socket(reached, data_dir))
}

async fn connect_tcp(address: SocketAddr) -> Result<TcpStream, Broken> {
    TcpStream::connect(address)
        .await
        .map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => Broken::Nobody,
            _ => Broken::Other(format!("cannot be reached: {error}")),
        })
}

async fn over<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, Broken>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let cut = |error: hyper::Error| Broken::Cut(error.to_string());
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(cut)?;
    let answered = async {
        let (head, body) = sender
            .send_request(request)
            .await
            .map_err(cut)?
            .into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| Broken::Cut(error.to_string()))?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    tokio::pin!(answered);
    tokio::select! {
        answer = &mut answered => answer,
        // The response reports how the connection ended.
        _ = connection => answered.await,
    }
}
