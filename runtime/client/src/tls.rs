//! One TLS configuration for REST and WebSocket: rustls with the ring provider. The provider is
//! named here, so that another crate cannot change the default. The trusted roots are the built-in
//! ones of the web's public key infrastructure (`webpki-roots`). So trust is the same on every
//! machine, even in an empty container, and certificates that are installed on the machine do not
//! extend it. For a venue with a private authority, put that authority's certificate into the
//! settings.
//!
//! This module must never offer a connection without a certificate check.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Longest PEM file, bytes. All authorities of the web together have about 200 KiB.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The certificate of an authority that is trusted in addition to the built-in ones.
pub type Root = rustls::pki_types::CertificateDer<'static>;

/// Certificates cannot be loaded from a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootsError {
    /// The file cannot be read, or is not PEM.
    #[error("{}: {reason}; check the path, and that it is a PEM file", .path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The file contains no certificate.
    #[error("{} has no certificate: a PEM block that begins with BEGIN CERTIFICATE is expected", .path.display())]
    Empty {
        /// File.
        path: PathBuf,
    },
}

/// Reads the certificates in a PEM file, for [`crate::Settings::tls_roots`].
///
/// ```no_run
/// # fn trust(mut settings: windvane_client::Settings) -> Result<(), Box<dyn std::error::Error>> {
/// settings.tls_roots = windvane_client::tls::roots_file("authority.pem".as_ref())?;
/// let client = windvane_client::Client::new(settings)?;
/// # Ok(())
/// # }
/// ```
pub fn roots_file(path: &Path) -> Result<Vec<Root>, RootsError> {
    let refuse = |reason: String| RootsError::Read {
        path: path.to_owned(),
        reason,
    };
    let pem = windvane_files::read_bounded(path, FILE_BYTES_MAX);
    let pem = pem.map_err(|error| refuse(error.to_string()))?;
    let certificates = Root::pem_slice_iter(&pem).collect::<Result<_, _>>();
    let roots: Vec<Root> =
        certificates.map_err(|error: rustls::pki_types::pem::Error| refuse(error.to_string()))?;
    if roots.is_empty() {
        return Err(RootsError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(roots)
}

/// The TLS configuration. It fails if a root is not an authority's certificate, or if the provider
/// does not support the requested protocol versions.
pub(crate) fn config(own: &[Root]) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    for root in own {
        roots.add(root.clone())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
