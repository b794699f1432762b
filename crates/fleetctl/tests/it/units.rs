//! Units are stored, loaded, started, stopped and destroyed.

use crate::cluster::{Cluster, FIRST, SHORT};

#[tokio::test]
async fn a_unit_goes_through_its_whole_life() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("hello.service");
    let submitted = cluster.run(&["submit", "hello.service"]).await;
    submitted.is(0, "Unit hello.service inactive\n", "");
    cluster
        .run(&["submit", "hello.service"])
        .await
        .is(0, "", "");
    let cat = cluster.run(&["cat", "hello"]).await;
    cat.is(0, "[Service]\nExecStart=/bin/sleep 3000\n", "");
    let loaded = cluster.run(&["load", "hello.service"]).await;
    loaded.is(0, &format!("Unit hello.service loaded on {SHORT}\n"), "");
    assert!(cluster.running().is_empty());
    let started = cluster.run(&["start", "hello.service"]).await;
    started.is(0, &format!("Unit hello.service launched on {SHORT}\n"), "");
    assert_eq!(cluster.running(), ["hello.service"]);
    // It is as it should be.
    cluster.run(&["start", "hello.service"]).await.is(0, "", "");
    let listed = cluster.run(&["list-units"]).await;
    listed.is(
        0,
        &format!("UNIT\t\tMACHINE\t\t\tACTIVE\tSUB\nhello.service\t{SHORT}\tactive\trunning\n"),
        "",
    );
    let stopped = cluster.run(&["stop", "hello.service"]).await;
    stopped.is(
        0,
        &format!("Unit hello.service loaded on {SHORT}\n"),
        "Successfully stopped units [hello.service].\n",
    );
    let again = cluster.run(&["stop", "hello.service"]).await;
    again.is(0, "", "Successfully stopped units [].\n");
    let unloaded = cluster.run(&["unload", "hello.service"]).await;
    unloaded.is(
        0,
        "Unit hello.service inactive\n",
        "Successfully unloaded units [hello.service].\n",
    );
    let refused = cluster.run(&["stop", "hello.service"]).await;
    refused.is(
        1,
        "",
        "Unable to stop unit hello.service in state inactive\n",
    );
    cluster.run(&["start", "hello.service"]).await.succeeded();
    let destroyed = cluster.run(&["destroy", "hello.service"]).await;
    destroyed.is(0, "Destroyed hello.service\n", "");
    assert!(cluster.running().is_empty());
    let unknown = cluster.run(&["destroy", "hello.service"]).await;
    unknown.is(0, "", "Units not found in registry\n");
    let unknown = cluster.run(&["cat", "hello.service"]).await;
    unknown.is(1, "", "Unit hello.service not found\n");
}
