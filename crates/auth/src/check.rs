//! Checks the settings of issuers (`docs/guides/authentication.md`).

use std::fmt::Display;
use std::path::Path;

use regex::Regex;
use reqwest::header::HeaderName;
use reqwest::{Certificate, Url};

use super::config::{Issuer, IssuerConfig, KeyFile};
use super::fetch::{self, KeyAddress};
use super::identity::IdentityRule;
use super::pace::Pace;
use hyperfleet_server_kit::causes::chain;

/// Headers that browsers and proxies fill with something else than a caller's name.
const NOT_FOR_IDENTITIES: [&str; 7] = [
    "authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "x-auth-token",
    "x-forwarded-authorization",
    "proxy-authorization",
];
/// Headers that browsers send on their own.
const NOT_FOR_TOKENS: [&str; 2] = ["cookie", "set-cookie"];

/// Checks the settings of issuers. Reads the files that they name, and nothing else.
///
/// # Errors
///
/// Every error, in the order of the settings.
pub fn issuers(configs: &[IssuerConfig], pace: Pace) -> Result<Vec<Issuer>, Vec<String>> {
    let mut errors = Vec::new();
    let mut issuers = Vec::new();
    for (issuer, config) in configs.iter().enumerate() {
        let mut check = Check {
            issuer,
            errors: &mut errors,
        };
        issuers.push(check.issuer(config, pace));
        let mut others = configs[..issuer].iter();
        if let Some(first) = others.position(|c| accepts_same_tokens(c, config)) {
            let text = format!(
                "is also the issuer_url of configs[{first}], with the same header and audience: \
                 remove one of the two, or give it another header or audience"
            );
            check.error("issuer_url", text);
        }
    }
    if errors.is_empty() {
        Ok(issuers)
    } else {
        Err(errors)
    }
}

/// Checks an issuer's URL.
///
/// # Errors
///
/// What is wrong with it.
pub fn issuer_url(text: &str) -> Result<(), &'static str> {
    url(text).map(drop)
}

/// Collects the errors of one issuer.
struct Check<'a> {
    issuer: usize,
    errors: &'a mut Vec<String>,
}

impl Check<'_> {
    fn error(&mut self, setting: &str, text: impl Display) {
        let issuer = self.issuer;
        self.errors
            .push(format!("configs[{issuer}].{setting} {text}"));
    }

    /// The value of a setting; its error is collected.
    fn good<T>(&mut self, setting: &str, checked: Result<T, impl Display>) -> Option<T> {
        checked.map_err(|text| self.error(setting, text)).ok()
    }

    /// The issuer, without the parts that have errors.
    fn issuer(&mut self, config: &IssuerConfig, pace: Pace) -> Issuer {
        if config.issuer_url.is_empty() {
            self.error("issuer_url", "is required");
        } else {
            self.good("issuer_url", url(&config.issuer_url));
        }
        let has_file = !config.jwk_cert_file.as_os_str().is_empty();
        if config.jwk_cert_url.is_empty() && !has_file {
            self.error(
                "jwk_cert_url",
                "or jwk_cert_file is required: without keys no token can be verified",
            );
        }
        let address = self.address(config, pace);
        let file = has_file.then(|| key_file(&config.jwk_cert_file));
        let file = file.and_then(|file| self.good("jwk_cert_file", file));
        let (header, identity) = (&config.header, &config.identity_header);
        self.good("header", check_header(header, &NOT_FOR_TOKENS, "tokens"));
        if !identity.is_empty() {
            let checked = check_header(identity, &NOT_FOR_IDENTITIES, "identities");
            let is_name = self.good("identity_header", checked).is_some();
            if is_name && identity.eq_ignore_ascii_case(header) {
                self.error("identity_header", "must differ from header");
            }
        }
        if config.identity_claim.is_empty() {
            self.error("identity_claim", "is empty: name a claim, such as email");
        }
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let pattern = some(&config.identity_claim_pattern).and_then(|pattern| {
            let pattern = Regex::new(&pattern).map_err(|error| pattern_error(&error));
            self.good("identity_claim_pattern", pattern)
        });
        Issuer {
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
        }
    }

    fn address(&mut self, config: &IssuerConfig, pace: Pace) -> Option<KeyAddress> {
        const AUTHORITIES: &str = "jwk_cert_ca_file";
        const TOKEN: &str = "jwk_cert_token_file";
        let authorities = self.good(AUTHORITIES, authorities(&config.jwk_cert_ca_file));
        let token_file = &config.jwk_cert_token_file;
        let has_token = !token_file.as_os_str().is_empty();
        if has_token {
            self.good(TOKEN, fetch::read_token(token_file));
        }
        if config.jwk_cert_url.is_empty() {
            let has_authorities = !config.jwk_cert_ca_file.as_os_str().is_empty();
            for (setting, is_set) in [(AUTHORITIES, has_authorities), (TOKEN, has_token)] {
                if is_set {
                    self.error(setting, "needs jwk_cert_url: it is for fetching keys");
                }
            }
            return None;
        }
        let url = self.good("jwk_cert_url", url(&config.jwk_cert_url))?;
        let client = fetch::client(&url, authorities?, pace).map_err(|error| {
            let text = "needs authorities to trust, of the system or in jwk_cert_ca_file";
            format!("{text}: {}", chain(&error))
        });
        let client = self.good("jwk_cert_url", client)?;
        Some(KeyAddress {
            url,
            client,
            token_file: has_token.then(|| token_file.clone()),
        })
    }
}

