//! Settings of the role or of the database, made for other programs: the service answers as without them.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use hyperfleet_domain::entity_config;
use serde_json::json;

use crate::support::{Answer, TestDatabase, assert_sound, store_of};
use crate::watches::client::Instance;

/// Requests at a time; more than there are connections.
const AT_ONCE: usize = 8;
const CONNECTIONS: usize = 4;

type Statuses = BTreeMap<u16, usize>;

async fn statuses(answers: impl Iterator<Item = impl Future<Output = Answer>>) -> Statuses {
    let mut statuses = Statuses::new();
    for answer in join_all(answers).await {
        *statuses.entry(answer.status).or_default() += 1;
    }
    statuses
}

/// The statuses of requests that meet in the database, and what a watch and a search see of them.
async fn outcome(database: TestDatabase) -> [Statuses; 4] {
    let store = store_of(database.options(), CONNECTIONS);
    store.migrate(Duration::ZERO).await.unwrap();
    let instance = Instance::spawn_on(database, store, |_| {});
    let api = &instance.api;
    let mut watch = instance.watch("/clusters").await;
    let cluster = api.cluster("met").await;
    assert_eq!(watch.changes(1).await, ["ADDED met"]);

    let patches = statuses((0..AT_ONCE).map(|number| {
        let labels = json!({"labels": {"number": number.to_string(), "all": "yes"}});
        api.patch(&cluster, labels)
    }));
    let patches = patches.await;
    let generation = i32::try_from(AT_ONCE + 1).unwrap();
    let reports = statuses((0..AT_ONCE).map(async |number| {
        let adapter = format!("adapter-{number}");
        api.report(&cluster, &adapter, generation, &[]).await
    }));
    let reports = reports.await;
    let creates = statuses((0..AT_ONCE).map(|_| {
        let body = json!({"kind": "Cluster", "name": "once", "spec": {}, "labels": {"all": "yes"}});
        api.post("/clusters", body)
    }));
    let creates = creates.await;
    let pool = api.nodepool(&cluster, "pool").await;
    let deletes = statuses([&pool, &cluster].into_iter().map(|path| api.delete(path)));
    let deletes = deletes.await;
    while watch.change().await["object"]["name"] != "once" {}

    let found = api.get("/clusters?includeDeleted=true&search=labels.all='yes'");
    let found = found.await;
    assert_eq!(found.body["total"], 2, "{}", found.body);
    [patches, reports, creates, deletes]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_the_role_change_no_answer() {
    let expected = outcome(TestDatabase::create_empty().await).await;
    assert_eq!(expected[0], Statuses::from([(200, AT_ONCE)]));
    assert_eq!(expected[1], Statuses::from([(201, AT_ONCE)]));
    assert_eq!(expected[2], Statuses::from([(201, 1), (409, AT_ONCE - 1)]));
    for isolation in ["repeatable read", "serializable"] {
        let database = TestDatabase::create_empty().await;
        let mut connection = database.connect().await;
        database.make_unsuitable(isolation).await;
        assert_eq!(outcome(database).await, expected, "{isolation}");
        assert_sound(&mut connection, &entity_config::built_in()).await;
    }
}
