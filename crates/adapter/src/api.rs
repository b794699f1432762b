//! The client of the HyperFleet API.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{AUTHORIZATION, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::{Error, unavailable};
use super::report::{Report, StoredReport};
use super::resource::Resource;
use super::token::Token;
use super::watch::{FIELDS, SILENCE_MAX, Watch, WatchEnd};

/// Root of the API on every server.
const ROOT: &str = "/api/hyperfleet/v1";
/// Items of a page: the service's maximum.
const PAGE_SIZE: u64 = 100;
/// Timeout of a request.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Largest response, in bytes. The service's largest page, of 100 resources of 1 MiB with their labels and conditions, is
/// smaller; what a proxy or another server sends may never end.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of an error response that become part of the error.
const DETAIL_BYTES_MAX: usize = 1000;
/// Prefix of the codes of the service's own 404s.
const NOT_FOUND: &str = "HYPERFLEET-NTF-";
/// Code of a 404 without a route.
const NO_ROUTE: &str = "HYPERFLEET-NTF-000";

#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    #[error("{0:?} is not the URL of an API, such as http://127.0.0.1:8000")]
    Base(String),
    /// The HTTP library cannot start.
    #[error("the HTTP client cannot start")]
    Http(#[source] reqwest::Error),
}

#[derive(Debug)]
pub struct Page {
    pub items: Vec<Resource>,
    /// `None` on the last page.
    pub next: Option<PageToken>,
}

/// Where a list continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageToken {
    /// The service's `continue` token.
    Continue(String),
    /// A page number, for services without such tokens.
    Number(u64),
}

/// The result of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    Stored,
    /// The service has a newer one, or the resource has changed: read it again.
    Discarded,
    /// The resource no longer exists.
    Gone,
}

/// A client of one server.
#[derive(Debug, Clone)]
pub struct Api {
    http: reqwest::Client,
    /// For answers that do not end: they have no timeout as long as something arrives.
    endless: reqwest::Client,
    /// Scheme, host and port, without a trailing slash.
    host: String,
    token: Token,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Value>,
    #[serde(default)]
    total: u64,
    #[serde(rename = "continue")]
    next: Option<String>,
}

impl Api {
    /// A client of the server at a URL, such as `https://hyperfleet.example.com`.
    ///
    /// # Errors
    /// The URL is not HTTP.
    pub fn new(base: &str, token: Token) -> Result<Self, SettingError> {
        let user_agent = concat!("hyperfleet-adapter/", env!("CARGO_PKG_VERSION"));
        Self::named(base, token, user_agent)
    }

