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
