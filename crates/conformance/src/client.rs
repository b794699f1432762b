//! The HTTP client for one server.

use std::error::Error;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, redirect};
use serde_json::Value;

use crate::answer::Answer;
use crate::verdict::{Failure, Verdict};

/// Root of the API on every server.
pub(crate) const ROOT: &str = "/api/hyperfleet/v1";

const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Bytes of a request's body that a report shows.
const SHOWN_BYTES: usize = 200;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("--base {0:?} is not a URL such as http://127.0.0.1:8000")]
    Base(String),
    /// The token has characters that headers can't have.
    #[error("the token cannot be sent: it must be one line of printable characters")]
    Token,
    /// A header has characters that headers can't have.
    #[error("header {0:?} cannot be sent: write NAME: VALUE with printable characters")]
    Header(String),
    /// The HTTP library cannot start.
    #[error("the HTTP client cannot start: {}", chain(.0))]
    Http(#[source] reqwest::Error),
}

pub(crate) struct Client {
    http: reqwest::Client,
    /// Scheme, host and port, without a trailing slash.
    host: String,
}

impl Client {
    /// With a token and headers (`NAME: VALUE`) for every request.
    pub(crate) fn new(
        base: &str,
        token: Option<&str>,
        headers: &[String],
    ) -> Result<Self, ClientError> {
        let wrong_base = || ClientError::Base(base.to_owned());
        let url = reqwest::Url::parse(base).map_err(|_| wrong_base())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(wrong_base());
        }
        let host = base.trim_end_matches('/').trim_end_matches(ROOT).to_owned();
        let mut all = HeaderMap::new();
        if let Some(token) = token {
            let mut value =
                HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| ClientError::Token)?;
            value.set_sensitive(true);
            all.insert(AUTHORIZATION, value);
        }
        for header in headers {
            let wrong = || ClientError::Header(header.clone());
            let (name, value) = header.split_once(':').ok_or_else(wrong)?;
            let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
            all.append(name, value.trim().parse().map_err(|_| wrong())?);
        }
        // Fails only if a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!(
                "hyperfleet-conformance/",
                env!("CARGO_PKG_VERSION")
            ))
            .default_headers(all)
            .timeout(ANSWER_TIME)
            .redirect(redirect::Policy::none())
            .no_proxy();
        if url.scheme() == "http" {
            builder = builder.tls_certs_only([]);
        }
        let http = builder.build().map_err(ClientError::Http)?;
        Ok(Self { http, host })
    }

    /// Sends a request to a path below the host.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Verdict<Answer> {
        let text = String::from_utf8_lossy(&body);
        let shown: String = text.chars().take(SHOWN_BYTES).collect();
        let request = format!("{method} {path} {shown}").trim_end().to_owned();
        let no_answer =
            |error: reqwest::Error| Failure::NoAnswer(format!("{request}: {}", chain(&error)));
        let wrong = |_| Failure::NoAnswer(format!("{method} is no method"));
        let method: Method = method.parse().map_err(wrong)?;
        let url = format!("{}{path}", self.host);
        let mut sent = self.http.request(method, url);
        for (name, value) in headers {
            sent = sent.header(*name, *value);
        }
        if !body.is_empty() {
            sent = sent.body(body);
        }
        let response = sent.send().await.map_err(no_answer)?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.map_err(no_answer)?.to_vec();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Ok(Answer {
            request,
            status,
            headers,
            bytes,
            body,
        })
    }
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += ": ";
        text += &cause.to_string();
        source = cause.source();
    }
    text
}