    /// The same with another `User-Agent`.
    ///
    /// # Errors
    /// The URL is not HTTP.
    pub fn named(base: &str, token: Token, user_agent: &str) -> Result<Self, SettingError> {
        let wrong = || SettingError::Base(base.to_owned());
        let url = Url::parse(base).map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(wrong());
        }
        // Fails only if a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = || {
            reqwest::Client::builder()
                .user_agent(user_agent)
                .redirect(redirect::Policy::none())
        };
        let http = client().timeout(ANSWER_TIME).build();
        let endless = client()
            .connect_timeout(ANSWER_TIME)
            .read_timeout(SILENCE_MAX)
            .build();
        let host = base.trim_end_matches('/').trim_end_matches(ROOT).to_owned();
        Ok(Self {
            http: http.map_err(SettingError::Http)?,
            endless: endless.map_err(SettingError::Http)?,
            host,
            token,
        })
    }

    /// A page of the resources of a kind that match a search, including those being deleted.
    ///
    /// # Errors
    /// The service is unreachable or refuses.
    pub async fn list(
        &self,
        plural: &str,
        search: Option<&str>,
        from: Option<&PageToken>,
    ) -> Result<Page, Error> {
        let mut query = vec![
            ("includeDeleted", "true".to_owned()),
            ("size", PAGE_SIZE.to_string()),
        ];
        query.extend(search.map(|search| ("search", search.to_owned())));
        query.extend(from.map(|from| match from {
            PageToken::Continue(place) => ("continue", place.clone()),
            PageToken::Number(number) => ("page", number.to_string()),
        }));
        let request = self
            .http
            .request(Method::GET, self.list_url(plural, query)?);
        let list: List = read(self.send(request).await?).await?;
        let items: Result<Vec<_>, _> = list.items.into_iter().map(Resource::read).collect();
        let items = items.map_err(|error| Error::Unreadable(error.to_string()))?;
        let number = match from {
            Some(PageToken::Number(number)) => *number,
            _ => 1,
        };
        let is_last = items.is_empty() || number * PAGE_SIZE >= list.total;
        let next = match list.next {
            Some(place) => Some(PageToken::Continue(place)),
            None if matches!(from, Some(PageToken::Continue(_))) || is_last => None,
            None => Some(PageToken::Number(number + 1)),
        };
        Ok(Page { items, next })
    }

    /// The changes of the list of a kind: after a position, or from now on.
    ///
    /// # Errors
    /// The service has no watch, does not store the changes any more, is unreachable or refuses.
    pub(crate) async fn watch(
        &self,
        plural: &str,
        search: Option<&str>,
        after: Option<&str>,
    ) -> Result<Watch, WatchEnd> {
        let mut query = vec![
            ("watch", "true".to_owned()),
            ("includeDeleted", "true".to_owned()),
            ("fields", FIELDS.to_owned()),
        ];
        query.extend(search.map(|search| ("search", search.to_owned())));
        query.extend(after.map(|position| ("position", position.to_owned())));
        let url = self.list_url(plural, query)?;
        let request = self.endless.request(Method::GET, url);
        Watch::begin(self.send(request).await)
    }

    /// The resource at a path; `None` if it does not exist.
    ///
    /// # Errors
    /// The service is unreachable or refuses.
    pub async fn get(&self, href: &str) -> Result<Option<Resource>, Error> {
        let request = self.http.request(Method::GET, self.url(href));
        let Some(response) = absent_as_none(self.send(request).await)? else {
            return Ok(None);
        };
        let resource = Resource::read(read(response).await?);
        resource
            .map(Some)
            .map_err(|error| Error::Unreadable(error.to_string()))
    }

    /// Sends a report on a resource as it was read. The service accepts reports that are at most half an hour
    /// old.
    ///
    /// # Errors
    /// The service is unreachable or refuses.
    pub async fn report(
        &self,
        adapter: &str,
        resource: &Resource,
        report: &Report,
        observed: DateTime<Utc>,
    ) -> Result<Reported, Error> {
        let url = self.url(&format!("{}/statuses", resource.href));
        let body = report.body(adapter, resource.generation, observed);
        let request = self.http.request(Method::PUT, url);
        let request = request
            .header("Content-Type", "application/json")
            .body(body.to_string());
        let Some(response) = absent_as_none(self.send(request).await)? else {
            return Ok(Reported::Gone);
        };
        Ok(if response.status() == StatusCode::NO_CONTENT {
            Reported::Discarded
        } else {
            Reported::Stored
        })
    }

    /// An adapter's stored report on a resource; `None` if there is none.
    ///
    /// # Errors
    /// The service is unreachable or refuses.
    pub async fn stored_report(
        &self,
        adapter: &str,
        resource: &Resource,
    ) -> Result<Option<StoredReport>, Error> {
        let mut page = 1;
        loop {
            let path = format!("{}/statuses?size={PAGE_SIZE}&page={page}", resource.href);
            let request = self.http.request(Method::GET, self.url(&path));
            let Some(response) = absent_as_none(self.send(request).await)? else {
                return Ok(None);
            };
            let list: List = read(response).await?;
            let is_last = list.items.is_empty() || page * PAGE_SIZE >= list.total;
            let is_its = |item: &Value| item["adapter"] == adapter;
            if let Some(item) = list.items.into_iter().find(is_its) {
                let report = StoredReport::read(item);
                return report
                    .map(Some)
                    .map_err(|error| Error::Unreadable(error.to_string()));
            }
            if is_last {
                return Ok(None);
            }
            page += 1;
        }
    }

    /// Acquires or renews a lease of the service; whether this holder has it now.
    ///
    /// # Errors
    /// The service is unreachable or refuses.
    pub(crate) async fn acquire(
        &self,
        lease: &str,
        holder: &str,
        seconds: u32,
    ) -> Result<bool, Error> {
        let request = self.http.request(Method::PUT, self.lease_url(lease));
        let body = json!({"holder": holder, "duration_seconds": seconds});
        let request = request
            .header("Content-Type", "application/json")
            .body(body.to_string());
        match self.send(request).await {
            Ok(_) => Ok(true),
            Err(Error::Refused { status: 409, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Releases a lease, if this holder has it.
    ///
    /// # Errors
    /// The service is unreachable or refuses.
    pub(crate) async fn release(&self, lease: &str, holder: &str) -> Result<(), Error> {
        let url = self.lease_url(lease);
        let url = Url::parse_with_params(&url, [("holder", holder)])
            .map_err(|error| Error::Unreadable(format!("{url}: {error}")))?;
        let sent = self.send(self.http.request(Method::DELETE, url)).await;
        absent_as_none(sent).map(drop)
    }

    fn lease_url(&self, lease: &str) -> String {
        format!("{}{ROOT}/leases/{lease}", self.host)
    }

    fn list_url(&self, plural: &str, query: Vec<(&str, String)>) -> Result<Url, Error> {
        let path = format!("{}{ROOT}/{plural}", self.host);
        Url::parse_with_params(&path, query)
            .map_err(|error| Error::Unreadable(format!("{path}: {error}")))
    }

    fn url(&self, href: &str) -> String {
        format!("{}{href}", self.host)
    }

    /// Sends a request. Any response other than success is an error.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let token = self.token.current().await.map_err(Error::Token)?;
        let request = match token {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        };
        let response = request.send().await.map_err(unavailable)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let again_after = response.headers().get(RETRY_AFTER);
        let again_after = again_after.and_then(|value| value.to_str().ok()?.parse().ok());
        let detail = beginning(response, DETAIL_BYTES_MAX).await;
        let detail = detail.map_or_else(|_| String::new(), |(detail, _)| text_of(&detail));
        let is_later = status.is_server_error()
            || matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
            );
        Err(if is_later {
            Error::Unavailable {
                message: format!("{status} {detail}"),
                again_after: again_after.map(Duration::from_secs),
            }
        } else {
            Error::Refused {
                status: status.as_u16(),
                detail,
            }
        })
    }
}

/// `None` for a resource that does not exist. A 404 of the router or of a proxy stays an error: it is not about
/// the resource.
fn absent_as_none(sent: Result<Response, Error>) -> Result<Option<Response>, Error> {
    match sent {
        Err(Error::Refused {
            status: 404,
            detail,
        }) if detail.contains(NOT_FOUND) && !detail.contains(NO_ROUTE) => Ok(None),
        sent => sent.map(Some),
    }
}

async fn read<T: for<'a> Deserialize<'a>>(response: Response) -> Result<T, Error> {
    let (body, is_whole) = beginning(response, ANSWER_BYTES_MAX)
        .await
        .map_err(unavailable)?;
    if !is_whole {
        let fault = format!("it has more than {ANSWER_BYTES_MAX} bytes");
        return Err(Error::Unreadable(fault));
    }
    serde_json::from_slice(&body).map_err(|error| Error::Unreadable(error.to_string()))
}

/// A body up to this size, and whether that is all of it.
async fn beginning(
    mut response: Response,
    bytes_max: usize,
) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let rest = bytes_max - body.len();
        if chunk.len() > rest {
            body.extend_from_slice(&chunk[..rest]);
            return Ok((body, false));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, true))
}

