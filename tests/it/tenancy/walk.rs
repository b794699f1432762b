//! Every route and verb of the document, with the ids of another tenant: nobody can tell what belongs
//! to others from what is not there.

use serde_json::{Value, json};
use sqlx::Connection as _;

use super::{Call, Fleet, calls, kinds, stored_rows};
use crate::support::{ACME, ACME_WEB, Answer, BETA, SYSTEM, TestApi, Walls, assert_sound};

/// What an answer says, but for when and where, with the ids of a fleet in the places of those of
/// nobody.
fn observed(answer: &Answer, fleet: &Fleet, path: &str) -> (u16, Vec<String>, String) {
    let mut body = answer.body.clone();
    if let Some(problem) = body.as_object_mut() {
        for member in ["timestamp", "trace_id", "instance"] {
            problem.remove(member);
        }
    }
    let mut text = body.to_string();
    for (id, other) in fleet.ids().into_iter().zip(Fleet::of_nobody().ids()) {
        text = text.replace(id, other);
    }
    let mut names: Vec<_> = answer.headers.keys().map(ToString::to_string).collect();
    names.sort();
    assert!(answer.status < 500, "{path}: {text}");
    (answer.status, names, text)
}

impl Call {
    /// What is answered to it where nothing is there.
    fn refusal(&self) -> u16 {
        match (&*self.method, self.parameters()) {
            ("POST", 0) if self.template == "/nodepools" => 422,
            // What is linked to is not there.
            ("POST", 0) => 400,
            _ => 404,
        }
    }
}

/// Sends every call of the document with ids of `theirs`, alone and mixed with our own, and holds each
/// answer against the one for ids that nobody has. Gives how many were sent.
async fn walk(ours: &TestApi, own: &Fleet, theirs: &Fleet) -> usize {
    let nobody = Fleet::of_nobody();
    let mut sent = 0;
    for call in calls(ours).await {
        if call.parameters() == 0 && call.method != "POST" {
            continue;
        }
        let mut pairs = vec![((theirs, theirs), (&nobody, &nobody))];
        if call.parameters() > 1 {
            pairs.push(((own, theirs), (own, &nobody)));
            pairs.push(((theirs, own), (&nobody, own)));
        }
        for (foreign, missing) in pairs {
            let there = call.paths(foreign.0, foreign.1);
            let not_there = call.paths(missing.0, missing.1);
            for (there, not_there) in there.iter().zip(&not_there) {
                if call.parameters() == 0 && call.list() == "/clusters" {
                    // Creates without asking for anything that is there.
                    continue;
                }
                let bodies = call.bodies(ours, theirs).into_iter();
                for (body, other) in bodies.zip(call.bodies(ours, &nobody)) {
                    let at = format!("{} {there} {body}", call.method);
                    let answer = call.send(ours, there, body).await;
                    let expected = call.send(ours, not_there, other).await;
                    assert_eq!(
                        observed(&answer, theirs, &at),
                        observed(&expected, &nobody, &at),
                        "{at}"
                    );
                    assert_eq!(answer.status, call.refusal(), "{at}: {}", answer.body);
                    sent += 2;
                }
            }
        }
    }
    sent
}

#[tokio::test]
async fn what_belongs_to_others_is_not_there_on_any_route() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let (acme, beta) = (api.speaking(ACME), api.speaking(BETA));
    let own = Fleet::of(&acme, "same").await;
    let theirs = Fleet::of(&beta, "same").await;
    let before = (
        stored_rows(&api, "acme").await,
        stored_rows(&api, "beta").await,
    );
    // A statement that locks their rows would wait, and fail in the end.
    let mut connection = api.database.connect().await;
    let mut busy = connection.begin().await.unwrap();
    let lock = "SELECT FROM resources WHERE tenancy ->> 'org' = 'beta' FOR UPDATE";
    let locked = sqlx::query(lock).fetch_all(&mut *busy).await.unwrap();
    assert_eq!(locked.len(), 3);
    let sent = walk(&acme, &own, &theirs).await;
    busy.rollback().await.unwrap();
    // Without a path of the document this would be less.
    assert!(sent >= 150, "{sent}");
    let after = (
        stored_rows(&api, "acme").await,
        stored_rows(&api, "beta").await,
    );
    assert_eq!(before, after);
    // The same once everything of theirs waits for its end, which allows other things.
    for path in [2, 0].map(|place: usize| theirs.paths()[place].clone()) {
        beta.deleted(&path).await;
    }
    let before = stored_rows(&api, "beta").await;
    assert_eq!(walk(&acme, &own, &theirs).await, sent);
    // Nor is one tenant's organisation another's project, or the other way round.
    assert_eq!(walk(&api.speaking(ACME_WEB), &theirs, &own).await, sent);
    assert_eq!(stored_rows(&api, "beta").await, before);
    for path in own.paths() {
        assert_eq!(acme.get(&path).await.status, 200, "{path}");
    }
    for path in theirs.paths().into_iter().rev() {
        assert_eq!(beta.get(&path).await.status, 200, "{path}");
        beta.finalize(&path, &["dns"], 2).await;
        assert_eq!(beta.get(&path).await.status, 404, "{path}");
    }
    assert_sound(&mut api.database.connect().await, &kinds()).await;
}

