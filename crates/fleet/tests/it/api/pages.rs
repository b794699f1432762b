//! Pages, and the states that are asked for.

use std::collections::BTreeSet;

use etcd_client::Client;
use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::keys::{KeyOperation, KeyStore as _, Transaction};
use serde_json::json;

use super::{error, unit};
use hyperfleet_testkit::{TestEtcd, TestFleet, etcd_settings};

const TOKEN: &str = "invalid value of nextPageToken query parameter";

/// Every page of a list, from its beginning.
async fn pages(fleet: &TestFleet, path: &str, member: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let query = token.map_or_else(String::new, |token| format!("&nextPageToken={token}"));
        let answer = fleet.get(&format!("{path}?alt=json{query}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let items = answer.body[member].as_array().cloned().unwrap_or_default();
        let name = |item: &serde_json::Value| item["name"].as_str().unwrap().to_owned();
        pages.push(items.iter().map(name).collect());
        match answer.body["nextPageToken"].as_str() {
            Some(next) => token = Some(next.to_owned()),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn three_hundred_units_are_three_pages_in_order() {
    let fleet = TestFleet::spawn().await;
    let numbers: Vec<u32> = (0..300).collect();
    for some in numbers.chunks(50) {
        let put = some.iter().map(async |number| {
            // Not in order, so that order is not that of creation.
            let path = format!("/units/u{:03}.service", (number * 7) % 300);
            assert_eq!(fleet.put(&path, &unit("1")).await.status, 201);
        });
        futures_util::future::join_all(put).await;
    }
    let pages = pages(&fleet, "/fleet/v1/units", "units").await;
    // No empty page behind a list that ends with a page.
    assert_eq!(
        pages.iter().map(Vec::len).collect::<Vec<_>>(),
        [100, 100, 100]
    );
    let names: Vec<_> = (0..300).map(|n| format!("u{n:03}.service")).collect();
    assert_eq!(pages.concat(), names);
}

/// The older server's tokens were numbers of pages: beyond 65,535 items it started over, and before that it
/// panicked. A token that names the last item has no such bound.
#[tokio::test]
async fn a_token_is_the_end_of_its_page_and_no_number() {
    let fleet = TestFleet::unconnected(hyperfleet_testkit::shared_etcd().await, 1, |_| {});
    fleet.connect().await;
    for name in ["a", "b", "c"] {
        fleet
            .put(&format!("/units/{name}.service"), &unit("1"))
            .await;
    }
    let pages = pages(&fleet, "/units", "units").await;
    assert_eq!(pages.concat(), ["a.service", "b.service", "c.service"]);
    // The same place of the list, whatever stands before it by then.
    let first = fleet.get("/units").await.body;
    let token = first["nextPageToken"].as_str().unwrap();
    let path = format!("/units?nextPageToken={token}");
    let name = |page: &serde_json::Value| page["units"][0]["name"].clone();
    assert_eq!(name(&fleet.get(&path).await.body), "b.service");
    for before in ["A0", "A1", "A2"] {
        fleet
            .put(&format!("/units/{before}.service"), &unit("1"))
            .await;
    }
    assert_eq!(name(&fleet.get(&path).await.body), "b.service");
    // And on: what goes is not in the next page, what comes behind it is.
    fleet.delete("/units/b.service").await;
    assert_eq!(name(&fleet.get(&path).await.body), "c.service");
}

#[tokio::test]
async fn a_token_that_was_not_given_is_refused_in_the_same_words() {
    let fleet = TestFleet::unconnected(hyperfleet_testkit::shared_etcd().await, 1, |_| {});
    fleet.connect().await;
    for name in ["a", "b"] {
        fleet
            .put(&format!("/units/{name}.service"), &unit("1"))
            .await;
    }
    let page = fleet.get("/units").await.body;
    let token = page["nextPageToken"].as_str().unwrap();
    for path in ["/units", "/state", "/machines"] {
        for query in [
            "nextPageToken=".to_owned(),
            // The older server's.
            "nextPageToken=ZAABAA%3D%3D".to_owned(),
            "nextPageToken=!".to_owned(),
            format!("nextPageToken={token}&nextPageToken={token}"),
            format!("nextPageToken={token}x"),
        ] {
            let refused = fleet.get(&format!("{path}?{query}")).await;
            assert_eq!(refused.body, error(400, TOKEN), "{path}?{query}");
        }
    }
    for path in ["/state", "/machines"] {
        let refused = fleet.get(&format!("{path}?nextPageToken={token}")).await;
        assert_eq!(refused.body, error(400, TOKEN), "of another list: {path}");
    }
}

#[tokio::test]
async fn a_watch_whose_history_is_gone_is_to_be_started_over() {
    let server = TestEtcd::start().await;
    let store = EtcdKeys::connect(etcd_settings(&server.url()))
        .await
        .unwrap();
    let fleet = TestFleet::unconnected(store.clone(), 1, |_| {});
    // What happens before the mirror is there, it does not remember.
    let put = |key: &str| Transaction {
        then: vec![KeyOperation::Put(key.to_owned(), Vec::new(), None)],
        ..Transaction::default()
    };
    store.commit(put("x")).await.unwrap();
    store.commit(put("y")).await.unwrap();
    fleet.connect().await;
    let now = store.commit(Transaction::default()).await.unwrap().revision;
    let mut client = Client::connect([server.url()], None).await.unwrap();
    client.compact(now, None).await.unwrap();
    let refused = fleet.get("/units?watch=true&revision=1").await;
    let message = refused.body["error"]["message"].as_str().unwrap();
    assert_eq!(refused.status, 400);
    assert!(message.contains("start over"), "{message}");
}

#[tokio::test]
async fn states_are_filtered_before_they_are_paged() {
    let fleet = TestFleet::unconnected(hyperfleet_testkit::shared_etcd().await, 2, |_| {});
    fleet.connect().await;
    for machine in ["m1", "m2"] {
        let mut reports = fleet.machine(machine).await;
        let units = ["a.service", "b.service", "c.service"];
        fleet.report(&mut reports, &units).await;
    }
    let all = pages(&fleet, "/state", "states").await;
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2]);
    let list = async |query: &str| {
        let answer = fleet.get(&format!("/fleet/v1/state?{query}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let states = answer.body["states"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let pair = |state: &serde_json::Value| {
            let text = |member: &str| state[member].as_str().unwrap().to_owned();
            (text("name"), text("machineID"))
        };
        states.iter().map(pair).collect::<BTreeSet<_>>()
    };
    let pairs = |pairs: &[(&str, &str)]| -> BTreeSet<(String, String)> {
        let own = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
        pairs.iter().map(own).collect()
    };
    let of_b = pairs(&[("b.service", "m1"), ("b.service", "m2")]);
    assert_eq!(list("unitName=b.service").await, of_b);
    assert_eq!(list("unitName=b.service&machineID=").await, of_b);
    assert_eq!(list("unitName=b.service&unitName=a.service").await, of_b);
    let one = pairs(&[("b.service", "m2")]);
    assert_eq!(list("machineID=m2&unitName=b.service").await, one);
    for nothing in [
        "unitName=b",
        "machineID=m",
        "unitName=b%2Fc",
        "machineID=%20",
    ] {
        assert_eq!(list(nothing).await, pairs(&[]), "{nothing}");
    }
    let state = fleet.get("/state/a.service").await.body;
    let expected = json!({
        "hash": "0123456789012345678901234567890123456789",
        "machineID": "m1",
        "name": "a.service",
        "systemdActiveState": "active",
        "systemdLoadState": "loaded",
        "systemdSubState": "running",
    });
    assert_eq!(state, expected);
}
