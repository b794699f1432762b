//! What a server may be called by its clients.
//!
//! A page of the web can make its own name mean this machine, and then has the browser call what listens there as if it
//! were the page's own server (DNS rebinding). Browsers say by which name they came, and what is an IP address or is
//! called as this machine is, is no page's.

use std::net::{IpAddr, Ipv6Addr};

use actix_web::dev::ServiceRequest;
use actix_web::http::header::{HOST, HeaderValue};
use actix_web::http::{Method, StatusCode};

use super::Fault;

/// By which names a server lets itself be called over TCP. Over unix sockets no browser comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// By any: who calls is known by other means.
    Any,
    /// By `localhost`, by any IP address, and by this name, whatever its case, if there is one.
    Own(Option<String>),
}

/// Refuses what a page of another site has a browser send. Reading such an answer is not let to the page, but an order
/// needs no answer. Browsers say where a request is from (Fetch Metadata); no other client does.
///
/// # Errors
/// 403.
pub(super) fn refuse_other_sites(request: &ServiceRequest) -> Result<(), Fault> {
    let site = request.headers().get("sec-fetch-site");
    let is_own = site.is_none_or(|site| site == "none" || site == "same-origin");
    if is_own || request.method() == Method::GET {
        return Ok(());
    }
    Err(Fault::new(
        StatusCode::FORBIDDEN,
        "a page of another site may change nothing",
    ))
}

impl Hosts {
    /// Refuses a request that was sent to another name.
    ///
    /// # Errors
    /// 421.
    pub(super) fn check(&self, request: &ServiceRequest) -> Result<(), Fault> {
        if *self == Self::Any || request.peer_addr().is_none() {
            return Ok(());
        }
        // What the target names counts before the header (RFC 9112 §3.2.2). Who names nothing is no browser.
        let target = request.uri().authority().map(|it| it.as_str().as_bytes());
        let headers = request.headers().get_all(HOST).map(HeaderValue::as_bytes);
        let mut hosts = target.into_iter().chain(headers);
        if hosts.all(|host| self.is_ours(host)) {
            return Ok(());
        }
        Err(Fault::new(
            StatusCode::MISDIRECTED_REQUEST,
            "this server does not go by that name: call it by an IP address, localhost, or the name of its machine",
        ))
    }

    fn is_ours(&self, host: &[u8]) -> bool {
        let Ok(host) = std::str::from_utf8(host) else {
            return false;
        };
        if let Some(rest) = host.strip_prefix('[') {
            let literal = rest.split(']').next().unwrap_or_default();
            return literal.parse::<Ipv6Addr>().is_ok();
        }
        let name = host.split(':').next().unwrap_or_default();
        let is_own = |own: &String| name.eq_ignore_ascii_case(own);
        let Self::Own(own) = self else { return true };
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok()
            || own.as_ref().is_some_and(is_own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_own_names_are_ours_and_nothing_else() {
        let hosts = Hosts::Own(Some("node1".to_owned()));
        for host in [
            "localhost",
            "LocalHost:8001",
            "127.0.0.1",
            "192.0.2.7:8001",
            "[::1]:8001",
            "[::1]",
            "Node1:8001",
        ] {
            assert!(hosts.is_ours(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:8001",
            "127.0.0.1.evil.example",
            "node1.evil.example",
            "[evil]",
            ":8001",
            "u@localhost",
            "\u{e9}",
        ] {
            assert!(!hosts.is_ours(host.as_bytes()), "{host}");
        }
        assert!(!hosts.is_ours(b"\xff"));
        assert!(!Hosts::Own(None).is_ours(b"node1"));
    }
}
