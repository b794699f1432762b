//! The connection to a trace collector: protocol and trusted authorities.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use opentelemetry_otlp::tonic_types::transport::{Certificate, ClientTlsConfig};
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_TRACES_TIMEOUT, Protocol, SpanExporter,
    WithExportConfig as _, WithHttpConfig as _, WithTonicConfig as _,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::files;

/// Variables with the authorities of the collector's certificate. If set, no others are trusted.
const AUTHORITIES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
];
/// Standard variables that are not supported.
const UNSUPPORTED: [&str; 4] = [
    "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY",
    "OTEL_EXPORTER_OTLP_CLIENT_KEY",
];
/// Largest file of authorities, in bytes.
const AUTHORITIES_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Timeout of an export unless a variable sets it: the standard's default.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Reads a variable. As in the standard, an empty one is unset.
pub(super) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The first requested option that is not supported.
pub(super) fn unsupported(variables: Variables<'_>) -> Option<String> {
    let name = UNSUPPORTED.iter().find(|name| variables(name).is_some())?;
    Some(format!(
        "{name} is not supported: a collector gets no certificate of ours"
    ))
}

/// The span exporter for the configured protocol.
///
/// # Errors
/// Authorities that cannot be read or are invalid.
pub(super) fn exporter(
    protocol: Protocol,
    endpoint: &str,
    variables: Variables<'_>,
) -> anyhow::Result<SpanExporter> {
    let is_secure = endpoint.starts_with("https:");
    if protocol == Protocol::HttpBinary {
        let exporter = SpanExporter::builder().with_http().with_protocol(protocol);
        let exporter = exporter.with_http_client(http_client(is_secure, variables)?);
        return Ok(exporter.build()?);
    }
    let mut exporter = SpanExporter::builder().with_tonic();
    if is_secure {
        let tls = ClientTlsConfig::new();
        exporter = exporter.with_tls_config(match named_authorities(variables)? {
            Some(named) => tls.ca_certificate(Certificate::from_pem(named)),
            None => tls.with_native_roots(),
        });
    }
    Ok(exporter.build()?)
}

/// The SDK's own client would not use the configured authorities.
fn http_client(is_secure: bool, variables: Variables<'_>) -> anyhow::Result<reqwest::Client> {
    let builder = reqwest::Client::builder().timeout(timeout(variables));
    let builder = match named_authorities(variables)? {
        Some(pem) => builder.tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?),
        None if is_secure => builder,
        // Without TLS no authorities are needed.
        None => builder.tls_certs_only([]),
    };
    Ok(builder.build()?)
}

fn timeout(variables: Variables<'_>) -> Duration {
    let text = variables(OTEL_EXPORTER_OTLP_TRACES_TIMEOUT)
        .or_else(|| variables(OTEL_EXPORTER_OTLP_TIMEOUT));
    let milliseconds = text.and_then(|text| text.parse().ok());
    milliseconds.map_or(TIMEOUT, Duration::from_millis)
}

/// The authorities named by variables, as PEM.
fn named_authorities(variables: Variables<'_>) -> anyhow::Result<Option<Vec<u8>>> {
    let mut names = AUTHORITIES.iter();
    let Some((name, file)) = names.find_map(|name| Some((name, variables(name)?))) else {
        return Ok(None);
    };
    let pem = files::read(Path::new(&file), AUTHORITIES_BYTES_MAX)
        .with_context(|| format!("{name}: cannot read {file}"))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(Some(pem)),
        _ => bail!("{name}: {file} holds no certificates in PEM"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_certificates_in_a_file_that_can_be_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "no PEM").unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        for (named, word) in [
            ("/nowhere/ca.pem".to_owned(), "cannot read /nowhere/ca.pem"),
            ("/dev/zero".to_owned(), "it has more than"),
            (path, "holds no certificates in PEM"),
        ] {
            let variables = |name: &str| {
                let is_named = name == "OTEL_EXPORTER_OTLP_CERTIFICATE";
                is_named.then(|| named.clone())
            };
            let error = exporter(Protocol::HttpBinary, "https://c", &variables).unwrap_err();
            let error = format!("{error:#}");
            assert!(
                error.starts_with("OTEL_EXPORTER_OTLP_CERTIFICATE: "),
                "{error}"
            );
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn unsupported_options_are_reported_and_times_are_read() {
        let variables = |name: &str| match name {
            "OTEL_EXPORTER_OTLP_CLIENT_KEY" => Some("/a/key.pem".to_owned()),
            "OTEL_EXPORTER_OTLP_TIMEOUT" => Some("1500".to_owned()),
            _ => None,
        };
        let note = unsupported(&variables).unwrap();
        assert!(
            note.starts_with("OTEL_EXPORTER_OTLP_CLIENT_KEY is not supported"),
            "{note}"
        );
        assert_eq!(timeout(&variables), Duration::from_millis(1500));
        assert_eq!(unsupported(&|_| None), None);
        assert_eq!(timeout(&|_| None), TIMEOUT);
        assert_eq!(timeout(&|_| Some("soon".to_owned())), TIMEOUT);
    }
}
