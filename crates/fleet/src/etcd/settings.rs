//! Settings of a connection to etcd.

use std::fmt;
use std::time::Duration;

use etcd_client::{Certificate, ConnectOptions, TlsOptions};

/// A silent connection is probed after this time. etcd closes connections that probe more often than every five
/// seconds (`--grpc-keepalive-min-time`).
const SILENCE: Duration = Duration::from_secs(10);
/// Timeout of the probe.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct Settings {
    /// URLs of the servers, all `https` or all `http`.
    pub endpoints: Vec<String>,
    /// User to log in as, if etcd authenticates users.
    pub credentials: Option<Credentials>,
    /// Required for `https`.
    pub tls: Option<EtcdTls>,
    pub request_timeout: Duration,
    pub connect_timeout: Duration,
}

#[derive(Clone)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

/// Trusted authorities and the client certificate. Servers are always verified.
#[derive(Debug, Clone)]
pub struct EtcdTls {
    /// Authorities of the servers' certificates, as PEM.
    pub authorities_pem: Vec<u8>,
    /// Client certificate for servers that require one.
    pub identity: Option<Identity>,
    /// Name in the servers' certificates, if it is not that of their URL.
    pub server_name: Option<String>,
}

#[derive(Clone)]
pub struct Identity {
    /// The certificate and its intermediate certificates, as PEM.
    pub certificate_pem: Vec<u8>,
    pub key_pem: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Credentials").field(&self.user).finish()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSettings {
    #[error("no etcd server is named")]
    NoEndpoint,
    /// A URL without `http://` or `https://`, or a mixture: some connections would be unprotected without
    /// notice.
    #[error("the URLs of etcd must all begin with https://, or all with http://")]
    Schemes,
    #[error("https to etcd requires its authorities' certificates")]
    NoAuthorities,
    /// Certificates for `http`, where they have no effect.
    #[error("certificates for etcd have no effect with http://")]
    UselessTls,
}

impl Settings {
    /// Plain connections without a user, and calls of at most five seconds.
    pub fn plain(endpoints: Vec<String>) -> Self {
        Self {
            endpoints,
            credentials: None,
            tls: None,
            request_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(2),
        }
    }

    /// Checks everything that can be checked offline.
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        self.checked_tls().map(drop)
    }

    pub(super) fn options(&self) -> Result<ConnectOptions, InvalidSettings> {
        let mut options = ConnectOptions::new()
            .with_timeout(self.request_timeout)
            .with_connect_timeout(self.connect_timeout)
            .with_keep_alive(SILENCE, SIGN_OF_LIFE)
            // A server without a leader then reports it, instead of a watch that hangs.
            .with_require_leader(true)
            // Tokens expire after five minutes, and with the server that issued them.
            .with_auto_token_refresh(true);
        if let Some(Credentials { user, password }) = &self.credentials {
            options = options.with_user(user, password);
        }
        Ok(match self.checked_tls()? {
            Some(tls) => options.with_tls(tls.options()),
            None => options,
        })
    }

    /// The TLS settings; `None` for `http`.
    fn checked_tls(&self) -> Result<Option<&EtcdTls>, InvalidSettings> {
        let secure = |url: &&String| url.starts_with("https://");
        let plain = |url: &&String| url.starts_with("http://");
        let count = self.endpoints.len();
        let all_secure = self.endpoints.iter().filter(secure).count() == count;
        let all_plain = self.endpoints.iter().filter(plain).count() == count;
        match &self.tls {
            _ if count == 0 => Err(InvalidSettings::NoEndpoint),
            _ if !all_secure && !all_plain => Err(InvalidSettings::Schemes),
            None if all_secure => Err(InvalidSettings::NoAuthorities),
            Some(tls) if all_secure && tls.authorities_pem.is_empty() => {
                Err(InvalidSettings::NoAuthorities)
            }
            Some(_) if all_plain => Err(InvalidSettings::UselessTls),
            tls => Ok(tls.as_ref()),
        }
    }
}

impl EtcdTls {
    pub(crate) fn options(&self) -> TlsOptions {
        let authorities = Certificate::from_pem(&self.authorities_pem);
        let mut options = TlsOptions::new().ca_certificate(authorities);
        if let Some(identity) = &self.identity {
            options = options.identity(etcd_client::Identity::from_pem(
                &identity.certificate_pem,
                &identity.key_pem,
            ));
        }
        if let Some(name) = &self.server_name {
            options = options.domain_name(name);
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(endpoints: &[&str], tls: Option<EtcdTls>) -> Settings {
        Settings {
            tls,
            ..Settings::plain(endpoints.iter().map(ToString::to_string).collect())
        }
    }

    fn tls(authorities: &str) -> EtcdTls {
        EtcdTls {
            authorities_pem: authorities.into(),
            identity: None,
            server_name: None,
        }
    }

    #[test]
    fn nothing_goes_unverified_unnoticed() {
        let invalid = |endpoints: &[&str], tls| settings(endpoints, tls).options().err();
        assert_eq!(invalid(&["http://a:1"], None), None);
        assert_eq!(invalid(&["https://a:1"], Some(tls("pem"))), None);
        assert_eq!(invalid(&[], None), Some(InvalidSettings::NoEndpoint));
        assert_eq!(invalid(&["a:1"], None), Some(InvalidSettings::Schemes));
        let mixed = invalid(&["https://a:1", "http://b:1"], Some(tls("pem")));
        assert_eq!(mixed, Some(InvalidSettings::Schemes));
        assert_eq!(
            invalid(&["https://a:1"], None),
            Some(InvalidSettings::NoAuthorities)
        );
        assert_eq!(
            invalid(&["https://a:1"], Some(tls(""))),
            Some(InvalidSettings::NoAuthorities)
        );
        assert_eq!(
            invalid(&["http://a:1"], Some(tls("pem"))),
            Some(InvalidSettings::UselessTls)
        );
    }

    #[test]
    fn secrets_are_not_printed() {
        let identity = Identity {
            certificate_pem: b"certificate".into(),
            key_pem: b"s3cret".into(),
        };
        let settings = Settings {
            credentials: Some(Credentials {
                user: "fleet".into(),
                password: "s3cret".into(),
            }),
            tls: Some(EtcdTls {
                identity: Some(identity),
                ..tls("pem")
            }),
            ..Settings::plain(vec!["https://a:1".into()])
        };
        let printed = format!("{settings:?}");
        assert!(
            printed.contains("fleet") && !printed.contains("s3cret"),
            "{printed}"
        );
    }
}
