//! How a process reaches a listener on the same machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An address that reaches a listener on this one: a listener on every address is also on the loopback.
pub(super) fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// The URL of a listener without TLS.
pub(super) fn url(listener: SocketAddr) -> String {
    let address = SocketAddr::new(reachable(listener.ip()), listener.port());
    format!("http://{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_every_address_is_reached_by_the_loopback() {
        for (listener, expected) in [
            ("127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("0.0.0.0:8001", "http://127.0.0.1:8001"),
            ("[::]:8002", "http://[::1]:8002"),
        ] {
            assert_eq!(url(listener.parse().unwrap()), expected);
        }
    }
}
