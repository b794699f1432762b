//! Checks of hosts and ports, and of listeners with the same port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest name of a host, and longest part of one between dots (RFC 1035).
const NAME_LENGTH_MAX: usize = 253;
const LABEL_LENGTH_MAX: usize = 63;

/// The fault of a host, with its setting. `where_urls_go` completes the message for a URL.
pub fn host_fault(key: &str, host: &str, where_urls_go: &str) -> Option<String> {
    if host.trim().is_empty() {
        Some(format!("{key} is empty: set a host"))
    } else if host.contains(['@', '/']) {
        // It may be a URL with a password, which is not repeated.
        Some(format!(
            "{key} is no host, it looks like a URL: give the name of a host, or an address without a port{where_urls_go}"
        ))
    } else if !is_host(host) {
        Some(format!(
            "{key} is {host:?}: give the name of a host, or an address without a port"
        ))
    } else {
        None
    }
}

/// Faults of listeners, each with its section, host and port, that use the same port of the same address. Port
/// 0 is any free one.
pub fn shared_ports(listeners: &[(&str, &str, u16)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (index, (one, host, port)) in listeners.iter().enumerate() {
        for (other, other_host, other_port) in listeners.iter().skip(index + 1) {
            if port == other_port && *port != 0 && overlap(host, other_host) {
                faults.push(format!(
                    "{one}.port and {other}.port are both {port}: give one of them another"
                ));
            }
        }
    }
    faults
}

/// Whether listeners on both could conflict.
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

/// Whether it is an address or a valid host name. Names of containers have underscores.
pub fn is_host(text: &str) -> bool {
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
    // A name that ends in a number must be an address.
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
