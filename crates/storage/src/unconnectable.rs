//! Failures to connect that stay until an operator changes something.

use std::borrow::Cow;

use rustls::CertificateError::{
    Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
    NotValidYetContext, Other, UnknownIssuer,
};

/// Why no later attempt to connect will succeed; unset if one may.
pub(super) fn permanent_reason(error: &sqlx::Error) -> Option<String> {
    match error {
        sqlx::Error::Configuration(error) => Some(of_configuration(&error.to_string())),
        sqlx::Error::Tls(error) => Some(error.to_string()),
        sqlx::Error::Io(error) => match error.get_ref()?.downcast_ref()? {
            rustls::Error::InvalidCertificate(error) => {
                let why = of_certificate(error);
                Some(format!("the certificate of the server {why}"))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Says nothing of the password: the driver's text contains a part of it.
fn of_configuration(text: &str) -> String {
    if text.contains("saslprep password") {
        return "the password has characters that SCRAM does not allow (RFC 4013), such as control characters or emoji: \
                set another one, best of letters and digits"
            .to_owned();
    }
    text.to_owned()
}

/// What is wrong with a certificate. The driver verifies the signatures of the handshake even if the mode does not verify
/// the certificate, so that it must be able to read any certificate.
fn of_certificate(error: &rustls::CertificateError) -> Cow<'static, str> {
    let text = match error {
        Other(reason) => match reason.to_string().as_str() {
            "UnsupportedCertVersion" => {
                "is of X.509 version 1: every mode but disable needs version 3"
            }
            "CaUsedAsEndEntity" => {
                "belongs to an authority (CA:TRUE): verify-ca and verify-full need a certificate that an authority has issued"
            }
            _ => return format!("is not usable: {error}").into(),
        },
        NotValidForNameContext { presented, .. } if presented.is_empty() => {
            "has no subject alternative name: verify-full needs the name of the host there"
        }
        NotValidForName | NotValidForNameContext { .. } => {
            return format!("is for another host: {error}").into();
        }
        UnknownIssuer => {
            "is not issued by a trusted authority: name its authority in database.ssl.root_cert_file"
        }
        Expired | ExpiredContext { .. } => "has expired",
        NotValidYet | NotValidYetContext { .. } => "is not valid yet",
        _ => return format!("is not usable: {error}").into(),
    };
    text.into()
}
