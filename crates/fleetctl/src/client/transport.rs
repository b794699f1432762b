//! Requests and responses: addresses, timeouts, pages and failures.

use std::fmt::Write as _;
use std::time::Duration;

use futures_util::{Stream, stream};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answers::{ErrorAnswer, Page};
use super::error::Error;
use crate::output;

/// Longest response. Pages of the API are much shorter.
const ANSWER_MAX: usize = 64 << 20;
const REFUSAL_MAX: usize = 1 << 20;

/// The connection to one server.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    pub(super) http: reqwest::Client,
    /// `…/fleet/v1/`
    pub(super) base: Url,
    /// The endpoint as users name it.
    pub(super) endpoint: String,
    pub(super) timeout: Duration,
    pub(super) prints_calls: bool,
}

/// A text that arrives in pieces.
#[derive(Debug)]
pub(crate) struct Text {
    response: Response,
    endpoint: String,
    /// Timeout of a piece.
    time: Duration,
}

impl Text {
    /// The same text with another timeout of its pieces.
    pub(super) fn with_timeout(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// A text that does not follow the API.
    pub(super) fn unreadable(&self, cause: &str) -> Error {
        Error::Unreadable {
            endpoint: self.endpoint.clone(),
            call: format!("GET {}", self.response.url().path()),
            cause: cause.to_owned(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// The connection broke, or the server fell silent.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let endpoint = &self.endpoint;
        let piece = async {
            let piece = self.response.chunk().await;
            piece.map_err(|error| broken(endpoint, &error))
        };
        let piece = within(self.time, endpoint, piece).await?;
        Ok(piece.map(|piece| piece.to_vec()))
    }
}

impl Transport {
    pub(super) fn url(&self, path: &[&str], query: &[(&str, String)]) -> Url {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .expect("URLs of http have paths")
            .pop_if_empty()
            .extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    pub(super) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.http.request(method, url)
    }

    pub(super) fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
        request
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    pub(super) async fn put(&self, url: Url, body: &Value) -> Result<(), Error> {
        let request = Self::with_json(self.request(Method::PUT, url), body);
        self.done(request).await.map(drop)
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, url: Url) -> Result<T, Error> {
        let call = format!("GET {}", url.path());
        let bytes = self.done(self.request(Method::GET, url)).await?;
        serde_json::from_slice(&bytes).map_err(|error| self.unreadable(call, &error.to_string()))
    }

    fn unreadable(&self, call: String, cause: &str) -> Error {
        let (endpoint, cause) = (self.endpoint.clone(), cause.to_owned());
        Error::Unreadable {
            endpoint,
            call,
            cause,
        }
    }

    pub(super) fn pages<P: Page>(
        &self,
        filter: Vec<(&'static str, String)>,
    ) -> impl Stream<Item = Result<Vec<P::Item>, Error>> {
        let client = self.clone();
        stream::try_unfold(Some(None::<String>), move |token| {
            let (client, mut query) = (client.clone(), filter.clone());
            async move {
                let Some(token) = token else { return Ok(None) };
                query.extend(token.clone().map(|token| ("nextPageToken", token)));
                let url = client.url(&[P::PATH], &query);
                let call = format!("GET {}", url.path());
                let page: P = client.get(url).await?;
                let (items, next) = page.into_parts();
                if next.is_some() && next == token {
                    let cause = "a page names itself as the next one";
                    return Err(client.unreadable(call, cause));
                }
                Ok(Some((items, next.map(Some))))
            }
        })
    }

    /// Sends a request with a timeout of the whole response; returns its body.
    pub(super) async fn done(&self, request: RequestBuilder) -> Result<Vec<u8>, Error> {
        let answer = async {
            let response = accepted(self.send(request).await?).await?;
            let body = body(response, ANSWER_MAX).await;
            let body = body.map_err(|error| broken(&self.endpoint, &error))?;
            body.ok_or_else(|| Error::TooLong {
                endpoint: self.endpoint.clone(),
            })
        };
        self.in_time(answer).await
    }

    /// Sends a request with a timeout of the response's head.
    pub(super) async fn stream(&self, url: Url) -> Result<Response, Error> {
        let request = self.request(Method::GET, url);
        self.in_time(async { accepted(self.send(request).await?).await })
            .await
    }

    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        if self.prints_calls
            && let Some(request) = request.try_clone().and_then(|r| r.build().ok())
        {
            output::notice(&format!("DEBUG {} {}", request.method(), request.url()));
        }
        let sent =
            self.in_time(async { request.send().await.map_err(|e| broken(&self.endpoint, &e)) });
        let response = sent.await?;
        if self.prints_calls {
            output::notice(&format!("DEBUG {}", response.status()));
        }
        Ok(response)
    }

    pub(super) async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        within(self.timeout, &self.endpoint, answer).await
    }

    /// A text, with a timeout of each of its pieces.
    pub(super) async fn text(&self, url: Url) -> Result<Text, Error> {
        Ok(Text {
            response: self.stream(url).await?,
            endpoint: self.endpoint.clone(),
            time: self.timeout,
        })
    }
}

/// A result with a timeout.
async fn within<T>(
    time: Duration,
    endpoint: &str,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let in_time = tokio::time::timeout(time, answer).await;
    in_time.unwrap_or_else(|_| {
        let endpoint = endpoint.to_owned();
        Err(Error::TimedOut { endpoint, time })
    })
}

/// The body of a response; `None` if it exceeds the limit.
///
/// # Errors
/// The connection broke.
pub(crate) async fn body(
    mut response: Response,
    limit: usize,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

fn broken(endpoint: &str, error: &reqwest::Error) -> Error {
    Error::Unreachable {
        endpoint: endpoint.to_owned(),
        cause: causes(error),
    }
}

/// The response, if it is a success.
async fn accepted(response: Response) -> Result<Response, Error> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = body(response, REFUSAL_MAX).await;
    let body = body.unwrap_or_default().unwrap_or_default();
    let message = serde_json::from_slice::<ErrorAnswer>(&body)
        .unwrap_or_default()
        .error
        .message;
    Err(Error::Refused {
        status: status.as_u16(),
        message,
    })
}

/// An error and its causes, without repetitions.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            let separator = if text.is_empty() { "" } else { ": " };
            let _ = write!(text, "{separator}{said}");
        }
        cause = error.source();
    }
    text
}
