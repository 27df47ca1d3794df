//! One TLS configuration for REST and WebSocket: rustls with the ring provider, named here so
//! that no other crate's choice of a default decides it, and the roots of the web's public key
//! infrastructure that are built in (`webpki-roots`): the same trust on every machine, in an
//! empty container too, and nothing that is installed on the machine can add to it. A venue behind
//! an authority of one's own needs that authority's certificate in the settings.
//!
//! What may never enter here: a way to connect without a check of the certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The certificate of an authority that is trusted beside those built in.
pub type Root = rustls::pki_types::CertificateDer<'static>;

/// Certificates that cannot be had from a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootsError {
    /// The file cannot be read, or is no PEM.
    #[error("{}: {reason}; check the path, and that it is a PEM file", .path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There is no certificate in it.
    #[error("{} holds no certificate: a PEM block that begins with BEGIN CERTIFICATE is expected", .path.display())]
    Empty {
        /// File.
        path: PathBuf,
    },
}

/// The certificates in a PEM file, for [`crate::Settings::tls_roots`].
///
/// ```no_run
/// # fn trust(mut settings: windvane_client::Settings) -> Result<(), Box<dyn std::error::Error>> {
/// settings.tls_roots = windvane_client::tls::roots_file("authority.pem".as_ref())?;
/// let client = windvane_client::Client::new(settings)?;
/// # Ok(())
/// # }
/// ```
pub fn roots_file(path: &Path) -> Result<Vec<Root>, RootsError> {
    let refuse = |error: rustls::pki_types::pem::Error| RootsError::Read {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let certificates = Root::pem_file_iter(path).map_err(refuse)?;
    let roots: Vec<Root> = certificates.collect::<Result<_, _>>().map_err(refuse)?;
    if roots.is_empty() {
        return Err(RootsError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(roots)
}

/// The configuration; it fails if a root is no certificate of an authority, or the provider lacks
/// the protocol versions asked for.
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
