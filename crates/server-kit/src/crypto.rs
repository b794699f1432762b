//! The cryptography of TLS: `ring`, everywhere.

use rustls::crypto::ring;

/// Installs it for the process. Needed before any TLS or HTTP client.
pub fn install() {
    // Fails only if a provider is installed already.
    let _ = ring::default_provider().install_default();
}
