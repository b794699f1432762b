//! Many changes at once share statements: each has its own effect and its own answer.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::Connection as _;

use super::Busy;
use crate::support::{Answer, Cut, Proxy, child, root, ruled};

/// So many that all but the first few share statements.
const MANY: usize = 48;

impl Busy {
    /// Creates clusters at once; returns their paths.
    async fn clusters(&self, count: usize) -> Vec<String> {
        let requests = (0..count).map(|number| {
            let api = self.api.clone();
            async move { api.cluster(&format!("c-{number}")).await }
        });
        self.at_once(requests).await
    }

    async fn patch_all(&self, paths: &[String]) -> Vec<Answer> {
        self.patch_each(paths, |number| json!({"n": number})).await
    }

    async fn patch_each(&self, paths: &[String], spec: impl Fn(usize) -> Value) -> Vec<Answer> {
        let requests = paths.iter().enumerate().map(|(number, path)| {
            let (api, path, spec) = (self.api.clone(), path.clone(), spec(number));
            async move { api.patch(&path, json!({"spec": spec})).await }
        });
        self.at_once(requests).await
    }

    async fn delete_all(&self, paths: &[String]) -> Vec<Answer> {
        let requests = paths.iter().map(|path| {
            let (api, path) = (self.api.clone(), path.clone());
            async move { api.delete(&path).await }
        });
        self.at_once(requests).await
    }

    async fn generations(&self, paths: &[String]) -> Vec<i64> {
        let mut generations = Vec::new();
        for path in paths {
            let body = self.api.get(path).await.body;
            generations.push(body["generation"].as_i64().unwrap());
        }
        generations
    }

    async fn report_all(&self, paths: &[String]) -> Vec<Answer> {
        let requests = paths.iter().enumerate().map(|(number, path)| {
            let (api, path) = (self.api.clone(), path.clone());
            let adapter = ["dns", "validation"][number % 2];
            async move {
                api.report(&path, adapter, 2, &[("Available", "True")])
                    .await
            }
        });
        self.at_once(requests).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_change_has_its_own_effect() {
    let busy = Busy::spawn().await;
    let paths = busy.clusters(MANY).await;
    for (number, answer) in busy.patch_all(&paths).await.iter().enumerate() {
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.body["name"], format!("c-{number}"));
        assert_eq!(answer.body["spec"], json!({"n": number}));
        assert_eq!(answer.body["generation"], 2);
    }
    for answer in busy.report_all(&paths).await {
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    for (number, path) in paths.iter().enumerate() {
        let stored = busy.api.get(path).await;
        assert_eq!(stored.body["spec"], json!({"n": number}), "{path}");
        let reports = busy.api.get(&format!("{path}/statuses")).await;
        assert_eq!(
            reports.body["items"][0]["adapter"],
            ["dns", "validation"][number % 2],
            "{path}"
        );
        for (table, count) in [
            (
                "SELECT count(*) FROM audit_entries WHERE resource_id = $1",
                2,
            ),
            // Created, patched; the first usable report changes the message of `Reconciled`.
            ("SELECT count(*) FROM changes WHERE resource_id = $1", 3),
        ] {
            assert_eq!(busy.count(table, path).await, count, "{table} {path}");
        }
    }
    for (number, answer) in busy.delete_all(&paths).await.iter().enumerate() {
        assert_eq!(answer.status, 202, "{}", answer.body);
        assert_eq!(answer.body["name"], format!("c-{number}"));
        assert_eq!(answer.body["generation"], 3);
    }
    for path in &paths {
        let deleted = busy.api.get(path).await.body;
        assert!(deleted["deleted_time"].is_string(), "{deleted}");
        for (table, count) in [
            (
                "SELECT count(*) FROM audit_entries WHERE resource_id = $1 AND action = 'delete'",
                1,
            ),
            ("SELECT count(*) FROM changes WHERE resource_id = $1", 4),
        ] {
            assert_eq!(busy.count(table, path).await, count, "{table} {path}");
        }
    }
    busy.assert_sound().await;
}

/// Children come while their parents are deleted: either a child is refused, or it is deleted with its parent.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_child_outlives_its_parent() {
    let busy = Busy::spawn().await;
    let paths = busy.clusters(MANY).await;
    let (deleted, made) = tokio::join!(busy.delete_all(&paths), async {
        let requests = paths.iter().map(|path| {
            let (api, list) = (busy.api.clone(), format!("{path}/nodepools"));
            let child = json!({"kind": "NodePool", "name": "workers", "spec": {}});
            async move { api.post(&list, child).await }
        });
        busy.at_once(requests).await
    });
    for answer in &deleted {
        assert_eq!(answer.status, 202, "{}", answer.body);
    }
    for answer in &made {
        assert!(matches!(answer.status, 201 | 409), "{}", answer.body);
    }
    let active = "SELECT count(*) FROM resources WHERE owner_id = $1 AND deleted_at IS NULL";
    for path in &paths {
        assert_eq!(busy.count(active, path).await, 0, "{path}");
    }
    busy.assert_sound().await;
}

/// A request that is refused for its references looks at its parent without the input of rules.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_without_rules_takes_nothing_from_those_with_rules() {
    let rule = ("Placed", "true", "has(resource.spec.region)", "\"\"");
    let kinds = vec![
        ruled(&[rule], root("Site", "sites", &["dns"])),
        child("Site", "cascade", root("Rack", "racks", &[])),
    ];
    let busy = Busy::spawn_with(kinds).await;
    let mut sites = Vec::new();
    for number in 0..MANY {
        let body = json!({"kind": "Site", "name": format!("s{number}"), "spec": {"region": "eu"}});
        sites.push(format!(
            "/sites/{}",
            busy.api.post("/sites", body).await.id()
        ));
    }
    for round in 0..20 {
        let refused = sites.iter().map(|site| {
            let (api, list) = (busy.api.clone(), format!("{site}/racks"));
            let links = json!({"nowhere": [{"kind": "Site", "id": "0"}]});
            let rack = json!({"kind": "Rack", "name": "r", "spec": {}, "references": links});
            async move { api.post(&list, rack).await }
        });
        let patched = sites.iter().map(|site| {
            let (api, site) = (busy.api.clone(), site.clone());
            let labels = json!({"labels": {"round": round.to_string()}});
            async move { api.patch(&site, labels).await }
        });
        let (refused, patched) = tokio::join!(busy.at_once(refused), busy.at_once(patched));
        for answer in refused {
            assert_eq!(answer.status, 400, "{}", answer.body);
        }
        for answer in patched {
            let conditions = answer.body["status"]["conditions"].as_array().unwrap();
            let placed = conditions.iter().find(|c| c["type"] == "Placed").unwrap();
            assert_eq!(placed["status"], "True", "round {round}: {placed}");
        }
    }
    busy.assert_sound().await;
}

