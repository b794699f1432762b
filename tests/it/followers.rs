//! Readers that follow the audit trail: each entry comes once, none is missed, and changes of a resource come in their
//! order.
//!
//! Entries become stable only when older transactions of the server end, those of other tests included, so these tests
//! wait.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sqlx::postgres::PgConnection;

use crate::support::{TestApi, WAITING, until};

/// An entry as the release before writes it: it knows neither eras nor orders.
const LATE: &str = "INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name, generation_after)
    VALUES (now(), 'a', 'r', 'create', 'Cluster', gen_random_uuid(), 'late', 1)";
/// Goes on from the position of each answer.
pub(crate) struct Follower {
    pub(crate) seen: Vec<Value>,
    position: String,
    filter: &'static str,
}

impl Follower {
    pub(crate) fn from_start() -> Self {
        Self::from("start")
    }

    fn from(position: &str) -> Self {
        Self {
            seen: Vec::new(),
            position: position.to_owned(),
            filter: "",
        }
    }

    /// Takes one page.
    pub(crate) async fn read(&mut self, api: &TestApi) {
        let Self {
            position, filter, ..
        } = &*self;
        let page = api
            .get(&format!("/audit?after={position}&size=3{filter}"))
            .await;
        assert_eq!(page.status, 200, "{}", page.body);
        let total = usize::try_from(page.body["total"].as_i64().unwrap()).unwrap();
        assert!(page.items().len() == total.min(3), "{}", page.body);
        self.seen.extend_from_slice(page.items());
        self.position = page.body["position"].as_str().unwrap().to_owned();
    }

    /// Takes pages until there are so many entries.
    pub(crate) async fn read_until(&mut self, api: &TestApi, count: usize) {
        until("the entries are stable", async || {
            self.read(api).await;
            self.seen.len() >= count
        })
        .await;
        assert_eq!(self.seen.len(), count, "{:?}", self.names());
    }

    fn names(&self) -> Vec<&str> {
        let names = self.seen.iter().map(|entry| entry["name"].as_str());
        names.map(Option::unwrap).collect()
    }

    /// Each entry came once, and each goes on where the one before it of its resource ended.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        let mut generations = BTreeMap::new();
        let mut sequences = Vec::new();
        for entry in &self.seen {
            sequences.push(entry["sequence"].as_i64().unwrap());
            let id = entry["resource_id"].as_str().unwrap();
            let before = generations.insert(id, entry["generation_after"].clone());
            let before = before.unwrap_or(Value::Null);
            assert_eq!(entry["generation_before"], before, "{entry}");
        }
        sequences.sort_unstable();
        assert!(sequences.is_sorted_by(|a, b| a < b), "{sequences:?}");
    }
}

async fn execute(connection: &mut PgConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.expect(sql);
}

#[tokio::test]
async fn an_entry_that_appears_late_is_not_missed() {
    let api = TestApi::spawn().await;
    let mut slow = api.database.connect().await;
    execute(&mut slow, "BEGIN").await;
    execute(&mut slow, LATE).await;
    api.cluster("quick").await;
    let mut follower = Follower::from_start();
    for _ in 0..3 {
        follower.read(&api).await;
        assert_eq!(follower.names(), [""; 0]);
    }
    // A reader that does not follow sees it immediately, and may begin there: nothing is stable yet.
    let list = api.get("/audit").await;
    assert_eq!(list.column("name"), ["quick"]);
    assert_eq!(list.body["position"], "start");
    execute(&mut slow, "COMMIT").await;
    follower.read_until(&api, 2).await;
    assert_eq!(follower.names(), ["late", "quick"]);
    let sequences: Vec<_> = follower.seen.iter().map(|e| &e["sequence"]).collect();
    assert_eq!(sequences, [1, 2]);
    follower.read(&api).await;
    assert_eq!(follower.seen.len(), 2);
}

#[tokio::test]
async fn an_entry_that_never_appears_holds_nothing_back() {
    let api = TestApi::spawn().await;
    let mut slow = api.database.connect().await;
    execute(&mut slow, "BEGIN").await;
    execute(&mut slow, LATE).await;
    api.cluster("quick").await;
    execute(&mut slow, "ROLLBACK").await;
    let mut follower = Follower::from_start();
    follower.read_until(&api, 1).await;
    assert_eq!(follower.names(), ["quick"]);
}

