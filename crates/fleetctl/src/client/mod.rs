//! The fleet API over HTTP: TCP, TLS or a unix socket.
//!
//! Each call has a time limit, so that a stalled server never hangs the caller. Streams are limited until their head
//! is there.

mod answers;
mod build;
mod error;
mod events;

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use futures_util::{Stream, TryStreamExt as _, stream};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::unit::UnitOption;
use hyperfleet_fleet_model::wire::{ExplanationView, StatePage, StateView, UnitPage, UnitView};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use answers::{ErrorAnswer, MachinePage, Page};

pub(crate) use answers::{Drain, Gone, Machine, Move, RebalancePlan};
pub(crate) use build::{ConnectionSettings, TlsFiles, connect, http_client};
pub(crate) use error::Error;
pub(crate) use events::{Event, Events};

/// A client of one server.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    /// `…/fleet/v1/`
    base: Url,
    /// The endpoint as users name it.
    endpoint: String,
    timeout: Duration,
    prints_calls: bool,
}

impl Client {
    /// The endpoint as users name it.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    // === Units ===

    /// A unit, if it exists.
    pub(crate) async fn unit(&self, name: &str) -> Result<Option<UnitView>, Error> {
        let found = self.get(self.url(&["units", name], &[])).await;
        absent(found)
    }

    /// Units, page by page.
    pub(crate) fn unit_pages(&self) -> impl Stream<Item = Result<Vec<UnitView>, Error>> {
        self.pages::<UnitPage>(Vec::new())
    }

    /// All units.
    pub(crate) async fn units(&self) -> Result<Vec<UnitView>, Error> {
        self.unit_pages().try_concat().await
    }

    /// Creates a unit, or replaces the file of one; it becomes inactive.
    pub(crate) async fn put_unit(&self, name: &str, options: &[UnitOption]) -> Result<(), Error> {
        self.put(
            self.url(&["units", name], &[]),
            &json!({"name": name, "options": options}),
        )
        .await
    }

    /// Sets the desired state of a unit.
    pub(crate) async fn set_desired(&self, name: &str, state: DesiredState) -> Result<(), Error> {
        let body = json!({"name": name, "desiredState": state});
        self.put(self.url(&["units", name], &[]), &body).await
    }

    /// Deletes a unit; `false` if there was none.
    pub(crate) async fn destroy_unit(&self, name: &str) -> Result<bool, Error> {
        let url = self.url(&["units", name], &[]);
        let answer = self.done(self.request(Method::DELETE, url)).await;
        Ok(absent(answer)?.is_some())
    }

    /// Why a unit is where it is, if it exists.
    pub(crate) async fn explanation(&self, name: &str) -> Result<Option<ExplanationView>, Error> {
        let found = self.get(self.url(&["units", name, "explain"], &[])).await;
        absent(found)
    }

    /// Orders every machine that runs a unit to restart it.
    pub(crate) async fn restart_unit(&self, name: &str) -> Result<(), Error> {
        let url = self.url(&["units", name, "restart"], &[]);
        self.done(self.request(Method::POST, url)).await.map(drop)
    }

    // === States ===

    /// States of units, page by page; of one unit if it is named.
    pub(crate) fn state_pages(
        &self,
        unit: Option<&str>,
    ) -> impl Stream<Item = Result<Vec<StateView>, Error>> {
        let filter = unit.map(|unit| ("unitName", unit.to_owned()));
        self.pages::<StatePage>(filter.into_iter().collect())
    }

    /// States of one unit, by machine.
    pub(crate) async fn states(&self, unit: &str) -> Result<Vec<StateView>, Error> {
        self.state_pages(Some(unit)).try_concat().await
    }

    /// The state of a unit, if a machine reports one.
    pub(crate) async fn state(&self, unit: &str) -> Result<Option<StateView>, Error> {
        let found = self.get(self.url(&["state", unit], &[])).await;
        absent(found)
    }

    // === Machines ===

    /// All machines.
    pub(crate) async fn machines(&self) -> Result<Vec<Machine>, Error> {
        self.pages::<MachinePage>(Vec::new()).try_concat().await
    }

    /// Excludes a machine from scheduling.
    pub(crate) async fn cordon(&self, machine: &str) -> Result<(), Error> {
        let url = self.url(&["machines", machine, "cordon"], &[]);
        self.done(self.request(Method::PUT, url)).await.map(drop)
    }

    /// Includes a machine in scheduling, and ends its drain.
    pub(crate) async fn uncordon(&self, machine: &str) -> Result<(), Error> {
        let url = self.url(&["machines", machine, "cordon"], &[]);
        self.done(self.request(Method::DELETE, url)).await.map(drop)
    }

    /// Starts to move all ordinary units off a machine.
    pub(crate) async fn drain(&self, machine: &str, deadline: Duration) -> Result<(), Error> {
        let url = self.url(&["machines", machine, "drain"], &[]);
        self.put(url, &json!({"deadlineSeconds": deadline.as_secs()}))
            .await
    }

    /// How far the drain of a machine is.
    pub(crate) async fn drain_progress(&self, machine: &str) -> Result<Drain, Error> {
        self.get(self.url(&["machines", machine, "drain"], &[]))
            .await
    }

    // === Cluster ===

    /// The moves that would spread units more evenly.
    pub(crate) async fn rebalance_plan(&self, max: Option<u32>) -> Result<RebalancePlan, Error> {
        let max = max.map(|max| ("max", max.to_string()));
        self.get(self.url(&["rebalance"], &Vec::from_iter(max)))
            .await
    }