#[tokio::test]
async fn nothing_can_be_linked_to_what_is_not_seen() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let (acme, beta) = (api.speaking(ACME), api.speaking(BETA));
    let own = Fleet::of(&acme, "same").await;
    let theirs = Fleet::of(&beta, "same").await;
    let before = (
        stored_rows(&api, "acme").await,
        stored_rows(&api, "beta").await,
    );
    let nobody = Fleet::of_nobody();
    let pools = format!("/clusters/{}/nodepools", own.cluster);
    let nested = format!("{pools}/{}", own.pool);
    let [_, pool, addon] = own.paths();
    for (method, path, link) in [
        ("POST", "/addons", "Cluster"),
        ("POST", "/resources", "Cluster"),
        ("POST", &pools, "Addon"),
        ("PATCH", &addon, "Cluster"),
        ("PATCH", &pool, "Addon"),
        ("PATCH", &nested, "Addon"),
    ] {
        let refused = async |fleet: &Fleet| {
            let (id, kind) = match link {
                "Cluster" => (&fleet.cluster, "Addon"),
                _ => (&fleet.addon, "NodePool"),
            };
            let links = json!({link.to_lowercase(): [{"kind": link, "id": id}]});
            let body = if method == "PATCH" {
                json!({"references": links})
            } else {
                json!({"kind": kind, "name": "new", "spec": {}, "references": links})
            };
            let answer = acme.send(method, path, body).await;
            assert_eq!(answer.problem(), (400, "VAL-000"), "{}", answer.body);
            observed(&answer, fleet, path)
        };
        let (foreign, missing) = (refused(&theirs).await, refused(&nobody).await);
        assert_eq!(foreign, missing, "{method} {path}");
    }
    let after = (
        stored_rows(&api, "acme").await,
        stored_rows(&api, "beta").await,
    );
    assert_eq!(before, after);
}

#[tokio::test]
async fn no_response_names_resources_of_other_tenants() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let (acme, beta) = (api.speaking(ACME), api.speaking(BETA));
    let own = Fleet::of(&acme, "ours").await;
    let theirs = Fleet::of(&beta, "theirs").await;
    for call in calls(&api).await {
        if call.method != "GET" {
            continue;
        }
        for path in call.paths(&own, &own) {
            for parameters in ["", "?includeDeleted=true&size=100", "?page=2&size=1"] {
                let answer = acme.get(&format!("{path}{parameters}")).await;
                assert_eq!(answer.status, 200, "{path}: {}", answer.body);
                let text = answer.body.to_string();
                let ids = theirs.ids();
                for word in ids.into_iter().chain(["theirs", "beta"]) {
                    assert!(!text.contains(word), "{path}{parameters}: {text}");
                }
            }
        }
    }
}