/// A text that may be cut in the middle of a character.
fn text_of(body: &[u8]) -> String {
    let valid = body.utf8_chunks().next();
    valid.map_or_else(String::new, |chunk| chunk.valid().to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server whose response has no end.
    fn endless(status: &'static str) -> Api {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = client.read(&mut request);
            let _ = write!(client, "HTTP/1.1 {status}\r\n\r\n");
            while client.write_all(&[b'x'; 4096]).is_ok() {}
        });
        Api::new(&base, Token::None).unwrap()
    }

    #[tokio::test]
    async fn an_error_has_the_beginning_of_a_response_without_end() {
        let refused = endless("500 Oops").get("/a").await.unwrap_err();
        let detail = "x".repeat(DETAIL_BYTES_MAX);
        let expected = format!("the API cannot serve now: 500 Internal Server Error {detail}");
        assert_eq!(refused.to_string(), expected);
    }

    #[tokio::test]
    async fn no_more_of_a_response_is_read_than_may_be() {
        let api = endless("200 OK");
        let response = api.send(api.http.get(api.url("/a"))).await.unwrap();
        let (body, is_whole) = beginning(response, 10_000).await.unwrap();
        assert_eq!((body.len(), is_whole), (10_000, false));
    }

    #[test]
    fn a_character_that_is_cut_is_left_out() {
        assert_eq!(text_of("aé".as_bytes()), "aé");
        assert_eq!(text_of(&"aé".as_bytes()[..2]), "a");
        assert_eq!(text_of(b""), "");
    }
}
