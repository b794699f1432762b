//! The response of another machine: the same request to its fleetd, over mutual TLS.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::{Certificate, Client, Identity, Response};
use serde::Deserialize;

use super::{Error, Inspected, Inspection, Request, TextStream};
use hyperfleet_server_kit::files;

/// Timeout for the connection, and for the start of the response.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// Largest certificate file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Longest error of another fleetd, in bytes.
const FAULT_BYTES_MAX: usize = 64 << 10;
pub(crate) const EXIT_STATUS: &str = "fleet-exit-status";

/// Certificates for mutual TLS between fleetd instances: the files of fleetd's own TLS listeners. They are read
/// for each request, so renewed ones take effect at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Authorities of other fleetd's certificates.
    pub ca: PathBuf,
}

#[derive(Deserialize)]
struct Fault {
    error: FaultText,
}

#[derive(Deserialize)]
struct FaultText {
    message: String,
}

pub(super) async fn inspect(
    files: &PeerFiles,
    machine: &str,
    address: &str,
    request: &Request<'_>,
) -> Result<Inspected, Error> {
    let unreachable = |message: String| Error::Unreachable {
        machine: machine.to_owned(),
        address: address.to_owned(),
        message,
    };
    let client = client(files).map_err(|error| unreachable(error.to_string()))?;
    let sending = client.get(url(address, machine, request)).send();
    let answer = tokio::time::timeout(ANSWER_TIME_MAX, sending).await;
    let answer = answer.map_err(|_| unreachable("it does not answer".to_owned()))?;
    let response = answer.map_err(|error| unreachable(innermost(&error)))?;
    if !response.status().is_success() {
        let status = response.status().as_u16();
        let reading = tokio::time::timeout(ANSWER_TIME_MAX, fault_of(response)).await;
        let fault = reading.ok().flatten();
        let is_for_client = matches!(status, 400..=499 | 501 | 503) && status != 401;
        return Err(match fault.filter(|_| is_for_client) {
            Some(message) => Error::Refused { status, message },
            None => unreachable(format!("its fleetd answers {status}")),
        });
    }
    Ok(Inspected {
        exit_status: exit_status(&response),
        text: TextStream::of_peer(response),
    })
}

/// The message of an error in fleet's form.
async fn fault_of(mut response: Response) -> Option<String> {
    let mut text = Vec::new();
    while let Some(piece) = response.chunk().await.ok()? {
        text.extend(piece);
        if text.len() > FAULT_BYTES_MAX {
            return None;
        }
    }
    let fault: Fault = serde_json::from_slice(&text).ok()?;
    Some(fault.error.message)
}

fn exit_status(response: &Response) -> Option<i32> {
    let header = response.headers().get(EXIT_STATUS)?;
    header.to_str().ok()?.parse().ok()
}

fn client(files: &PeerFiles) -> io::Result<Client> {
    let mut pem = files::read(&files.cert, FILE_BYTES_MAX)?;
    pem.push(b'\n');
    pem.extend(files::read(&files.key, FILE_BYTES_MAX)?);
    let ca = files::read(&files.ca, FILE_BYTES_MAX)?;
    let built = || {
        Client::builder()
            .identity(Identity::from_pem(&pem)?)
            .tls_certs_only(Certificate::from_pem_bundle(&ca)?)
            .https_only(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIME_MAX)
            .build()
    };
    built().map_err(|error| io::Error::other(innermost(&error)))
}

fn url(address: &str, machine: &str, request: &Request<'_>) -> String {
    let (unit, what) = (encoded(request.unit), &request.inspection);
    let machine = encoded(machine);
    let form = match what {
        Inspection::Status => String::new(),
        Inspection::Journal {
            lines,
            follows,
            after,
        } => {
            let watch = if *follows { "&watch=true" } else { "" };
            let after = after.iter().map(|after| encoded(&after.to_string()));
            let after = after.map(|after| format!("&after={after}"));
            format!("&lines={lines}{watch}{}", after.collect::<String>())
        }
    };
    format!(
        "https://{address}/fleet/v1/units/{unit}/{what}?forwarded=true&machineID={machine}{form}"
    )
}

/// Encodes a text for a URL.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(byte).collect()
}

/// The innermost cause, which names why a connection failed.
fn innermost(error: &dyn StdError) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_sent_on_as_it_came_and_only_once() {
        let request = |follows, after| Request {
            unit: "web@1\\x2d.service",
            machine: None,
            inspection: Inspection::Journal {
                lines: 10,
                follows,
                after,
            },
            is_forwarded: false,
        };
        let after = || "s=1;i=2".parse().ok();
        for (request, end) in [
            (request(false, None), ""),
            (request(true, None), "&watch=true"),
            (request(true, after()), "&watch=true&after=s%3D1%3Bi%3D2"),
        ] {
            assert_eq!(
                url("10.0.0.2:8001", "m 1", &request),
                "https://10.0.0.2:8001/fleet/v1/units/web%401%5Cx2d.service/journal\
                 ?forwarded=true&machineID=m%201&lines=10"
                    .to_owned()
                    + end
            );
        }
    }

    #[test]
    fn files_that_cannot_be_read_are_an_error() {
        let missing = || PathBuf::from("/no/such/file");
        let files = PeerFiles {
            cert: missing(),
            key: missing(),
            ca: missing(),
        };
        assert!(client(&files).is_err());
    }
}
