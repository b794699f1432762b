//! Hosts and ports: what cannot be one, and what two listeners cannot share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Settings;

/// Longest name of a host, and longest part of one between dots (RFC 1035).
const NAME_LENGTH_MAX: usize = 253;
const LABEL_LENGTH_MAX: usize = 63;

/// What is wrong with where the service listens, and where it looks for its database.
pub(super) fn faults(settings: &Settings) -> Vec<String> {
    let (server, database) = (&settings.server, &settings.database);
    let mut faults = Vec::new();
    for (key, host) in [
        ("server.host", &server.host),
        ("metrics.host", &settings.metrics.host),
        ("health.host", &settings.health.host),
        ("database.host", &database.host),
    ] {
        // PostgreSQL may be asked over a socket, too.
        let is_folder = key == "database.host" && host.starts_with('/');
        if host.trim().is_empty() {
            faults.push(format!("{key} is empty: say where"));
        } else if host.contains(['@', '/']) && !is_folder {
            // It may be a URL with a password, which is not repeated.
            faults.push(format!(
                "{key} is no host, it looks like a URL: give the name of a host, or an address without a port; \
                 a URL of the database belongs into database.url"
            ));
        } else if !is_folder && !is_host(host) {
            faults.push(format!(
                "{key} is {host:?}: give the name of a host, or an address without a port"
            ));
        }
    }
    if !server.hostname.is_empty() && !is_host(&server.hostname) {
        let name = &server.hostname;
        faults.push(format!(
            "server.hostname is {name:?}: give the name of a host, or an address"
        ));
    }
    if database.url.is_none() && database.name.trim().is_empty() {
        faults.push("database.name is empty: say which database".to_owned());
    }
    faults.extend(shared_ports(settings));
    faults
}

/// Listeners that want the same port of the same address. Port 0 is any free one.
fn shared_ports(settings: &Settings) -> Vec<String> {
    let (server, health, metrics) = (&settings.server, &settings.health, &settings.metrics);
    let listeners = [
        ("server", &server.host, server.port),
        ("health", &health.host, health.port),
        ("metrics", &metrics.host, metrics.port),
    ];
    let pairs = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| (&listeners[a], &listeners[b]));
    let shared = pairs
        .into_iter()
        .filter(|(one, other)| one.2 == other.2 && one.2 != 0 && overlap(one.1, other.1));
    shared
        .map(|(one, other)| {
            let ((one, _, port), (other, _, _)) = (one, other);
            format!("{one}.port and {other}.port are both {port}: give one of them another")
        })
        .collect()
}

/// Whether who listens on one of these may be in the way of the other.
fn overlap(one: &str, other: &str) -> bool {
    let is_any = |host: &str| {
        host.parse()
            .is_ok_and(|address: IpAddr| address.is_unspecified())
    };
    let named = |host: &str| {
        let is_local = host.eq_ignore_ascii_case("localhost")
            || host.parse() == Ok(IpAddr::V4(Ipv4Addr::LOCALHOST))
            || host.parse() == Ok(IpAddr::V6(Ipv6Addr::LOCALHOST));
        if is_local {
            "localhost".to_owned()
        } else {
            host.to_lowercase()
        }
    };
    is_any(one) || is_any(other) || named(one) == named(other)
}

/// Whether it is an address, or may be the name of a host. Names of containers have underscores.
fn is_host(text: &str) -> bool {
    if text.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=LABEL_LENGTH_MAX).contains(&label.len())
            && label
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // What ends in a number is an address, or none.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.chars().all(|c| c.is_ascii_digit());
    name.len() <= NAME_LENGTH_MAX && !is_number && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_hosts_and_what_is_more_or_less_is_not() {
        let long = ["a"; 64].concat();
        for host in [
            "localhost",
            "LOCALHOST",
            "api-1.example.com",
            "example.com.",
            "db_1",
            "1and1.example",
            "127.0.0.1",
            "0.0.0.0",
            "::",
            "2001:db8::1",
        ] {
            assert!(is_host(host), "{host}");
        }
        for other in [
            "",
            " ",
            "localhost:8000",
            "http://localhost",
            "[::1]",
            "300.1.1.1",
            "127.0.0",
            "a..b",
            ".a",
            "-a",
            "a-",
            "a b",
            "a/b",
            "caf\u{e9}",
            long.as_str(),
        ] {
            assert!(!is_host(other), "{other}");
        }
        let many = vec!["abcdefgh"; 29].join(".");
        assert!(!is_host(&many), "{} letters", many.len());
    }

    #[test]
    fn what_may_be_a_url_with_a_password_is_not_repeated() {
        for text in ["postgres://u:hush@h/n", "u:hush@h", "http://u:hush@h"] {
            let mut settings = Settings::default();
            settings.server.host = text.to_owned();
            settings.database.host = text.to_owned();
            let said = faults(&settings).join("\n");
            assert_eq!(said.matches("it looks like a URL").count(), 2, "{said}");
            assert!(!said.contains("hush"), "{said}");
        }
    }

    #[test]
    fn listeners_are_in_each_others_way_where_their_addresses_meet() {
        for (one, other, meet) in [
            ("localhost", "localhost", true),
            ("Api.example", "api.EXAMPLE", true),
            ("localhost", "127.0.0.1", true),
            ("::1", "localhost", true),
            ("0.0.0.0", "10.0.0.1", true),
            ("10.0.0.1", "::", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("127.0.0.1", "127.0.0.2", false),
            ("localhost", "api.example", false),
        ] {
            assert_eq!(overlap(one, other), meet, "{one} {other}");
        }
    }
}
