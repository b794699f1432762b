//! Checks addresses, which may hold passwords. Faults repeat no part that could be one.

use reqwest::Url;

use super::{Database, Jwt};
use hyperfleet_server_kit::settings::{REDACTED, Secret, SettingFault};

/// Schemes of a database URL. The driver accepts any scheme and connects somewhere.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// Parameters for the TLS mode.
const SSL_MODE: [&str; 2] = ["sslmode", "ssl-mode"];
/// Values of these, as PostgreSQL's own clients have them.
const SSL_MODES: [&str; 6] = [
    "disable",
    "allow",
    "prefer",
    "require",
    "verify-ca",
    "verify-full",
];
/// Parameters for the authorities to trust.
const SSL_ROOTS: [&str; 3] = ["sslrootcert", "ssl-root-cert", "ssl-ca"];
/// Further parameters that a database URL may have. The driver ignores unknown ones, but logs them with their values,
/// even passwords.
const PARAMETERS: [&str; 13] = [
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// The faults of the database's URL.
pub(super) fn of_database(database: &Database) -> Vec<SettingFault> {
    let url = database.url.iter();
    let faults = url.flat_map(|url| faults_of_url(url, database));
    let fault = |text| SettingFault::of_key("database.url", format!("database.url {text}"));
    faults.map(fault).collect()
}

/// Whether the port in the URL of a database may be a password: in `postgres://user:1234/name` the host is missing.
pub fn may_be_password(port: u16, url: &Url) -> bool {
    let has_user = !url.username().is_empty() || url.query_pairs().any(|(name, _)| name == "user");
    !has_user && url.port() == Some(port)
}

/// The URL of a database without anything that may be a password; `None` if no part of it is safe. The URL has no faults.
pub(super) fn without_password(url: &Secret) -> Option<String> {
    let mut url = url.expose().parse::<Url>().ok()?;
    let hidden_port = url.port().filter(|port| may_be_password(*port, &url));
    if url.password().is_some() {
        url.set_password(Some(REDACTED)).ok()?;
    }
    let is_secret = |name: &str| name == "password" || name.starts_with("options");
    let pair = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={REDACTED}"),
        _ => pair.to_owned(),
    };
    let pairs = url.query().map(|query| query.split('&').map(pair));
    let query = pairs.map(|pairs| pairs.collect::<Vec<_>>().join("&"));
    url.set_query(query.as_deref());
    let shown = url.to_string();
    Some(match hidden_port {
        Some(port) => shown.replacen(&format!(":{port}"), &format!(":{REDACTED}"), 1),
        None => shown,
    })
}

/// Faults, each to follow the name of the URL.
fn faults_of_url(url: &Secret, database: &Database) -> Vec<String> {
    let mut schemes = SCHEMES.iter();
    let Some(rest) = schemes.find_map(|scheme| url.expose().strip_prefix(scheme)) else {
        return vec!["is not of the form postgres://user:password@host:port/name".to_owned()];
    };
    let end_of_host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (_, beyond) = rest.split_at(end_of_host);
    // After such a character, the rest of a password would count as another part, and appear in messages.
    if beyond.contains(['@', '#']) {
        let text = "has an @ or # beyond its host: in the password and elsewhere, write / as %2F, \
                    ? as %3F, # as %23 and @ as %40";
        return vec![text.to_owned()];
    }
    let query = beyond.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs: Vec<_> = pairs
        .map(|pair| pair.split_once('=').unwrap_or(("", pair)))
        .collect();
    let mut faults = faults_of_parameters(&pairs);
    faults.extend(set_twice(&pairs, database));
    faults
}

