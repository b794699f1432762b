//! An adapter that changes nothing: it checks whether a node pool is in the region of its cluster.
//!
//! ```sh
//! cat > regions.yaml <<END
//! entities:
//!   - {kind: Cluster, plural: clusters}
//!   - {kind: NodePool, plural: nodepools, parent_kind: Cluster, required_adapters: [regions]}
//! END
//! make run ARGS="--no-demo-adapter --config regions.yaml"
//! TOKEN_FILE=token cargo run -p hyperfleet-adapter --example regions -- http://127.0.0.1:8000
//! ```

use std::env;

use hyperfleet_adapter::{
    Adapter, Api, Finding, Kind, ReconcileOutcome, Report, Runner, Settings, Token, Work,
};
use tokio::signal;

struct Regions;

impl Adapter for Regions {
    async fn reconcile(&self, work: Work) -> anyhow::Result<ReconcileOutcome> {
        if work.resource.is_deleted() {
            let report = Report::finalized("NothingKept", "there was nothing to remove");
            return Ok(ReconcileOutcome::reported(report));
        }
        let Some(cluster) = work.owner else {
            let report = Report::not_applicable("it belongs to no cluster");
            return Ok(ReconcileOutcome::reported(report));
        };
        let own = &work.resource.spec()["region"];
        let available = if own.is_null() || *own == cluster.spec()["region"] {
            Finding::yes("SameRegion", "it is where its cluster is")
        } else {
            let said = format!(
                "it is in {own}, its cluster in {}",
                cluster.spec()["region"]
            );
            Finding::no("OtherRegion", said)
        };
        Ok(ReconcileOutcome::reported(Report::new(available)))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let base = env::args().nth(1).ok_or("usage: regions URL")?;
    let token = env::var_os("TOKEN_FILE").map(Into::into);
    let api = Api::new(&base, token.map_or(Token::None, Token::File))?;
    // A change of the cluster's region is noticed by the next sweep; with clusters among the kinds, at once.
    let kinds = vec![Kind::new("nodepools")];
    let stop = async {
        let _ = signal::ctrl_c().await;
    };
    let runner = Runner::new(api, Settings::new("regions", kinds), Regions);
    runner.run(stop).await;
    Ok(())
}
