//! What settings of issuers must be (hyperfleet-http.md §8.1).

use std::path::Path;

use regex::Regex;
use reqwest::{Certificate, Url};

use super::config::{ConfigFault, Issuer, IssuerConfig, KeyAddress, KeyFile};
use super::fetch::{self, Limits};
use super::identity::IdentityRule;
use super::key;
use super::pace::Pace;
use hyperfleet_server_kit::causes::chain;

/// Headers that browsers and proxies fill with other things than a caller's name.
const NOT_FOR_IDENTITIES: [&str; 7] = [
    "authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "x-auth-token",
    "x-forwarded-authorization",
    "proxy-authorization",
];
/// Headers that browsers fill by themselves.
const NOT_FOR_TOKENS: [&str; 2] = ["cookie", "set-cookie"];

/// Checks the settings of issuers. Reads the files that they name, and nothing else.
///
/// # Errors
///
/// All that is wrong, in the order of the settings.
pub fn issuers(configs: &[IssuerConfig], pace: Pace) -> Result<Vec<Issuer>, Vec<ConfigFault>> {
    let mut faults = Vec::new();
    let mut issuers = Vec::new();
    for (index, config) in configs.iter().enumerate() {
        let mut check = Check::default();
        let issuer = check.issuer(config, pace);
        let mut others = configs[..index].iter();
        if let Some(first) = others.position(|c| is_of_same_issuer(c, config)) {
            check.fault(
                "issuer_url",
                format!("is that of configs[{first}], too: name each issuer once"),
            );
        }
        faults.extend(check.0.into_iter().map(|(setting, text)| ConfigFault {
            issuer: index,
            setting,
            text,
        }));
        issuers.extend(issuer);
    }
    if faults.is_empty() {
        Ok(issuers)
    } else {
        Err(faults)
    }
}