fn faults_of_parameters(pairs: &[(&str, &str)]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut names = pairs.iter().map(|(name, _)| name);
    match names.find(|name| !is_parameter(name)) {
        None => {}
        Some(name) if is_plain(name) => {
            faults.push(format!("has a parameter that is not known: {name}"));
        }
        Some(_) => {
            faults.push("has a parameter that is not known; in values, write & as %26".to_owned());
        }
    }
    let is_mode = |text: &str| SSL_MODES.iter().any(|mode| mode.eq_ignore_ascii_case(text));
    let mut pairs = pairs.iter();
    if pairs.any(|(name, value)| SSL_MODE.contains(name) && !is_mode(value)) {
        // The driver would repeat the value.
        let modes = SSL_MODES.join(", ");
        faults.push(format!("has an sslmode that is not one of: {modes}"));
    }
    faults
}

/// TLS options that the URL and the settings both give.
fn set_twice(pairs: &[(&str, &str)], database: &Database) -> Vec<String> {
    let ssl = &database.ssl;
    let has_roots = !ssl.root_cert_file.as_os_str().is_empty();
    let settings = [
        ("database.ssl.mode", ssl.mode.is_some(), &SSL_MODE[..]),
        ("database.ssl.root_cert_file", has_roots, &SSL_ROOTS[..]),
    ];
    let set = settings.into_iter().filter(|(_, is_set, _)| *is_set);
    let twice = set.filter_map(|(setting, _, parameters)| {
        let (said, _) = pairs.iter().find(|(name, _)| parameters.contains(name))?;
        Some(format!(
            "says {said}, and {setting} is set, too: leave one out"
        ))
    });
    twice.collect()
}

fn is_parameter(name: &str) -> bool {
    let mut known = SSL_MODE.iter().chain(&SSL_ROOTS).chain(&PARAMETERS);
    known.any(|known| *known == name) || name.starts_with("options[")
}

/// Whether a text looks like the name of a parameter.
fn is_plain(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b == b'_' || b == b'-';
    !name.is_empty() && name.bytes().all(is_plain)
}

