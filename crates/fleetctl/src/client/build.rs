//! Builds a client with its socket or certificates.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Certificate, ClientBuilder, Identity, Url, redirect};

use super::Client;
use super::transport::Transport;
use crate::cli::Endpoint;

const CONNECT_TIME: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(crate) struct ConnectionSettings {
    pub endpoint: Endpoint,
    /// The endpoint as users name it, without a password.
    pub name: String,
    pub tls: TlsFiles,
    pub timeout: Duration,
    /// Print each request to standard error.
    pub prints_calls: bool,
}

/// Files of certificates and keys, as PEM.
#[derive(Debug, Clone, Default)]
pub(crate) struct TlsFiles {
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub authorities: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error("unable to read {}", .path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} has no usable PEM: {cause}", .path.display())]
    Pem { path: PathBuf, cause: String },
    #[error("--cert-file and --key-file are needed together")]
    HalfIdentity,
    #[error("invalid endpoint {name}: {cause}")]
    Url { name: String, cause: String },
    #[error("unable to set up HTTP")]
    Http(#[source] reqwest::Error),
}

/// A client. It connects with its first call.
///
/// # Errors
/// Invalid certificates or an invalid URL.
pub(crate) fn connect(settings: ConnectionSettings) -> Result<Client, SetupError> {
    let (http, base) = match &settings.endpoint {
        Endpoint::Unix(path) => {
            let builder = without_tls(builder()).unix_socket(path.as_path());
            (
                builder.build().map_err(SetupError::Http)?,
                "http://localhost",
            )
        }
        Endpoint::Url(url) => (http_client(url, &settings.tls)?, url.as_str()),
    };
    let base = Url::parse(&format!("{base}/fleet/v1/")).map_err(|error| SetupError::Url {
        name: settings.name.clone(),
        cause: error.to_string(),
    })?;
    let transport = Transport {
        http,
        base,
        endpoint: settings.name,
        timeout: settings.timeout,
        prints_calls: settings.prints_calls,
    };
    Ok(Client { transport })
}

/// A client for an http or https URL.
///
/// # Errors
/// Invalid certificates.
pub(crate) fn http_client(url: &str, tls: &TlsFiles) -> Result<reqwest::Client, SetupError> {
    let builder = if url.starts_with("https:") {
        with_tls(builder(), tls)?
    } else {
        without_tls(builder())
    };
    builder.build().map_err(SetupError::Http)
}

fn builder() -> ClientBuilder {
    // Fails only if a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent(concat!("fleetctl/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIME)
        .redirect(redirect::Policy::none())
        .no_proxy()
}

/// Without authorities: reading the system's takes longer than a call.
fn without_tls(builder: ClientBuilder) -> ClientBuilder {
    builder.tls_certs_only([])
}

/// Certificates are always verified: by the given authorities, or by those of the system.
fn with_tls(mut builder: ClientBuilder, files: &TlsFiles) -> Result<ClientBuilder, SetupError> {
    if let Some(path) = &files.authorities {
        let pem = |error: reqwest::Error| SetupError::Pem {
            path: path.clone(),
            cause: error.to_string(),
        };
        let authorities = Certificate::from_pem_bundle(&read(path)?).map_err(pem)?;
        if authorities.is_empty() {
            return Err(SetupError::Pem {
                path: path.clone(),
                cause: "no certificate in it".to_owned(),
            });
        }
        builder = builder.tls_certs_only(authorities);
    }
    match (&files.certificate, &files.key) {
        (None, None) => Ok(builder),
        (Some(certificate), Some(key)) => {
            let pem = [read(certificate)?, b"\n".to_vec(), read(key)?].concat();
            let identity = Identity::from_pem(&pem).map_err(|error| SetupError::Pem {
                path: certificate.clone(),
                cause: error.to_string(),
            })?;
            Ok(builder.identity(identity))
        }
        _ => Err(SetupError::HalfIdentity),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, SetupError> {
    std::fs::read(path).map_err(|source| SetupError::File {
        path: path.to_owned(),
        source,
    })
}
