//! Lists: columns, formats, and what is shown when they change.

use crate::cluster::{Cluster, FIRST, SECOND};

#[tokio::test]
async fn machines_are_listed_as_they_were() {
    let cluster = Cluster::of(&[FIRST, SECOND]).await;
    let short = "MACHINE\t\tIP\t\tMETADATA\n0f1e2d3c...\t192.0.2.1\t-\n1f1e2d3c...\t192.0.2.1\t-\n";
    cluster.run(&["list-machines"]).await.is(0, short, "");
    cluster
        .run_locally(&["list-machines"])
        .await
        .is(0, short, "");
}
