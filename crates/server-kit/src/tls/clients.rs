//! Trusted authorities of client certificates. Like the listener's certificate they can be replaced while
//! connections are accepted.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context as _, ensure};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

#[derive(Debug)]
pub(super) struct ClientAuthorities {
    pub(super) file: PathBuf,
    current: RwLock<Arc<dyn ClientCertVerifier>>,
}

impl ClientAuthorities {
    /// Trusts only the authorities in the file.
    ///
    /// # Errors
    /// There are none, or one of them is invalid.
    pub(super) fn new(file: &Path, pem: &[u8]) -> anyhow::Result<Self> {
        Ok(Self {
            file: file.to_owned(),
            current: RwLock::new(verifier(file, pem)?),
        })
    }

    /// Replaces the authorities. Existing connections stay.
    ///
    /// # Errors
    /// Why they are invalid: nothing has changed then.
    pub(super) fn replace(&self, pem: &[u8]) -> anyhow::Result<()> {
        let next = verifier(&self.file, pem)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    fn current(&self) -> Arc<dyn ClientCertVerifier> {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn verifier(file: &Path, pem: &[u8]) -> anyhow::Result<Arc<dyn ClientCertVerifier>> {
    let unusable = || format!("cannot use {}", file.display());
    let roots = Arc::new(authorities(pem).with_context(unusable)?);
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
    verifier.with_context(unusable)
}

/// Parses authorities as PEM.
///
/// # Errors
/// There are none, or one of them is invalid.
pub fn authorities(pem: &[u8]) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for (certificate, number) in CertificateDer::pem_slice_iter(pem).zip(1_u32..) {
        let broken = || format!("certificate {number} is broken");
        let added = roots.add(certificate.with_context(broken)?);
        added.with_context(broken)?;
    }
    ensure!(!roots.is_empty(), "it has no PEM certificates");
    Ok(roots)
}

impl ClientCertVerifier for ClientAuthorities {
    /// Empty: the names of the authorities are not disclosed to clients without a certificate, and they may
    /// change.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let current = self.current();
        current.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.current().verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.current().verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.current().supported_verify_schemes()
    }
}
