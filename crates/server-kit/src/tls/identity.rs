//! A listener's certificate and key, and their files.

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

use super::clients::ClientAuthorities;
use crate::errors::ErrorList;
use crate::files;

const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The certificate of a listener. It can be replaced while connections are accepted.
#[derive(Debug)]
pub(super) struct Identity {
    /// Name of the listener in metrics and the log.
    pub(super) listener: &'static str,
    cert_file: PathBuf,
    key_file: PathBuf,
    current: RwLock<InUse>,
    /// Authorities of client certificates, if they are required.
    pub(super) clients: Option<Arc<ClientAuthorities>>,
}

/// The certificate in use.
#[derive(Debug)]
struct InUse {
    key: Arc<CertifiedKey>,
    /// Since 1970.
    expires_at: Duration,
}

/// The files of a listener, each with the name of its setting.
pub struct Files<'a> {
    /// Name of the listener in metrics and the log.
    pub listener: &'static str,
    /// Common name of the two settings.
    pub pair: &'a str,
    pub cert: (&'a str, &'a Path),
    pub key: (&'a str, &'a Path),
    /// Authorities of client certificates, if they are required.
    pub client_ca: Option<(&'a str, &'a Path)>,
}

/// The contents of the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Texts {
    /// The certificate and its intermediate certificates.
    certificate: Vec<u8>,
    key: Vec<u8>,
    /// Authorities of client certificates; empty for none.
    client_ca: Vec<u8>,
}

impl Identity {
    /// Reads the files that the settings name. Also returns their contents.
    ///
    /// # Errors
    /// One cannot be read, or they do not fit together.
    pub(super) fn load(files: &Files<'_>) -> anyhow::Result<(Self, Texts)> {
        let mut errors = ErrorList::default();
        let mut read_as = |(name, file): (&str, &Path)| {
            let text = errors.part(read(file).with_context(|| name.to_owned()));
            text.unwrap_or_default()
        };
        let texts = Texts {
            certificate: read_as(files.cert),
            key: read_as(files.key),
            client_ca: files.client_ca.map(read_as).unwrap_or_default(),
        };
        errors.refuse()?;
        let in_use = pair(&texts.certificate, &texts.key).with_context(|| {
            let (cert, key) = (files.cert.1.display(), files.key.1.display());
            format!("{}: cannot use {cert} with {key}", files.pair)
        })?;
        let clients = files.client_ca.map(|(name, file)| {
            let authorities = ClientAuthorities::new(file, &texts.client_ca);
            authorities.map(Arc::new).with_context(|| name.to_owned())
        });
        let identity = Self {
            listener: files.listener,
            cert_file: files.cert.1.to_owned(),
            key_file: files.key.1.to_owned(),
            current: RwLock::new(in_use),
            clients: clients.transpose()?,
        };
        Ok((identity, texts))
    }

    /// The current contents of the files.
    ///
    /// # Errors
    /// Which file cannot be read, and why.
    pub(super) fn texts(&self) -> anyhow::Result<Texts> {
        let client_ca = self.clients.as_ref().map(|clients| read(&clients.file));
        Ok(Texts {
            certificate: read(&self.cert_file)?,
            key: read(&self.key_file)?,
            client_ca: client_ca.transpose()?.unwrap_or_default(),
        })
    }

    /// Replaces the certificate.
    ///
    /// # Errors
    /// Why it is invalid: nothing has changed then.
    pub(super) fn replace(&self, texts: &Texts) -> anyhow::Result<()> {
        let in_use = pair(&texts.certificate, &texts.key).with_context(|| {
            let (cert, key) = (self.cert_file.display(), self.key_file.display());
            format!("{cert} does not go with {key}")
        })?;
        if let Some(clients) = &self.clients {
            clients.replace(&texts.client_ca)?;
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = in_use;
        Ok(())
    }

    /// Expiry of the certificate in use, since 1970.
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
fn pair(certificates: &[u8], key: &[u8]) -> anyhow::Result<InUse> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
    let chain = chain.context("the certificate is not PEM")?;
    let Some(first) = chain.first() else {
        bail!("there is no certificate in the file");
    };
    let certificate = Certificate::from_der(first).context("the certificate cannot be read")?;
    let expires_at = certificate.tbs_certificate.validity.not_after;
    let key = PrivateKeyDer::from_pem_slice(key).context("there is no private key in the file")?;
    let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
        .context("the key cannot be used, or does not match the certificate")?;
    Ok(InUse {
        key: Arc::new(key),
        expires_at: expires_at.to_unix_duration(),
    })
}

/// Checks that a certificate and a key belong together, both as PEM.
///
/// # Errors
/// What is wrong with them.
pub fn check_pair(certificates: &[u8], key: &[u8]) -> anyhow::Result<()> {
    pair(certificates, key).map(drop)
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let read = files::read(file, FILE_BYTES_MAX);
    read.with_context(|| format!("cannot read {}", file.display()))
}