/// A deletion has its transaction number from its first lock, and waits for the next one: meanwhile a node pool is
/// patched by a later transaction.
#[tokio::test]
async fn changes_of_a_resource_keep_their_order() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    let mut pools = [
        api.nodepool(&cluster, "one").await,
        api.nodepool(&cluster, "two").await,
    ];
    pools.sort();
    let id = pools[0].rsplit('/').next().unwrap().parse::<uuid::Uuid>();
    let mut holder = api.database.connect().await;
    execute(&mut holder, "BEGIN").await;
    let lock = sqlx::query("SELECT FROM resources WHERE id = $1 FOR UPDATE").bind(id.unwrap());
    lock.execute(&mut holder).await.unwrap();
    let (deleted, ()) = tokio::join!(api.delete(&cluster), async {
        until("the deletion waits", async || api.count(WAITING).await == 1).await;
        let labels = json!({"labels": {"a": "b"}});
        assert_eq!(api.patch(&pools[1], labels).await.status, 200);
        execute(&mut holder, "COMMIT").await;
    });
    assert_eq!(deleted.status, 202, "{}", deleted.body);
    let mut follower = Follower::from_start();
    follower.read_until(&api, 7).await;
    follower.assert_sound();
}

#[tokio::test]
async fn a_reader_may_begin_with_what_is_new() {
    let api = TestApi::spawn().await;
    api.cluster("old").await;
    let mut position = Value::Null;
    until("it is stable", async || {
        position = api.get("/audit?size=1").await.body["position"].clone();
        position != "start"
    })
    .await;
    let mut follower = Follower::from(position.as_str().unwrap());
    follower.read(&api).await;
    assert_eq!(follower.names(), [""; 0]);
    api.cluster("new").await;
    follower.read_until(&api, 1).await;
    assert_eq!(follower.names(), ["new"]);
}

#[tokio::test]
async fn filters_leave_out_and_the_position_goes_on() {
    let api = TestApi::spawn().await;
    let mut follower = Follower::from_start();
    follower.filter = "&kind=NodePool";
    let cluster = api.cluster("owner").await;
    let mut last = follower.position.clone();
    until("the position passes what is left out", async || {
        follower.read(&api).await;
        std::mem::replace(&mut last, follower.position.clone()) != "start"
    })
    .await;
    for number in 0..7 {
        api.nodepool(&cluster, &format!("pool-{number}")).await;
        api.cluster(&format!("cluster-{number}")).await;
    }
    follower.read_until(&api, 7).await;
    let pools: Vec<_> = (0..7).map(|number| format!("pool-{number}")).collect();
    assert_eq!(follower.names(), pools);
}

#[tokio::test]
async fn positions_that_cannot_be_are_refused() {
    let api = TestApi::spawn().await;
    for (query, detail) in [
        ("after=7", "Invalid query parameters"),
        ("after=1-2-3-4", "Invalid query parameters"),
        ("after=start&page=1", "Invalid query parameters"),
        (
            "after=0-9000000000000000-1",
            "after is ahead of the audit trail",
        ),
        (
            "after=9000000000000000-1-1",
            "after is ahead of the audit trail",
        ),
    ] {
        let answer = api.get(&format!("/audit?{query}")).await;
        assert_eq!(answer.problem(), (400, "VAL-000"), "{query}");
        assert!(answer.detail().starts_with(detail), "{}", answer.body);
    }
}

/// Transactions of the server that a dump comes from have other numbers: here, higher ones.
#[tokio::test]
async fn a_restored_dump_is_followed_after_a_new_era() {
    let api = TestApi::spawn().await;
    let mut connection = api.database.connect().await;
    for sql in [
        "ALTER TABLE audit_entries ALTER COLUMN commit_order SET DEFAULT 9000000000000000",
        LATE,
        LATE,
        "ALTER TABLE audit_entries ALTER COLUMN commit_order SET DEFAULT pg_current_xact_id()::text::bigint",
    ] {
        execute(&mut connection, sql).await;
    }
    let lost = "/audit?after=0-9000000000000001-77";
    assert_eq!(api.get(lost).await.status, 400);
    execute(&mut connection, "SELECT begin_audit_era()").await;
    let mut follower = Follower::from_start();
    follower.read_until(&api, 2).await;
    api.cluster("new").await;
    follower.read_until(&api, 3).await;
    assert_eq!(follower.names(), ["late", "late", "new"]);
    // A reader that had got further in the state that was lost misses nothing, either.
    assert_eq!(api.get(lost).await.column("name"), ["new"]);
    // Every restore begins a later one.
    execute(&mut connection, "SELECT begin_audit_era()").await;
    api.cluster("newer").await;
    follower.read_until(&api, 4).await;
    assert_eq!(follower.names()[3], "newer");
}
