//! Calls about machines and the whole cluster.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use hyperfleet_fleet_model::wire::{DrainView, MachinePage, MachineView, MoveView, RebalanceView};
use reqwest::Method;
use serde_json::json;

use super::transport::Transport;
use super::{Client, Error};

impl Client {
    /// All machines.
    pub(crate) async fn machines(&self) -> Result<Vec<MachineView>, Error> {
        self.transport
            .pages::<MachinePage>(Vec::new())
            .try_concat()
            .await
    }

    /// Excludes a machine from scheduling.
    pub(crate) async fn cordon(&self, machine: &str) -> Result<(), Error> {
        let url = self.transport.url(&["machines", machine, "cordon"], &[]);
        self.transport
            .done(self.transport.request(Method::PUT, url))
            .await
            .map(drop)
    }

    /// Includes a machine in scheduling, and ends its drain.
    pub(crate) async fn uncordon(&self, machine: &str) -> Result<(), Error> {
        let url = self.transport.url(&["machines", machine, "cordon"], &[]);
        self.transport
            .done(self.transport.request(Method::DELETE, url))
            .await
            .map(drop)
    }

    /// Starts to move all ordinary units off a machine.
    pub(crate) async fn drain(&self, machine: &str, deadline: Duration) -> Result<(), Error> {
        let url = self.transport.url(&["machines", machine, "drain"], &[]);
        self.transport
            .put(url, &json!({"deadlineSeconds": deadline.as_secs()}))
            .await
    }

    /// How far the drain of a machine is.
    pub(crate) async fn drain_progress(&self, machine: &str) -> Result<DrainView, Error> {
        self.transport
            .get(self.transport.url(&["machines", machine, "drain"], &[]))
            .await
    }

    /// The moves that would spread units more evenly.
    pub(crate) async fn rebalance_plan(&self, max: Option<u32>) -> Result<RebalanceView, Error> {
        let max = max.map(|max| ("max", max.to_string()));
        self.transport
            .get(self.transport.url(&["rebalance"], &Vec::from_iter(max)))
            .await
    }

    /// Orders moves.
    pub(crate) async fn rebalance(&self, moves: &[MoveView]) -> Result<(), Error> {
        let url = self.transport.url(&["rebalance"], &[]);
        let request = Transport::with_json(
            self.transport.request(Method::POST, url),
            &json!({"moves": moves}),
        );
        self.transport.done(request).await.map(drop)
    }

    /// Lets agents that have halted continue.
    pub(crate) async fn resume(&self) -> Result<(), Error> {
        let url = self.transport.url(&["resume"], &[]);
        self.transport
            .done(self.transport.request(Method::POST, url))
            .await
            .map(drop)
    }
}
