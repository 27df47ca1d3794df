//! One TLS configuration for REST and WebSocket: rustls with the ring provider, named here so
//! that no other crate's choice of a default decides it, and the roots of the web's public key
//! infrastructure that are built in (`webpki-roots`): the same trust on every machine, in an
//! empty container too, and nothing that is installed on the machine can add to it.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

/// The configuration; it fails only if the provider lacks the protocol versions asked for.
pub(crate) fn config() -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