#[tokio::test]
async fn what_is_ours_can_be_done_on_every_route() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let acme = api.speaking(ACME);
    Fleet::of(&api.speaking(BETA), "same").await;
    for (number, call) in calls(&api).await.into_iter().enumerate() {
        let own = Fleet::of(&acme, &format!("own-{number}")).await;
        if call.template.ends_with("/force-delete") {
            for path in [2, 0].map(|place: usize| own.paths()[place].clone()) {
                acme.deleted(&path).await;
            }
        }
        for path in call.paths(&own, &own) {
            let answer = call.send(&acme, &path, call.body(&acme, &own)).await;
            let at = format!("{} {path}: {}", call.method, answer.body);
            let allowed: &[u16] = match &*call.method {
                "POST" if call.template == "/nodepools" => &[422],
                "POST" if call.template.ends_with("/force-delete") => &[204],
                "POST" | "PUT" => &[201],
                // An add-on links to the cluster.
                "DELETE" => &[202, 409],
                _ => &[200],
            };
            // What a cluster takes along is gone before its turn comes.
            let is_gone = answer.status == 404 && call.template.starts_with("/resources/");
            assert!(is_gone || allowed.contains(&answer.status), "{at}");
            if call.template == "/clusters" || call.template == "/addons" {
                let name = json!(answer.body["name"]);
                assert!(call.method != "POST" || name.is_string(), "{at}");
            }
        }
        if call.method == "POST" {
            clear_new(&acme).await;
        }
    }
}

/// Takes away what a walk has created, so that its names are free.
async fn clear_new(api: &TestApi) {
    for (list, name) in [("/addons", "new-addon"), ("/clusters", "new-cluster")] {
        let found = api.get(&format!("{list}?search=name%3D'{name}'")).await;
        for id in found.column("id") {
            api.deleted(&format!("{list}/{id}")).await;
        }
    }
}

#[tokio::test]
async fn with_the_walls_down_tenants_reach_each_other() {
    let api = TestApi::spawn_for(&kinds(), Walls::Down).await;
    let (acme, beta) = (api.speaking(ACME), api.speaking(BETA));
    let theirs = Fleet::of(&beta, "theirs").await;
    for call in calls(&api).await {
        let is_read_or_report = ["GET", "PUT"].contains(&&*call.method);
        for path in call.paths(&theirs, &theirs) {
            if is_read_or_report {
                let answer = call.send(&acme, &path, call.body(&acme, &theirs)).await;
                assert!([200, 201].contains(&answer.status), "{path}");
            }
        }
    }
    let pools = format!("/clusters/{}/nodepools", theirs.cluster);
    let made = acme.made(&pools, "NodePool", "ours").await;
    assert_eq!(made.body["tenancy"], json!({"org": "acme"}));
    assert_eq!(
        acme.get(&pools).await.column("name"),
        ["ours", "theirs"],
        "newest first"
    );
    let addon = acme.post("/addons", super::addon("ours", &theirs.cluster));
    assert_eq!(addon.await.status, 201);
    let patch = json!({"labels": {"a": "b"}});
    for path in theirs.paths() {
        let patched = acme.patch(&path, patch.clone()).await;
        assert_eq!(patched.status, 200, "{path}: {}", patched.body);
        assert_eq!(patched.body["tenancy"], json!({"org": "beta"}), "{path}");
    }
    let [_, pool, addon] = theirs.paths();
    acme.deleted(&pool).await;
    acme.deleted(&addon).await;
    let reason = json!({"reason": "for a test"});
    let forced = acme.post(&format!("{addon}/force-delete"), reason).await;
    assert_eq!(forced.status, 204);
    let trail = acme.get("/audit?size=100").await;
    let of_beta = trail
        .items()
        .iter()
        .filter(|e| e["tenancy"]["org"] == "beta");
    assert_eq!(of_beta.count(), 9);
    assert_eq!(
        api.speaking(SYSTEM).get("/audit").await.body["total"],
        trail.body["total"]
    );
    assert_sound(&mut api.database.connect().await, &kinds()).await;
}

#[tokio::test]
async fn the_walk_knows_every_call() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let calls = calls(&api).await;
    let document = api.get("/openapi").await.body;
    let paths = document["paths"].as_object().unwrap();
    let all: usize = paths.values().map(|p| p.as_object().unwrap().len()).sum();
    // All but what the service says of itself (what it is, the document, its page), and the three calls of leases.
    assert_eq!(calls.len(), all - 3 - 3);
    let fleet = Fleet::of_nobody();
    for call in calls {
        let is_there = |path: &String| !path.contains('{');
        assert!(call.paths(&fleet, &fleet).iter().all(is_there), "{call:?}");
        assert!(call.body(&api, &fleet) != json!(0), "{call:?}");
        let Value::Object(operation) =
            &paths[&format!("/api/hyperfleet/v1{}", call.template)][call.method.to_lowercase()]
        else {
            panic!("{call:?} is not described");
        };
        assert!(operation["responses"]["403"].is_object(), "{call:?}");
    }
}
