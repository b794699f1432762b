//! Key sets from where they are kept: an address or a file.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, StatusCode, Url};

use super::key::KeySetFault;
use hyperfleet_server_kit::causes::chain;

/// Largest key set, in bytes.
pub const KEY_SET_BYTES_MAX: u64 = 1024 * 1024;

/// Why there is no key set to be had. What was had before stays.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchFault {
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("it does not answer in time")]
    TimedOut,
    #[error("it answers {0}")]
    Status(StatusCode),
    #[error("it is larger than {KEY_SET_BYTES_MAX} bytes")]
    TooLarge,
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error(transparent)]
    Unusable(#[from] KeySetFault),
}

/// Every outcome, by its name.
pub(super) const OUTCOMES: [&str; 8] = [
    SUCCESS,
    "unreachable",
    "timeout",
    "status",
    "too_large",
    "unreadable",
    "empty",
    "invalid",
];
/// The outcome where there is no fault.
pub(super) const SUCCESS: &str = "success";

impl FetchFault {
    /// The name of the outcome in metrics.
    pub(super) fn outcome(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::TimedOut => "timeout",
            Self::Status(_) => "status",
            Self::TooLarge => "too_large",
            Self::Unreadable(_) => "unreadable",
            Self::Unusable(KeySetFault::Empty(_)) => "empty",
            Self::Unusable(_) => "invalid",
        }
    }
}

impl From<reqwest::Error> for FetchFault {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::TimedOut;
        }
        // The address may hold a password; the causes say more anyway.
        Self::Unreachable(chain(&error.without_url()))
    }
}

/// How long a fetch may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) connect: Duration,
    pub(super) total: Duration,
}

/// A client that follows no redirects: whoever can answer for the address is to answer.
pub(super) fn client(
    url: &Url,
    authorities: Vec<Certificate>,
    limits: Limits,
) -> reqwest::Result<Client> {
    hyperfleet_server_kit::crypto::install();
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .connect_timeout(limits.connect)
        .timeout(limits.total)
        .referer(false);
    // Without TLS nobody has to be trusted, and the system's authorities need not be there.
    builder = if url.scheme() == "https" {
        builder.tls_certs_merge(authorities)
    } else {
        builder.tls_certs_only([])
    };
    // A proxy has another idea of which machine is this one.
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// Whether an address is one of this machine, by its name alone.
pub(super) fn is_loopback(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// Gets what an address answers, as long as that is no more than a key set may be.
pub(super) async fn fetch(client: &Client, url: &Url) -> Result<Vec<u8>, FetchFault> {
    let mut answer = client
        .get(url.clone())
        .header("accept", "application/json")
        .send()
        .await?;
    if answer.status() != StatusCode::OK {
        return Err(FetchFault::Status(answer.status()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() as u64 > KEY_SET_BYTES_MAX {
            return Err(FetchFault::TooLarge);
        }
    }
    Ok(body)
}

/// Reads a file, as long as it is no larger than a key set may be. Links are followed: Kubernetes
/// changes mounted files by swapping one.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, FetchFault> {
    // A pipe would be waited for.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file").into());
    }
    let mut text = Vec::new();
    let file = File::open(path)?;
    file.take(KEY_SET_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > KEY_SET_BYTES_MAX {
        return Err(FetchFault::TooLarge);
    }
    Ok(text)
}
