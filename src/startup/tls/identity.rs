//! What a listener proves itself with: its certificate and key, and the files they come from.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use crate::config::Tls;
use crate::files;

/// Most bytes of a file that are read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The certificate of a listener. It may be replaced while connections are accepted.
#[derive(Debug)]
pub(super) struct Identity {
    /// Which listener, in metrics and the log.
    pub(super) listener: &'static str,
    cert_file: PathBuf,
    key_file: PathBuf,
    current: RwLock<InUse>,
}

/// What connections are accepted with.
#[derive(Debug)]
struct InUse {
    key: Arc<CertifiedKey>,
    /// Since 1970.
    expires_at: Duration,
}

/// What both files hold: the certificate and what signed it, the key.
pub(super) type Texts = (Vec<u8>, Vec<u8>);

impl Identity {
    /// Reads the pair that the settings at `path` name. Gives what the files held besides.
    ///
    /// # Errors
    ///
    /// The pair is not named, cannot be read, or does not fit together.
    pub(super) fn load(
        listener: &'static str,
        path: &str,
        tls: &Tls,
    ) -> anyhow::Result<(Self, Texts)> {
        for (name, file) in [("cert_file", &tls.cert_file), ("key_file", &tls.key_file)] {
            if file.as_os_str().is_empty() {
                bail!("{path}.enabled is true, but {path}.{name} is not set");
            }
        }
        let read_as = |name: &str, file: &Path| {
            read(file).with_context(|| format!("{path}.{name}: cannot read {}", file.display()))
        };
        let texts = (
            read_as("cert_file", &tls.cert_file)?,
            read_as("key_file", &tls.key_file)?,
        );
        let in_use = pair(&texts).with_context(|| {
            format!(
                "{path}: cannot use {} with {}",
                tls.cert_file.display(),
                tls.key_file.display()
            )
        })?;
        let identity = Self {
            listener,
            cert_file: tls.cert_file.clone(),
            key_file: tls.key_file.clone(),
            current: RwLock::new(in_use),
        };
        Ok((identity, texts))
    }

    /// What the files hold now.
    ///
    /// # Errors
    ///
    /// Which of them cannot be read, and why.
    pub(super) fn texts(&self) -> Result<Texts, String> {
        let read = |file: &Path| {
            read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
        };
        Ok((read(&self.cert_file)?, read(&self.key_file)?))
    }

    /// Accepts connections with this pair from now on.
    ///
    /// # Errors
    ///
    /// Why it is none: nothing has changed then.
    pub(super) fn replace(&self, texts: &Texts) -> Result<(), String> {
        let in_use = pair(texts).map_err(|error| {
            format!(
                "{} does not go with {}: {error:#}",
                self.cert_file.display(),
                self.key_file.display()
            )
        })?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = in_use;
        Ok(())
    }

    /// When the certificate in use expires, since 1970.
    pub(super) fn expires_at(&self) -> Duration {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.expires_at
    }
}

impl ResolvesServerCert for Identity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(current.key.clone())
    }
}

/// A certificate with its key.
fn pair((certificates, key): &Texts) -> anyhow::Result<InUse> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
    let chain = chain.context("the certificate is no PEM")?;
    let Some(first) = chain.first() else {
        bail!("there is no certificate in the file");
    };
    let certificate = Certificate::from_der(first).context("the certificate cannot be read")?;
    let expires_at = certificate.tbs_certificate.validity.not_after;
    let key = PrivateKeyDer::from_pem_slice(key).context("there is no private key in the file")?;
    let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
        .context("the key cannot be used, or is not that of the certificate")?;
    Ok(InUse {
        key: Arc::new(key),
        expires_at: expires_at.to_unix_duration(),
    })
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    files::read(file, FILE_BYTES_MAX)
}
