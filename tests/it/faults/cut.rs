//! The connection to the database is lost at every point of every kind of write.

use hyperfleet_domain::entity_config;
use serde_json::{Value, json};

use super::{assert_unavailable, contents, until_only_client};
use crate::support::{Cut, Proxy, TestApi, TestDatabase, assert_sound, store_of};

const FINALIZED: &[(&str, &str)] = &[("Finalized", "True")];
/// Far more than any request needs.
const ROUND_TRIPS_MAX: u32 = 60;

/// A kind of write.
#[derive(Debug, Clone, Copy)]
enum Write {
    Root,
    Child,
    Patch,
    Report,
    Delete,
    ForceDelete,
    LastReport,
}

/// A write that is ready to be sent.
struct Request {
    method: &'static str,
    path: String,
    body: Value,
    success: u16,
}

impl Write {
    /// Makes everything that the write needs, and the write.
    async fn prepare(self, api: &TestApi, name: &str) -> Request {
        let request = |method, path: String, body, success| Request {
            method,
            path,
            body,
            success,
        };
        let new = |kind| json!({"kind": kind, "name": name, "spec": {"a": 1}});
        let cluster = match self {
            Self::Root => return request("POST", "/clusters".into(), new("Cluster"), 201),
            _ => api.cluster(&format!("c-{name}")).await,
        };
        for pool in ["one", "two", "three"] {
            api.nodepool(&cluster, pool).await;
        }
        match self {
            Self::Root => unreachable!("sent already"),
            Self::Child => request("POST", format!("{cluster}/nodepools"), new("NodePool"), 201),
            Self::Patch => request("PATCH", cluster, json!({"spec": {"b": name}}), 200),
            Self::Report => {
                let path = format!("{cluster}/statuses");
                request("PUT", path, report(api, "dns", 1), 201)
            }
            Self::Delete => request("DELETE", cluster, Value::Null, 202),
            Self::ForceDelete => {
                assert_eq!(api.delete(&cluster).await.status, 202);
                let body = json!({"reason": "x"});
                request("POST", format!("{cluster}/force-delete"), body, 204)
            }
            Self::LastReport => {
                let cluster = api.cluster(&format!("d-{name}")).await;
                let pool = api.nodepool(&cluster, "pool").await;
                assert_eq!(api.delete(&cluster).await.status, 202);
                for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
                    assert_eq!(
                        api.report(&cluster, adapter, 2, FINALIZED).await.status,
                        201
                    );
                }
                assert_eq!(
                    api.report(&pool, "validation", 2, FINALIZED).await.status,
                    201
                );
                let path = format!("{pool}/statuses");
                request("PUT", path, report(api, "hypershift", 2), 201)
            }
        }
    }
}

fn report(api: &TestApi, adapter: &str, generation: i32) -> Value {
    let conditions = ["Available", "Applied", "Health", "Finalized"]
        .map(|kind| json!({"type": kind, "status": "True"}));
    json!({
        "adapter": adapter,
        "observed_generation": generation,
        "observed_time": api.clock.now(),
        "conditions": conditions,
    })
}

/// Cuts the connection in each round trip in turn, until there are no more; checks each time that
/// everything is stored or nothing.
async fn cut_everywhere(write: Write, cut: fn(u32) -> Cut) {
    let database = TestDatabase::create().await;
    let proxy = Proxy::start(database.options());
    let store = store_of(proxy.options(database.options()), 1);
    let mut direct = database.connect().await;
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let api = TestApi::spawn_on(registry, database, store, false);
    let mut times_stored = 0;
    for number in 1..ROUND_TRIPS_MAX {
        let what = format!("{write:?} with {:?}", cut(number));
        // Statements are prepared by another write of the kind, so that every attempt takes the
        // same round trips.
        let warm_up = write.prepare(&api, &format!("w-{number}")).await;
        let warmed = api.send(warm_up.method, &warm_up.path, warm_up.body).await;
        assert_eq!(warmed.status, warm_up.success, "{what}");
        let request = write.prepare(&api, &format!("n-{number}")).await;
        let before = contents(&mut direct).await;
        proxy.reset(Some(cut(number)));
        let answer = api
            .send(request.method, &request.path, request.body.clone())
            .await;
        let was_cut = proxy.cuts() > 0;
        proxy.reset(None);
        if !was_cut {
            assert_eq!(answer.status, request.success, "{what}: {}", answer.body);
            assert!(number > 1, "{what}: nothing was ever cut");
            // Only a commit that was on its way to the server may have happened.
            let is_last_refused = number > 2;
            let expected = u32::from(is_last_refused && matches!(cut(1), Cut::After(_)));
            assert_eq!(times_stored, expected, "{what}");
            until_only_the_pool_is_connected(&api, &mut direct).await;
            assert_sound(&mut direct, &entity_config::built_in()).await;
            return;
        }
        // The last report and the deletion read first, and take a connection of their own for the transaction.
        let reads_first = matches!(write, Write::LastReport | Write::Delete);
        let begins = number == 1 || number == 2 && reads_first;
        if begins {
            // Nothing was done before it: the statement is sent again, over another connection.
            assert_eq!(answer.status, request.success, "{what}: {}", answer.body);
            until_only_the_pool_is_connected(&api, &mut direct).await;
            assert_sound(&mut direct, &entity_config::built_in()).await;
            continue;
        }
        assert_unavailable(&answer, &what);
        until_only_client(&mut direct).await;
        let is_stored = contents(&mut direct).await != before;
        times_stored += u32::from(is_stored);
        assert_sound(&mut direct, &entity_config::built_in()).await;
        // The answer asks the client to try again.
        let again = api.send(request.method, &request.path, request.body).await;
        let expected = match write {
            Write::Root | Write::Child if is_stored => 409,
            Write::ForceDelete | Write::LastReport if is_stored => 404,
            _ => request.success,
        };
        assert_eq!(again.status, expected, "{what}, again: {}", again.body);
    }
    panic!("{write:?} needs more than {ROUND_TRIPS_MAX} round trips");
}

