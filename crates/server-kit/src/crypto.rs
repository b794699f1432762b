//! Which implementation of cryptography TLS uses: `ring`, everywhere.

use rustls::crypto::ring;

/// Chooses it for the process, once; needed before anything speaks TLS, or makes an HTTP client.
pub fn install() {
    // Fails only if it was chosen before.
    let _ = ring::default_provider().install_default();
}
