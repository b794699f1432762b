//! An adapter that keeps a folder for each cluster, with its spec in a file.
//!
//! ```sh
//! echo 'entities: [{kind: Cluster, plural: clusters, required_adapters: [folders]}]' > folders.yaml
//! make run ARGS="--no-demo-adapter --config folders.yaml"
//! cargo run -p hyperfleet-adapter --example folders -- http://127.0.0.1:8000 /tmp/clusters
//! ```

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hyperfleet_adapter::{
    Adapter, Api, Finding, Kind, ReconcileOutcome, Report, Runner, Settings, Token, Work,
};
use serde_json::{Map, Value};
use tokio::{fs, signal};

struct Folders {
    below: PathBuf,
}

impl Adapter for Folders {
    async fn reconcile(&self, work: Work) -> anyhow::Result<ReconcileOutcome> {
        let resource = &work.resource;
        // Names become free while a cluster is being deleted; ids never do.
        let folder = self.below.join(&resource.id);
        if resource.is_deleted() {
            return match fs::remove_dir_all(&folder).await {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
                _ => Ok(ReconcileOutcome::reported(Report::finalized(
                    "Removed",
                    "there is no folder",
                ))),
            };
        }
        write(&folder, resource.spec()).await?;
        let said = format!("{} holds the spec", folder.display());
        let mut data = Map::new();
        data.insert(
            "folder".to_owned(),
            Value::from(folder.display().to_string()),
        );
        let report = Report::new(Finding::yes("Written", said)).with_data(data);
        Ok(ReconcileOutcome::reported(report))
    }
}

async fn write(folder: &Path, spec: &Value) -> std::io::Result<()> {
    fs::create_dir_all(folder).await?;
    fs::write(folder.join("spec.json"), spec.to_string()).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(base), Some(below)) = (arguments.next(), arguments.next()) else {
        return Err("usage: folders URL FOLDER".into());
    };
    let api = Api::new(&base, Token::None)?;
    let settings = Settings::new("folders", vec![Kind::new("clusters")]);
    let below = below.into();
    let stop = async {
        let _ = signal::ctrl_c().await;
    };
    Runner::new(api, settings, Folders { below })
        .run(stop)
        .await;
    Ok(())
}
