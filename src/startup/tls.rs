//! Certificates of the listeners, read again when their files change.
//!
//! Orchestrators replace them by turning a symbolic link, so it is what the files hold that counts,
//! not when they were written.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use crate::config::{Settings, Tls};
use crate::files;

/// How often the files are looked at.
const PERIOD: Duration = Duration::from_secs(2);
/// Most bytes of a file that are read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// TLS of each listener that has it.
#[derive(Default)]
pub(super) struct Configs {
    pub(super) api: Option<ServerConfig>,
    pub(super) health: Option<ServerConfig>,
    pub(super) metrics: Option<ServerConfig>,
    /// What is odd, but stops nothing.
    pub(super) notes: Vec<String>,
    identities: Vec<Arc<Identity>>,
}

/// What a listener proves itself with.
#[derive(Debug)]
struct Identity {
    /// Which listener, in metrics and the log.
    listener: &'static str,
    cert_file: PathBuf,
    key_file: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
    expires_at: RwLock<Duration>,
}

/// What both files hold.
type Texts = (Vec<u8>, Vec<u8>);

/// Reads the certificates of every listener that has TLS.
///
/// # Errors
///
/// Every listener whose pair is not named, cannot be read, or does not fit together.
pub(super) fn load(settings: &Settings) -> anyhow::Result<Configs> {
    let mut configs = Configs::default();
    let mut faults = String::new();
    let server = &settings.server.tls;
    for (listener, path, tls) in [
        ("api", "server.tls", server),
        ("health", "health.tls", &settings.health.tls),
        ("metrics", "metrics.tls", &settings.metrics.tls),
    ] {
        if !tls.enabled {
            continue;
        }
        let files = or_inherited(path, tls, server, &mut configs.notes);
        let identity = Identity::load(listener, path, files);
        let identity = match identity {
            Ok(identity) => Arc::new(identity),
            Err(fault) => {
                let _ = writeln!(faults, "{fault:#}");
                continue;
            }
        };
        let config = Some(config(identity.clone())?);
        match listener {
            "api" => configs.api = config,
            "health" => configs.health = config,
            _ => configs.metrics = config,
        }
        configs.identities.push(identity);
    }
    if !faults.is_empty() {
        bail!("{}", faults.trim_end());
    }
    Ok(configs)
}

/// The files of a listener; those of the API where it has none, as in the older service.
fn or_inherited<'a>(path: &str, tls: &'a Tls, server: &'a Tls, notes: &mut Vec<String>) -> &'a Tls {
    let is_unset = |file: &Path| file.as_os_str().is_empty();
    let is_inherited = path != "server.tls" && is_unset(&tls.cert_file) && is_unset(&tls.key_file);
    if !is_inherited || is_unset(&server.cert_file) {
        return tls;
    }
    notes.push(format!(
        "{path} names no files: those of server.tls are used"
    ));
    server
}

/// TLS 1.2 or newer with HTTP/1.1, by `ring`.
fn config(identity: Arc<Identity>) -> anyhow::Result<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(identity);
    Ok(config)
}

impl Configs {
    /// Looks for changed files from now on, as long as the process lives.
    pub(super) fn watch(&mut self) -> std::io::Result<()> {
        let identities = std::mem::take(&mut self.identities);
        if identities.is_empty() {
            return Ok(());
        }
        let mut watched = Vec::new();
        for identity in identities {
            // What cannot be read now was read a moment ago: it is read again soon.
            let known = identity.texts().unwrap_or_default();
            watched.push((identity, known));
        }
        let look = move || {
            loop {
                for (identity, known) in &mut watched {
                    identity.look(known);
                    identity.tell();
                }
                std::thread::sleep(PERIOD);
            }
        };
        let thread = std::thread::Builder::new().name("certificates".to_owned());
        thread.spawn(look).map(drop)
    }
}

impl Identity {
    fn load(listener: &'static str, path: &str, tls: &Tls) -> anyhow::Result<Self> {
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
        let (key, expires_at) = pair(&texts).with_context(|| {
            format!(
                "{path}: cannot use {} with {}",
                tls.cert_file.display(),
                tls.key_file.display()
            )
        })?;
        Ok(Self {
            listener,
            cert_file: tls.cert_file.clone(),
            key_file: tls.key_file.clone(),
            current: RwLock::new(Arc::new(key)),
            expires_at: RwLock::new(expires_at),
        })
    }

    fn texts(&self) -> std::io::Result<Texts> {
        Ok((read(&self.cert_file)?, read(&self.key_file)?))
    }

    /// Takes what the files hold if that is new and good. What is not is said once, and what was
    /// good before stays.
    fn look(&self, known: &mut Texts) {
        let listener = self.listener;
        let texts = match self.texts() {
            Ok(texts) if texts == *known => return,
            Ok(texts) => texts,
            // Files that are being replaced: next time.
            Err(_) => return,
        };
        match pair(&texts) {
            Ok((key, expires_at)) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
                *(self.expires_at.write()).unwrap_or_else(PoisonError::into_inner) = expires_at;
                tracing::info!(listener, "a new certificate is used");
            }
            Err(error) => {
                tracing::error!(
                    listener,
                    "the certificate stays as it was: {} does not go with {}: {error:#}",
                    self.cert_file.display(),
                    self.key_file.display(),
                );
            }
        }
        *known = texts;
    }

    /// Says when the certificate in use expires.
    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds since 1970 fit an f64 exactly"
    )]
    fn tell(&self) {
        let expires_at = *self
            .expires_at
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let name = "hyperfleet_api_tls_certificate_expiry_timestamp_seconds";
        metrics::gauge!(name, "listener" => self.listener).set(expires_at.as_secs() as f64);
    }
}

impl ResolvesServerCert for Identity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(current.clone())
    }
}

/// A certificate with its key, and when it expires.
fn pair((certificates, key): &Texts) -> anyhow::Result<(CertifiedKey, Duration)> {
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
    Ok((key, expires_at.to_unix_duration()))
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    files::read(file, FILE_BYTES_MAX)
}