/// A URL whose answers cannot be changed on the way, and that contains no secret.
fn url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "is not a URL such as https://issuer.example.com")?;
    let is_safe = match url.scheme() {
        "https" => url.has_host(),
        "http" => fetch::is_loopback(&url),
        _ => false,
    };
    if !is_safe {
        return Err("must be https; http is allowed only for localhost, 127.0.0.1 and [::1]");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not have a user or a password: it is shown");
    }
    Ok(url)
}

/// What is wrong with a pattern, without the picture of where, which takes several lines.
fn pattern_error(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    let reason = last.strip_prefix("error: ").unwrap_or(last);
    format!("cannot be used: {reason}")
}

fn authorities(path: &Path) -> Result<Vec<Certificate>, String> {
    if path.as_os_str().is_empty() {
        return Ok(Vec::new());
    }
    let file = path.display();
    let text = fetch::read(path).map_err(|error| format!("{file}: {error}"))?;
    let bundle = Certificate::from_pem_bundle(&text).unwrap_or_default();
    if bundle.is_empty() {
        return Err(format!("{file} holds no PEM certificates"));
    }
    Ok(bundle)
}

fn key_file(path: &Path) -> Result<KeyFile, String> {
    let published = fetch::read(path).and_then(fetch::parse);
    Ok(KeyFile {
        path: path.to_owned(),
        published: published.map_err(|error| format!("{}: {error}", path.display()))?,
    })
}

fn check_header(name: &str, refused: &[&str], what: &str) -> Result<(), String> {
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err(format!("{name:?} is not a valid header name"));
    }
    if refused.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Err(format!("{name} cannot carry {what}"));
    }
    Ok(())
}

/// Whether both accept the same tokens, so that the second one would never decide the identity. Issuers and audiences
/// are compared exactly, as in tokens.
fn accepts_same_tokens(one: &IssuerConfig, other: &IssuerConfig) -> bool {
    !one.issuer_url.is_empty()
        && one.issuer_url == other.issuer_url
        && one.header.eq_ignore_ascii_case(&other.header)
        && one.audience == other.audience
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

    fn errors(change: impl Fn(&mut IssuerConfig)) -> Vec<String> {
        let mut config = IssuerConfig {
            issuer_url: "https://second.example".to_owned(),
            ..config()
        };
        change(&mut config);
        let checked = issuers(&[self::config(), config], Pace::default());
        checked.err().unwrap_or_default()
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
            let none = errors(|config| {
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
            let found = errors(change);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                found[0].contains("must not have a user or a password"),
                "{found:?}"
            );
            assert!(!found[0].contains("hush"), "{found:?}");
        }
        for bad in [
            "http://issuer.example",
            "http://127.0.0.1.evil.example",
            "http://localhost.",
            "file:///etc/keys",
            "issuer.example",
            "https://",
        ] {
            let found = errors(|config| {
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
    fn entries_of_an_issuer_differ_in_header_or_audience() {
        let again: [Change; 2] = [
            |config| config.issuer_url = self::config().issuer_url,
            |config| {
                config.issuer_url = self::config().issuer_url;
                config.header = "AUTHORIZATION".to_owned();
                config.identity_claim = "sub".to_owned();
            },
        ];
        for change in again {
            let found = errors(change);
            assert_eq!(found.len(), 1, "{found:?}");
            let says =
                "configs[1].issuer_url is also the issuer_url of configs[0], with the same header";
            assert!(found[0].starts_with(says), "{found:?}");
        }
        let other: [Change; 2] = [
            |config| config.audience = "api".to_owned(),
            |config| config.header = "X-Token".to_owned(),
        ];
        for change in other {
            let none = errors(|config| {
                config.issuer_url = self::config().issuer_url;
                change(config);
            });
            assert!(none.is_empty(), "{none:?}");
        }
        // `iss` is compared to the letter: this is another one, as after a move.
        let slash = errors(|config| config.issuer_url = self::config().issuer_url + "/");
        assert!(slash.is_empty(), "{slash:?}");
        // A setting that is missing in both is reported as missing.
        let none = vec![IssuerConfig::default(); 2];
        let found = issuers(&none, Pace::default()).unwrap_err();
        assert!(
            !found
                .iter()
                .any(|error| error.contains("is also the issuer_url of")),
            "{found:?}"
        );
    }

    #[test]
    fn every_setting_that_cannot_be_used_is_named() {
        let cases: [(Change, &str); 17] = [
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
            (
                |c| c.jwk_cert_token_file = "/nowhere/token".into(),
                "jwk_cert_token_file /nowhere/token",
            ),
            (
                |c| c.jwk_cert_token_file = "Cargo.toml".into(),
                "jwk_cert_token_file Cargo.toml holds no token",
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
        assert!(errors(|_| {}).is_empty());
        for (change, words) in cases {
            let found = errors(change);
            assert_eq!(found.len(), 1, "{words}: {found:?}");
            assert!(found[0].starts_with("configs[1]."), "{found:?}");
            assert!(found[0].contains(words), "{words}: {found:?}");
        }
        let both = errors(|c| {
            c.issuer_url.clear();
            c.header.clear();
        });
        assert_eq!(both.len(), 2, "{both:?}");
        let lonely = errors(|c| {
            c.jwk_cert_url.clear();
            c.jwk_cert_ca_file = "Cargo.toml".into();
            c.jwk_cert_token_file = "Cargo.toml".into();
        });
        let needs = lonely.iter().filter(|f| f.contains("needs jwk_cert_url"));
        assert_eq!(needs.count(), 2, "{lonely:?}");
    }
}