/// Gathers what is wrong with one issuer.
#[derive(Default)]
struct Check(Vec<(&'static str, String)>);

impl Check {
    fn fault(&mut self, setting: &'static str, text: impl Into<String>) {
        self.0.push((setting, text.into()));
    }

    fn issuer(&mut self, config: &IssuerConfig, pace: Pace) -> Option<Issuer> {
        if config.issuer_url.is_empty() {
            self.fault("issuer_url", "is required");
        } else {
            self.url("issuer_url", &config.issuer_url);
        }
        let has_file = !config.jwk_cert_file.as_os_str().is_empty();
        if config.jwk_cert_url.is_empty() && !has_file {
            self.fault(
                "jwk_cert_url",
                "or jwk_cert_file is required: without keys no token can be verified",
            );
        }
        let address = self.address(config, pace);
        let file = has_file.then(|| self.file(&config.jwk_cert_file)).flatten();
        self.headers(config);
        if config.identity_claim.is_empty() {
            self.fault("identity_claim", "is empty: name a claim, such as email");
        }
        let pattern = self.pattern(&config.identity_claim_pattern);
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        self.0.is_empty().then(|| Issuer {
            url: config.issuer_url.clone(),
            header: config.header.clone(),
            audience: some(&config.audience),
            identity: IdentityRule {
                claim: config.identity_claim.clone(),
                header: some(&config.identity_header),
                pattern,
            },
            file,
            address,
        })
    }

    /// An address that nobody on the way can change answers of, and that everybody may see.
    fn url(&mut self, setting: &'static str, text: &str) -> Option<Url> {
        let Ok(url) = Url::parse(text) else {
            self.fault(setting, "is no URL, such as https://issuer.example.com");
            return None;
        };
        let is_safe = match url.scheme() {
            "https" => url.has_host(),
            "http" => fetch::is_loopback(&url),
            _ => false,
        };
        if !is_safe {
            self.fault(
                setting,
                "must be https; http is for localhost, 127.0.0.1 and [::1] alone",
            );
            return None;
        }
        if !url.username().is_empty() || url.password().is_some() {
            self.fault(setting, "must not have a user or a password: it is shown");
            return None;
        }
        Some(url)
    }

    fn address(&mut self, config: &IssuerConfig, pace: Pace) -> Option<KeyAddress> {
        let authorities = self.authorities(&config.jwk_cert_ca_file);
        if config.jwk_cert_url.is_empty() {
            if !config.jwk_cert_ca_file.as_os_str().is_empty() {
                self.fault(
                    "jwk_cert_ca_file",
                    "needs jwk_cert_url: it is for fetching keys",
                );
            }
            return None;
        }
        let url = self.url("jwk_cert_url", &config.jwk_cert_url)?;
        let limits = Limits {
            connect: pace.connect,
            total: pace.fetch,
        };
        match fetch::client(&url, authorities?, limits) {
            Ok(client) => Some(KeyAddress { url, client }),
            Err(error) => {
                let error = chain(&error);
                let text = "needs authorities to trust, of the system or in jwk_cert_ca_file";
                self.fault("jwk_cert_url", format!("{text}: {error}"));
                None
            }
        }
    }

    fn authorities(&mut self, path: &Path) -> Option<Vec<Certificate>> {
        const SETTING: &str = "jwk_cert_ca_file";
        if path.as_os_str().is_empty() {
            return Some(Vec::new());
        }
        let text = match fetch::read(path) {
            Ok(text) => text,
            Err(error) => {
                self.fault(SETTING, format!("{}: {error}", path.display()));
                return None;
            }
        };
        match Certificate::from_pem_bundle(&text) {
            Ok(bundle) if !bundle.is_empty() => Some(bundle),
            _ => {
                self.fault(
                    SETTING,
                    format!("{} holds no PEM certificates", path.display()),
                );
                None
            }
        }
    }

    fn file(&mut self, path: &Path) -> Option<KeyFile> {
        let read = fetch::read(path).and_then(|text| Ok((key::read(&text)?, text)));
        match read {
            Ok((published, text)) => Some(KeyFile {
                path: path.to_owned(),
                text,
                published,
            }),
            Err(error) => {
                self.fault("jwk_cert_file", format!("{}: {error}", path.display()));
                None
            }
        }
    }

    fn headers(&mut self, config: &IssuerConfig) {
        let (header, identity) = (&config.header, &config.identity_header);
        if !is_header_name(header) {
            self.fault("header", format!("{header:?} is no name of a header"));
        } else if is_among(header, &NOT_FOR_TOKENS) {
            self.fault("header", format!("{header} cannot carry tokens"));
        }
        if identity.is_empty() {
            return;
        }
        if !is_header_name(identity) {
            self.fault(
                "identity_header",
                format!("{identity:?} is no name of a header"),
            );
        } else if is_among(identity, &NOT_FOR_IDENTITIES) {
            self.fault(
                "identity_header",
                format!("{identity} cannot carry identities"),
            );
        } else if identity.eq_ignore_ascii_case(header) {
            self.fault("identity_header", "must differ from header");
        }
    }

    fn pattern(&mut self, text: &str) -> Option<Regex> {
        if text.is_empty() {
            return None;
        }
        match Regex::new(text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                self.fault("identity_claim_pattern", format!("cannot be used: {error}"));
                None
            }
        }
    }
}

/// Whether both speak of one issuer, which would be tried twice with other rules each time, and be one in
/// metrics. To the letter, as `iss` is compared.
fn is_of_same_issuer(one: &IssuerConfig, other: &IssuerConfig) -> bool {
    !one.issuer_url.is_empty() && one.issuer_url == other.issuer_url
}

fn is_among(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// A `token` of RFC 9110 §5.6.2.
fn is_header_name(name: &str) -> bool {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(is_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> IssuerConfig {
        IssuerConfig {
            issuer_url: "https://issuer.example".to_owned(),
            jwk_cert_url: "https://issuer.example/keys".to_owned(),
            ..IssuerConfig::default()
        }
    }

    fn faults(change: impl Fn(&mut IssuerConfig)) -> Vec<String> {
        let mut config = IssuerConfig {
            issuer_url: "https://second.example".to_owned(),
            ..config()
        };
        change(&mut config);
        let checked = issuers(&[self::config(), config], Pace::default());
        let faults = checked.map_or_else(|faults| faults, |_| Vec::new());
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn addresses_are_https_but_on_this_machine() {
        for good in [
            "https://third.example",
            "https://10.0.0.1:8443/realms/x",
            "http://localhost:8080",
            "http://127.0.0.1/keys",
            "http://[::1]:1/keys",
        ] {
            let none = faults(|config| {
                config.issuer_url = good.to_owned();
                config.jwk_cert_url = good.to_owned();
            });
            assert!(none.is_empty(), "{good}: {none:?}");
        }
        let changes: [Change; 2] = [
            |config| config.issuer_url = "https://user:hush@issuer.example".into(),
            |config| config.jwk_cert_url = "https://user:hush@issuer.example".into(),
        ];
        for change in changes {
            let shown = faults(change);
            assert_eq!(shown.len(), 1, "{shown:?}");
            assert!(
                shown[0].contains("must not have a user or a password"),
                "{shown:?}"
            );
            assert!(!shown[0].contains("hush"), "{shown:?}");
        }
        for bad in [
            "http://issuer.example",
            "http://127.0.0.1.evil.example",
            "http://localhost.",
            "file:///etc/keys",
            "issuer.example",
            "https://",
        ] {
            let found = faults(|config| {
                config.issuer_url = bad.to_owned();
                config.jwk_cert_url = bad.to_owned();
            });
            assert_eq!(found.len(), 2, "{bad}: {found:?}");
            assert!(found[0].starts_with("configs[1].issuer_url "), "{found:?}");
            assert!(
                found[1].starts_with("configs[1].jwk_cert_url "),
                "{found:?}"
            );
        }
    }

    type Change = fn(&mut IssuerConfig);

    #[test]
    fn an_issuer_is_named_once() {
        let found = faults(|config| config.issuer_url = self::config().issuer_url);
        assert_eq!(found.len(), 1, "{found:?}");
        let says = "configs[1].issuer_url is that of configs[0], too: ";
        assert!(found[0].starts_with(says), "{found:?}");
        // `iss` is compared to the letter: this is another one, as after a move.
        let slash = faults(|config| config.issuer_url = self::config().issuer_url + "/");
        assert!(slash.is_empty(), "{slash:?}");
        // What is missing in both is told as missing.
        let none = vec![IssuerConfig::default(); 2];
        let found = issuers(&none, Pace::default()).unwrap_err();
        assert!(
            !found.iter().any(|fault| fault.text.contains("is that of")),
            "{found:?}"
        );
    }

    #[test]
    fn every_setting_that_cannot_be_used_is_named() {
        let cases: [(Change, &str); 15] = [
            (|c| c.issuer_url.clear(), "issuer_url is required"),
            (|c| c.jwk_cert_url.clear(), "jwk_cert_url or jwk_cert_file"),
            (
                |c| c.jwk_cert_file = "/nowhere/keys".into(),
                "jwk_cert_file /nowhere/keys",
            ),
            (
                |c| c.jwk_cert_file = "/dev/null".into(),
                "jwk_cert_file /dev/null",
            ),
            (
                |c| c.jwk_cert_ca_file = "/nowhere/ca".into(),
                "jwk_cert_ca_file /nowhere/ca",
            ),
            (
                |c| c.jwk_cert_ca_file = "Cargo.toml".into(),
                "no PEM certificates",
            ),
            (|c| c.header.clear(), "header \"\""),
            (|c| c.header = "a b".to_owned(), "header \"a b\""),
            (|c| c.header = "COOKIE".to_owned(), "header COOKIE"),
            (|c| c.identity_claim.clear(), "identity_claim is empty"),
            (
                |c| c.identity_claim_pattern = "(".to_owned(),
                "identity_claim_pattern",
            ),
            (
                |c| c.identity_header = "X-API-Key".to_owned(),
                "identity_header X-API-Key",
            ),
            (
                |c| c.identity_header = "authorization".to_owned(),
                "identity_header authorization",
            ),
            (
                |c| c.identity_header = "a:b".to_owned(),
                "identity_header \"a:b\"",
            ),
            (
                |c| {
                    c.header = "X-Token".to_owned();
                    c.identity_header = "x-token".to_owned();
                },
                "identity_header must differ",
            ),
        ];
        assert!(faults(|_| {}).is_empty());
        for (change, words) in cases {
            let found = faults(change);
            assert_eq!(found.len(), 1, "{words}: {found:?}");
            assert!(found[0].starts_with("configs[1]."), "{found:?}");
            assert!(found[0].contains(words), "{words}: {found:?}");
        }
        let both = faults(|c| {
            c.issuer_url.clear();
            c.header.clear();
        });
        assert_eq!(both.len(), 2, "{both:?}");
        let lonely = faults(|c| {
            c.jwk_cert_url.clear();
            c.jwk_cert_ca_file = "Cargo.toml".into();
        });
        assert!(
            lonely.iter().any(|f| f.contains("needs jwk_cert_url")),
            "{lonely:?}"
        );
    }
}