/// The faults of issuers' addresses, which are shown: anything before an `@` may be a password, however the rest is
/// parsed.
pub(super) fn of_issuers(jwt: &Jwt) -> Vec<SettingFault> {
    let mut faults = Vec::new();
    for (index, issuer) in jwt.configs.iter().enumerate() {
        let addresses = [
            ("issuer_url", &issuer.issuer_url),
            ("jwk_cert_url", &issuer.jwk_cert_url),
        ];
        for (name, address) in addresses {
            if address.contains('@') {
                let text = format!(
                    "server.jwt.configs[{index}].{name} must not have a user or a password: it is \
                     shown. Write any other @ as %40"
                );
                faults.push(SettingFault::of_key("server.jwt.configs", text));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::IssuerConfig;
    use crate::config::{Settings, Ssl, SslMode};

    fn faults_of(url: &str, ssl: Ssl) -> String {
        let url = Some(url.to_owned().into());
        let database = Database {
            url,
            ssl,
            ..Settings::default().database
        };
        let faults = of_database(&database);
        let faults = faults.iter().map(ToString::to_string);
        faults.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn no_part_of_a_password_is_repeated() {
        for url in [
            "postgres://app:s3cr?et-part@db/hyperfleet",
            "postgres://app:s3cr?etpart=x@db/hyperfleet",
            "postgres://u:12/s3cret@h/n",
            "postgres://u:12#s3cret@h/n",
            "postgres://u:12#s3cret",
            "postgres://u@h/n?password=a&s3cret",
            "postgres://u@h/n?password=a&etpart",
            "postgres://u@h/n?password=a&s3=cret",
            "postgres://u@h/n?password=a&sslmode=s3cret",
            "mysql://u:s3cret@h/n",
            "s3cret",
        ] {
            let told = faults_of(url, Ssl::default());
            assert!(!told.is_empty(), "{url} is taken");
            for part in ["s3", "cret", "et-part", "etpart"] {
                assert!(!told.contains(part), "{url}: {told}");
            }
        }
        let named = faults_of("postgres://u@h/n?connect_timeout=1", Ssl::default());
        assert!(named.ends_with("not known: connect_timeout"), "{named}");
        for url in [
            "postgres://u:a%2Fb%3Fc%40d@h:5432/n",
            "postgresql://u:p@ss@[::1]/n?sslmode=Require&options[a]=b&",
            "postgres://%2Fsocket/n",
        ] {
            assert_eq!(faults_of(url, Ssl::default()), "", "{url}");
        }
    }

    #[test]
    fn all_of_a_url_is_shown_but_the_password() {
        for (url, shown) in [
            (
                "postgres://u:s3cret@h:5432/n",
                Some("postgres://u:***REDACTED***@h:5432/n"),
            ),
            (
                "postgres://u:p@ss@h/n",
                Some("postgres://u:***REDACTED***@h/n"),
            ),
            (
                "postgres://u@h/n?sslmode=require",
                Some("postgres://u@h/n?sslmode=require"),
            ),
            (
                "postgres://u@h/n?password=s3cret&user=v&options[a]=s3cret",
                Some("postgres://u@h/n?password=***REDACTED***&user=v&options[a]=***REDACTED***"),
            ),
            ("postgres://%2Frun%2Fpg/n", Some("postgres://%2Frun%2Fpg/n")),
            // A host was forgotten: what stands in its place is a password.
            ("postgres://u:s3cret/n", None),
            (
                "postgres://u:12345/n",
                Some("postgres://u:***REDACTED***/n"),
            ),
            (
                "postgres://h:5432/n?user=u",
                Some("postgres://h:5432/n?user=u"),
            ),
            ("postgres://h/n", Some("postgres://h/n")),
        ] {
            assert_eq!(faults_of(url, Ssl::default()), "", "{url}");
            let found = without_password(&url.to_owned().into());
            assert_eq!(found.as_deref(), shown, "{url}");
        }
    }

    #[test]
    fn tls_is_said_by_the_url_or_by_the_settings() {
        let mode = Ssl {
            mode: Some(SslMode::VerifyFull),
            ..Ssl::default()
        };
        let roots = Ssl {
            root_cert_file: "ca.pem".into(),
            ..Ssl::default()
        };
        for (query, ssl, fault) in [
            ("", &mode, ""),
            ("?sslmode=verify-full", &roots, ""),
            ("?sslrootcert=a.pem", &mode, ""),
            (
                "?sslmode=disable",
                &mode,
                "says sslmode, and database.ssl.mode is set",
            ),
            ("?a=b&ssl-mode=prefer", &mode, "says ssl-mode"),
            (
                "?ssl-ca=a.pem",
                &roots,
                "says ssl-ca, and database.ssl.root_cert_file is set",
            ),
        ] {
            let told = faults_of(&format!("postgres://u@h/n{query}"), ssl.clone());
            assert!(told.contains(fault), "{query}: {told}");
            assert_eq!(told.is_empty(), fault.is_empty(), "{query}: {told}");
        }
    }

    #[test]
    fn addresses_of_issuers_hold_no_password() {
        let good = "https://sso.example.com/realms/x";
        for bad in ["https://u:hush@h/k", "https:u:hush@h", "https://u:hu/sh@h"] {
            for (issuer_url, jwk_cert_url) in [(good, bad), (bad, good)] {
                let issuer = IssuerConfig {
                    issuer_url: issuer_url.to_owned(),
                    jwk_cert_url: jwk_cert_url.to_owned(),
                    ..IssuerConfig::default()
                };
                let jwt = Jwt {
                    enabled: false,
                    configs: vec![IssuerConfig::default(), issuer],
                };
                let faults = of_issuers(&jwt);
                let name = if bad == issuer_url {
                    "issuer_url"
                } else {
                    "jwk_cert_url"
                };
                let begin = format!("server.jwt.configs[1].{name} must not have a user");
                assert_eq!(faults.len(), 1, "{bad}: {faults:?}");
                assert!(faults[0].to_string().starts_with(&begin), "{faults:?}");
                assert!(!faults[0].to_string().contains("hu"), "{faults:?}");
            }
        }
    }
}