/// A busy server whose connections lead through a proxy.
async fn behind_a_proxy() -> (Busy, Proxy) {
    let mut proxy = None;
    let busy = Busy::spawn_through(|options| {
        let started = Proxy::start(options.clone());
        let options = started.options(options);
        proxy = Some(started);
        options
    });
    (busy.await, proxy.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_connection_leaves_no_half_change() {
    let (busy, proxy) = behind_a_proxy().await;
    let paths = busy.clusters(MANY).await;
    let (mut cuts, mut refused) = (0, 0);
    for round_trip in 1..=16 {
        for cut in [Cut::Before(round_trip), Cut::After(round_trip)] {
            let before = busy.generations(&paths).await;
            proxy.reset(Some(cut));
            let spec = |_| json!({"cut": format!("{cut:?}")});
            let answers = busy.patch_each(&paths, spec).await;
            cuts += proxy.cuts();
            proxy.reset(None);
            let after = busy.generations(&paths).await;
            for ((answer, before), after) in answers.iter().zip(before).zip(after) {
                match answer.status {
                    200 => assert_eq!(after, before + 1, "{cut:?} {}", answer.body),
                    503 => assert!(after == before || after == before + 1, "{cut:?}"),
                    other => panic!("{other} at {cut:?}: {}", answer.body),
                }
                refused += u32::from(answer.status == 503);
            }
        }
    }
    println!("{cuts} connections cut, {refused} changes refused");
    assert!(cuts > 8 && refused > 0, "{cuts} {refused}");
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_changes_take_few_statements() {
    let (busy, proxy) = behind_a_proxy().await;
    let paths = busy.clusters(MANY).await;
    let created = proxy.sent().statements;
    proxy.reset(None);
    busy.patch_all(&paths).await;
    let patched = proxy.sent().statements;
    let unbatched = u32::try_from(2 * MANY).unwrap();
    proxy.reset(None);
    busy.delete_all(&paths).await;
    let deleted = proxy.sent().statements;
    println!("{MANY} POST: {created} statements, PATCH: {patched}, DELETE: {deleted}");
    assert!(created < unbatched / 4, "{created}");
    assert!(patched < unbatched / 2, "{patched}");
    assert!(deleted < unbatched / 2, "{deleted}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_name_that_is_taken_fails_its_own_request_only() {
    let busy = Busy::spawn().await;
    let requests = (0..MANY).map(|number| {
        let api = busy.api.clone();
        // Every name twice.
        let body = json!({"kind": "Cluster", "name": format!("c-{}", number / 2), "spec": {}});
        async move { api.post("/clusters", body).await.status }
    });
    let mut statuses = busy.at_once(requests).await;
    statuses.sort_unstable();
    let expected = [vec![201; MANY / 2], vec![409; MANY / 2]].concat();
    assert_eq!(statuses, expected);
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_locked_row_holds_back_its_own_request_only() {
    let busy = Busy::spawn().await;
    let paths = busy.clusters(MANY).await;
    let mut connection = busy.api.database.connect().await;
    let mut tx = connection.begin().await.unwrap();
    let id: uuid::Uuid = paths[MANY / 2].rsplit('/').next().unwrap().parse().unwrap();
    let lock = sqlx::query("SELECT FROM resources WHERE id = $1 FOR UPDATE").bind(id);
    lock.execute(&mut *tx).await.unwrap();
    let locked = {
        let (api, path) = (busy.api.clone(), paths[MANY / 2].clone());
        tokio::spawn(async move { api.patch(&path, json!({"spec": {"n": "late"}})).await })
    };
    let others: Vec<_> = paths
        .iter()
        .filter(|path| **path != paths[MANY / 2])
        .cloned()
        .collect();
    for answer in busy.patch_all(&others).await {
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    assert!(!locked.is_finished());
    tx.rollback().await.unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(30), locked).await;
    let answer = answer.unwrap().unwrap();
    assert_eq!(answer.body["spec"]["n"], "late", "{}", answer.body);
    connection.close().await.unwrap();
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_patch_of_one_resource_succeeds() {
    let busy = Busy::spawn().await;
    let path = busy.api.cluster("hot").await;
    let answers = busy.patch_all(&vec![path.clone(); MANY]).await;
    let mut generations: Vec<_> = answers
        .iter()
        .map(|answer| answer.body["generation"].as_u64().unwrap())
        .collect();
    generations.sort_unstable();
    let expected: Vec<_> = (2..).take(MANY).collect();
    assert_eq!(generations, expected);
    busy.assert_sound().await;
}
