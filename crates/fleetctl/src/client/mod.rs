//! The fleet API over HTTP: TCP, TLS or a unix socket.
//!
//! Each call has a time limit, so that a stalled server never hangs the caller. Streams are limited until their head
//! is there.

mod answers;
mod build;
mod cluster;
mod error;
mod events;
mod transport;

use futures_util::{Stream, TryStreamExt as _};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::unit::UnitOption;
use hyperfleet_fleet_model::wire::{ExplanationView, StatePage, StateView, UnitPage, UnitView};
use reqwest::{Method, Response, StatusCode};
use serde_json::json;

use transport::Transport;

pub(crate) use answers::Gone;
pub(crate) use build::{ConnectionSettings, TlsFiles, connect, http_client};
pub(crate) use error::Error;
pub(crate) use events::{Event, Events};
pub(crate) use transport::{Text, body};

#[derive(Debug, Clone)]
pub(crate) struct Client {
    transport: Transport,
}

impl Client {
    /// The endpoint as users name it.
    pub(crate) fn endpoint(&self) -> &str {
        &self.transport.endpoint
    }

    // === Units ===

    pub(crate) async fn unit(&self, name: &str) -> Result<Option<UnitView>, Error> {
        let found = self
            .transport
            .get(self.transport.url(&["units", name], &[]))
            .await;
        absent(found)
    }

    pub(crate) fn unit_pages(&self) -> impl Stream<Item = Result<Vec<UnitView>, Error>> {
        self.transport.pages::<UnitPage>(Vec::new())
    }

    pub(crate) async fn units(&self) -> Result<Vec<UnitView>, Error> {
        self.unit_pages().try_concat().await
    }

    /// Creates a unit, or replaces its file, and sets its desired state.
    pub(crate) async fn put_unit(
        &self,
        name: &str,
        options: &[UnitOption],
        state: DesiredState,
    ) -> Result<(), Error> {
        let body = json!({"name": name, "options": options, "desiredState": state});
        self.transport
            .put(self.transport.url(&["units", name], &[]), &body)
            .await
    }

    pub(crate) async fn set_desired(&self, name: &str, state: DesiredState) -> Result<(), Error> {
        let body = json!({"name": name, "desiredState": state});
        self.transport
            .put(self.transport.url(&["units", name], &[]), &body)
            .await
    }

    /// Deletes a unit; `false` if it did not exist.
    pub(crate) async fn destroy_unit(&self, name: &str) -> Result<bool, Error> {
        let url = self.transport.url(&["units", name], &[]);
        let answer = self
            .transport
            .done(self.transport.request(Method::DELETE, url))
            .await;
        Ok(absent(answer)?.is_some())
    }

    /// Why a unit is where it is, if it exists.
    pub(crate) async fn explanation(&self, name: &str) -> Result<Option<ExplanationView>, Error> {
        let found = self
            .transport
            .get(self.transport.url(&["units", name, "explain"], &[]))
            .await;
        absent(found)
    }

    /// Requests a restart from every machine that runs a unit.
    pub(crate) async fn restart_unit(&self, name: &str) -> Result<(), Error> {
        let url = self.transport.url(&["units", name, "restart"], &[]);
        self.transport
            .done(self.transport.request(Method::POST, url))
            .await
            .map(drop)
    }

    /// Requests a stop from every machine that has loaded a unit.
    pub(crate) async fn stop_unit(&self, name: &str) -> Result<(), Error> {
        let url = self.transport.url(&["units", name, "stop"], &[]);
        self.transport
            .done(self.transport.request(Method::POST, url))
            .await
            .map(drop)
    }

    // === States ===

    /// States of units, page by page; of one unit if it is named.
    pub(crate) fn state_pages(
        &self,
        unit: Option<&str>,
    ) -> impl Stream<Item = Result<Vec<StateView>, Error>> {
        let filter = unit.map(|unit| ("unitName", unit.to_owned()));
        self.transport
            .pages::<StatePage>(filter.into_iter().collect())
    }

    pub(crate) async fn states(&self, unit: &str) -> Result<Vec<StateView>, Error> {
        self.state_pages(Some(unit)).try_concat().await
    }

    /// The state of a unit, if a machine reports one.
    pub(crate) async fn state(&self, unit: &str) -> Result<Option<StateView>, Error> {
        let found = self
            .transport
            .get(self.transport.url(&["state", unit], &[]))
            .await;
        absent(found)
    }

    /// The head of a response of any status, for checks of the connection.
    pub(crate) async fn head_of_answer(&self) -> Result<Response, Error> {
        self.transport
            .send(
                self.transport
                    .request(Method::GET, self.transport.url(&["machines"], &[])),
            )
            .await
    }

    // === Texts ===

    /// The output of `systemctl status` for a unit on a machine.
    pub(crate) async fn unit_status(&self, name: &str, machine: &str) -> Result<Text, Error> {
        let query = [("machineID", machine.to_owned())];
        let url = self.transport.url(&["units", name, "status"], &query);
        self.transport.text(url).await
    }

    /// The newest entries of the journal of a unit on a machine; with `follows` also further ones, or those after the
    /// event with this id.
    pub(crate) async fn journal(
        &self,
        name: &str,
        machine: &str,
        lines: u32,
        follows: bool,
        after: Option<&str>,
    ) -> Result<Events, Error> {
        let mut query = vec![
            ("lines", lines.to_string()),
            ("machineID", machine.to_owned()),
        ];
        query.extend(follows.then(|| ("watch", "true".to_owned())));
        query.extend(after.map(|id| ("after", id.to_owned())));
        let url = self.transport.url(&["units", name, "journal"], &query);
        let text = self.transport.text(url).await?;
        Ok(if follows {
            Events::watched(text)
        } else {
            Events::of(text)
        })
    }

    /// The changes of a list, as long as the server sends them.
    pub(crate) async fn watch(&self, list: &str, after: Option<&str>) -> Result<Events, Error> {
        let mut query = vec![("watch", "true".to_owned())];
        query.extend(after.map(|id| ("revision", id.to_owned())));
        let url = self.transport.url(&[list], &query);
        self.transport.text(url).await.map(Events::watched)
    }
}

/// A 404 means absence, whatever its message.
fn absent<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::Refused { status, .. }) if status == StatusCode::NOT_FOUND => Ok(None),
        Err(error) => Err(error),
    }
}