    /// Orders moves.
    pub(crate) async fn rebalance(&self, moves: &[Move]) -> Result<(), Error> {
        let url = self.url(&["rebalance"], &[]);
        let request = Self::with_json(self.request(Method::POST, url), &json!({"moves": moves}));
        self.done(request).await.map(drop)
    }

    /// Lets agents that have halted continue.
    pub(crate) async fn resume(&self) -> Result<(), Error> {
        let url = self.url(&["resume"], &[]);
        self.done(self.request(Method::POST, url)).await.map(drop)
    }

    /// The head of an answer, whatever its status: for checks of the connection.
    pub(crate) async fn head_of_answer(&self) -> Result<Response, Error> {
        self.send(self.request(Method::GET, self.url(&["machines"], &[])))
            .await
    }

    // === Texts ===

    /// The output of `systemctl status` for a unit on a machine.
    pub(crate) async fn unit_status(&self, name: &str, machine: &str) -> Result<Response, Error> {
        let query = [("machineID", machine.to_owned())];
        self.stream(self.url(&["units", name, "status"], &query))
            .await
    }

    /// The journal of a unit on a machine, as a stream of bytes.
    pub(crate) async fn journal(
        &self,
        name: &str,
        query: &[(&str, String)],
    ) -> Result<Response, Error> {
        self.stream(self.url(&["units", name, "journal"], query))
            .await
    }

    /// What changes of a list, for as long as the server keeps telling.
    pub(crate) async fn watch(&self, list: &str, after: Option<&str>) -> Result<Events, Error> {
        let mut query = vec![("watch", "true".to_owned())];
        query.extend(after.map(|id| ("revision", id.to_owned())));
        let response = self.stream(self.url(&[list], &query)).await?;
        Ok(Events::of(response))
    }

    /// Prints a text as it comes.
    ///
    /// A reader that has gone ends it: there is nothing left to do.
    pub(crate) async fn print_text(&self, mut response: Response) -> Result<(), Error> {
        let mut output = std::io::stdout();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.broken(&error))?
        {
            if output
                .write_all(&chunk)
                .and_then(|()| output.flush())
                .is_err()
            {
                break;
            }
        }
        Ok(())
    }

    /// A failure of the connection.
    fn broken(&self, error: &reqwest::Error) -> Error {
        Error::Unreachable {
            endpoint: self.endpoint.clone(),
            cause: causes(error),
        }
    }

    // === Requests ===

    fn url(&self, path: &[&str], query: &[(&str, String)]) -> Url {
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

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.http.request(method, url)
    }

    fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
        request
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    async fn put(&self, url: Url, body: &Value) -> Result<(), Error> {
        let request = Self::with_json(self.request(Method::PUT, url), body);
        self.done(request).await.map(drop)
    }

    async fn get<T: DeserializeOwned>(&self, url: Url) -> Result<T, Error> {
        let call = format!("GET {}", url.path());
        let bytes = self.done(self.request(Method::GET, url)).await?;
        serde_json::from_slice(&bytes).map_err(|error| Error::Unreadable {
            endpoint: self.endpoint.clone(),
            call,
            cause: error.to_string(),
        })
    }

    fn pages<P: Page>(
        &self,
        filter: Vec<(&'static str, String)>,
    ) -> impl Stream<Item = Result<Vec<P::Item>, Error>> {
        let client = self.clone();
        stream::try_unfold(Some(None::<String>), move |token| {
            let (client, mut query) = (client.clone(), filter.clone());
            async move {
                let Some(token) = token else { return Ok(None) };
                query.extend(token.map(|token| ("nextPageToken", token)));
                let page: P = client.get(client.url(&[P::PATH], &query)).await?;
                let (items, next) = page.into_parts();
                Ok(Some((items, next.map(Some))))
            }
        })
    }

    /// Sends a request with a limit on the whole answer; gives its body.
    async fn done(&self, request: RequestBuilder) -> Result<Vec<u8>, Error> {
        let answer = async {
            let response = accepted(self.send(request).await?).await?;
            let bytes = response.bytes().await;
            Ok(bytes.map_err(|error| self.broken(&error))?.to_vec())
        };
        self.in_time(answer).await
    }

    /// Sends a request with a limit on the head of the answer alone.
    async fn stream(&self, url: Url) -> Result<Response, Error> {
        let request = self.request(Method::GET, url);
        self.in_time(async { accepted(self.send(request).await?).await })
            .await
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        if self.prints_calls
            && let Some(request) = request.try_clone().and_then(|r| r.build().ok())
        {
            eprintln!("DEBUG {} {}", request.method(), request.url());
        }
        let sent = self.in_time(async { request.send().await.map_err(|e| self.broken(&e)) });
        let response = sent.await?;
        if self.prints_calls {
            eprintln!("DEBUG {}", response.status());
        }
        Ok(response)
    }

    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let in_time = tokio::time::timeout(self.timeout, answer).await;
        in_time.unwrap_or_else(|_| {
            Err(Error::TimedOut {
                endpoint: self.endpoint.clone(),
                time: self.timeout,
            })
        })
    }
}

/// An answer that is a success.
async fn accepted(response: Response) -> Result<Response, Error> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = response.bytes().await.unwrap_or_default();
    let message = serde_json::from_slice::<ErrorAnswer>(&body)
        .unwrap_or_default()
        .error
        .message;
    Err(Error::Refused {
        status: status.as_u16(),
        message,
    })
}

/// A 404 is absence, whatever its words.
fn absent<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::Refused { status, .. }) if status == StatusCode::NOT_FOUND => Ok(None),
        Err(error) => Err(error),
    }
}

/// An error and its causes, each said once.
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
