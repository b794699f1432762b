//! Checks the host name of requests, against DNS rebinding.
//!
//! A web page can make its own name resolve to this machine and let the browser call our listener as the page's
//! own server. Browsers send the name that they used, and a page's name is neither an IP address nor this
//! machine's name.

use std::net::{IpAddr, Ipv6Addr};

use actix_web::dev::ServiceRequest;
use actix_web::http::header::{HOST, HeaderValue};
use actix_web::http::{Method, StatusCode};

use super::Fault;

/// Host names that a server accepts over TCP. Browsers cannot use unix sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// Any: callers are authenticated.
    Any,
    /// `localhost`, any IP address, and this name in any case, if there is one.
    Own(Option<String>),
}

/// Refuses requests that a page of another site made a browser send. The page cannot read the answer, but an
/// order needs none. Browsers send the origin (Fetch Metadata); other clients do not.
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
        "requests from pages of other sites are refused",
    ))
}

impl Hosts {
    /// Refuses a request for another host name.
    ///
    /// # Errors
    /// 421.
    pub(super) fn check(&self, request: &ServiceRequest) -> Result<(), Fault> {
        if *self == Self::Any || request.peer_addr().is_none() {
            return Ok(());
        }
        // The request target takes precedence over the header (RFC 9112 §3.2.2). A request without a host is
        // not from a browser.
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