/// The connection that the request used is idle again.
async fn until_only_the_pool_is_connected(
    api: &TestApi,
    direct: &mut sqlx::postgres::PgConnection,
) {
    assert_eq!(api.get("/clusters").await.status, 200);
    let busy = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'";
    super::until("all is quiet", async || {
        let query = sqlx::query_scalar::<_, i64>(busy);
        query.fetch_one(&mut *direct).await.unwrap() == 0
    })
    .await;
}

macro_rules! writes_survive {
    ($($name:ident: $write:ident,)*) => {$(
        #[tokio::test]
        async fn $name() {
            cut_everywhere(Write::$write, Cut::Before).await;
            cut_everywhere(Write::$write, Cut::After).await;
        }
    )*};
}

writes_survive! {
    a_create_that_is_cut_off_is_done_or_not: Root,
    a_create_below_a_parent_that_is_cut_off_is_done_or_not: Child,
    a_patch_that_is_cut_off_is_done_or_not: Patch,
    a_report_that_is_cut_off_is_done_or_not: Report,
    a_delete_of_a_tree_that_is_cut_off_is_done_or_not: Delete,
    a_force_delete_of_a_tree_that_is_cut_off_is_done_or_not: ForceDelete,
    last_words_that_are_cut_off_remove_all_or_nothing: LastReport,
}

/// A server whose way to the database can be cut.
async fn behind_proxy() -> (Proxy, TestApi) {
    let database = TestDatabase::create().await;
    let proxy = Proxy::start(database.options());
    let options = proxy.options(database.options());
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let api = TestApi::spawn_on(registry, database, crate::support::store(options), false);
    (proxy, api)
}

#[tokio::test]
async fn a_read_that_is_cut_off_is_sent_again() {
    let (proxy, api) = behind_proxy().await;
    let cluster = api.cluster("abc").await;
    for path in [
        "/clusters",
        "/resources",
        "/audit",
        &format!("{cluster}/statuses"),
    ] {
        assert_eq!(api.get(path).await.status, 200);
        for cut in [Cut::Before(1), Cut::After(1)] {
            proxy.reset(Some(cut));
            assert_eq!(api.get(path).await.status, 200, "{path}");
            assert_eq!(proxy.cuts(), 1);
        }
    }
}

#[tokio::test]
async fn a_read_of_one_resource_that_is_cut_off_is_asked_again() {
    let (proxy, api) = behind_proxy().await;
    let cluster = api.cluster("abc").await;
    assert_eq!(api.get(&cluster).await.status, 200);
    for cut in [Cut::Before(1), Cut::After(1)] {
        proxy.reset(Some(cut));
        let found = api.get(&cluster).await;
        assert_eq!((found.status, proxy.cuts()), (200, 1));
        assert_eq!(cluster, format!("/clusters/{}", found.id()));
    }
}

#[tokio::test]
async fn a_create_that_is_cut_off_is_done_once_and_acknowledged() {
    let (proxy, api) = behind_proxy().await;
    let cluster = api.cluster("abc").await;
    let path = format!("{cluster}/nodepools");
    for (number, cut) in [Cut::Before(1), Cut::After(1)].into_iter().enumerate() {
        proxy.reset(Some(cut));
        let new = json!({"kind": "NodePool", "name": format!("pool-{number}"), "spec": {}});
        let made = api.post(&path, new.clone()).await;
        assert_eq!((made.status, proxy.cuts()), (201, 1), "{}", made.body);
        let found = api.get(&format!("{path}/{}", made.id())).await;
        assert_eq!(found.body, made.body, "{cut:?}");
        // What is there of others is a conflict as ever, also where the statement is sent twice.
        proxy.reset(Some(cut));
        let again = api.post(&path, new).await;
        assert_eq!((again.status, proxy.cuts()), (409, 1), "{}", again.body);
    }
    assert_eq!(api.get(&path).await.body["total"], 2);
    assert_eq!(api.get("/audit").await.body["total"], 3);
}
