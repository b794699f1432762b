//! Calls about machines and the whole cluster.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use hyperfleet_fleet_model::wire::{DrainView, MachinePage, MachineView, MoveView, RebalanceView};
use reqwest::Method;
use serde_json::json;

use super::transport::Transport;
use super::{Client, Error};

impl Client {
    pub(crate) async fn machines(&self) -> Result<Vec<MachineView>, Error> {
        self.transport
            .pages::<MachinePage>(Vec::new())
            .try_concat()
            .await
    }

    pub(crate) async fn cordon(&self, machine: &str) -> Result<(), Error> {
        let url = self.transport.url(&["machines", machine, "cordon"], &[]);
        self.transport
            .done(self.transport.request(Method::PUT, url))
            .await
            .map(drop)
    }

    /// Removes a machine's cordon and ends its drain.
    pub(crate) async fn uncordon(&self, machine: &str) -> Result<(), Error> {
        let url = self.transport.url(&["machines", machine, "cordon"], &[]);
        self.transport
            .done(self.transport.request(Method::DELETE, url))
            .await
            .map(drop)
    }

    /// Drains a machine. The server counts whole seconds.
    pub(crate) async fn drain(&self, machine: &str, deadline: Duration) -> Result<(), Error> {
        let seconds = deadline.as_secs() + u64::from(deadline.subsec_nanos() > 0);
        let url = self.transport.url(&["machines", machine, "drain"], &[]);
        self.transport
            .put(url, &json!({"deadlineSeconds": seconds}))
            .await
    }

    /// The progress of a machine's drain.
    pub(crate) async fn drain_progress(&self, machine: &str) -> Result<DrainView, Error> {
        self.transport
            .get(self.transport.url(&["machines", machine, "drain"], &[]))
            .await
    }

    /// Moves that would even out the load of machines.
    pub(crate) async fn rebalance_plan(&self, max: Option<u32>) -> Result<RebalanceView, Error> {
        let max = max.map(|max| ("max", max.to_string()));
        self.transport
            .get(self.transport.url(&["rebalance"], &Vec::from_iter(max)))
            .await
    }

    pub(crate) async fn rebalance(&self, moves: &[MoveView]) -> Result<(), Error> {
        let url = self.transport.url(&["rebalance"], &[]);
        let request = Transport::with_json(
            self.transport.request(Method::POST, url),
            &json!({"moves": moves}),
        );
        self.transport.done(request).await.map(drop)
    }

    /// Orders halted agents to resume.
    pub(crate) async fn resume(&self) -> Result<(), Error> {
        let url = self.transport.url(&["resume"], &[]);
        self.transport
            .done(self.transport.request(Method::POST, url))
            .await
            .map(drop)
    }
}
