//! Random requests, each as a dry run first, over families with every policy.

use std::collections::BTreeSet;

use hyperfleet_domain::entity_config::EntityConfig;
use serde_json::{Value, json};

use super::{NONE, Rehearsal};
use crate::support::{Random, child, linked, root, ruled};

const STEPS: usize = 110;
const NAMES: [&str; 3] = ["one", "two", "three"];

/// Clusters own node pools, which own files; add-ons link to clusters and to each other.
fn kinds(pools: &str, files: &str, of_pools: &[&str], of_files: &[&str]) -> Vec<EntityConfig> {
    let links = [("cluster", "Cluster", 0, 2), ("friend", "Addon", 0, 0)];
    let rule = (
        "Seen",
        "size(statuses) > 0",
        "true",
        "toJson(statuses[0].data)",
    );
    let failing = ("Broken", "true", "1 / resource.spec.a > 0", "'x'");
    let cluster = ruled(&[rule, failing], root("Cluster", "clusters", &["dns"]));
    vec![
        cluster,
        child("Cluster", pools, root("NodePool", "nodepools", of_pools)),
        child("NodePool", files, root("File", "files", of_files)),
        linked(&links, root("Addon", "addons", &["map"])),
    ]
}

/// Chooses requests from what was created so far.
struct Walk {
    random: Random,
    /// Kind and id of everything that was created, whether it still exists or not.
    known: Vec<(&'static str, String)>,
}

impl Walk {
    fn id(&mut self, kind: &str) -> String {
        let of_kind = self.known.iter().filter(|(k, _)| *k == kind);
        let ids: Vec<_> = of_kind.map(|(_, id)| id.clone()).collect();
        if ids.is_empty() || self.random.below(12) == 0 {
            return "01890000-0000-7000-8000-000000000000".to_owned();
        }
        // Mostly a late one: the earlier ones are gone.
        let late = ids.len().saturating_sub(3);
        let first = if self.random.below(3) == 0 { 0 } else { late };
        ids[first + self.random.below(ids.len() - first)].clone()
    }

    /// A path of one resource, by one of its routes.
    fn path(&mut self) -> String {
        let kind = self
            .random
            .pick(&["Cluster", "NodePool", "NodePool", "File", "Addon"]);
        let id = self.id(kind);
        if self.random.below(4) == 0 {
            return format!("/resources/{id}");
        }
        match (kind, self.random.below(2)) {
            ("NodePool", 0) => format!("/clusters/{}/nodepools/{id}", self.id("Cluster")),
            ("Cluster", _) => format!("/clusters/{id}"),
            ("NodePool", _) => format!("/nodepools/{id}"),
            ("File", _) => format!("/files/{id}"),
            _ => format!("/addons/{id}"),
        }
    }

    fn references(&mut self) -> Value {
        let cluster = json!({"kind": "Cluster", "id": self.id("Cluster")});
        let friend = json!({"kind": "Addon", "id": self.id("Addon")});
        let choices = [
            json!({}),
            json!({"cluster": [cluster]}),
            json!({"cluster": [cluster], "friend": [friend]}),
            json!({"nonsense": [cluster]}),
        ];
        choices[self.random.below(choices.len())].clone()
    }

    fn create(&mut self) -> (&'static str, String, Value) {
        let kind = self
            .random
            .pick(&["Cluster", "NodePool", "NodePool", "File", "File", "Addon"]);
        let list = match kind {
            "NodePool" => format!("/clusters/{}/nodepools", self.id("Cluster")),
            "File" => format!("/nodepools/{}/files", self.id("NodePool")),
            "Addon" => self.random.pick(&["/addons", "/resources"]).to_owned(),
            _ => self.random.pick(&["/clusters", "/resources"]).to_owned(),
        };
        let list = match self.random.below(15) {
            0 => "/nodepools".to_owned(),
            _ => list,
        };
        let name = self.random.pick(&NAMES);
        let mut body = json!({"kind": kind, "name": name, "spec": {"a": self.random.below(3)}});
        if kind == "Addon" {
            body["references"] = self.references();
        }
        if self.random.below(15) == 0 {
            body["name"] = json!("NOT A NAME");
        }
        (kind, list, body)
    }

    fn change(&mut self) -> Value {
        match self.random.below(5) {
            0 => json!({"labels": {"a": self.random.below(3).to_string()}}),
            1 => json!({"references": self.references()}),
            2 => json!({"spec": {"a": self.random.below(3)}, "labels": {"not a label!": "x"}}),
            _ => json!({"spec": {"a": self.random.below(4)}}),
        }
    }

    fn report(&mut self, generation: i64, now: &Value) -> Value {
        let status = |random: &mut Random| random.pick(&["True", "True", "False", "Unknown"]);
        let mut conditions = vec![
            json!({"type": "Available", "status": status(&mut self.random)}),
            json!({"type": "Applied", "status": "True"}),
        ];
        if self.random.below(15) > 0 {
            conditions.push(json!({"type": "Health", "status": status(&mut self.random)}));
        }
        let finalized = if self.random.below(4) > 0 {
            "True"
        } else {
            "False"
        };
        conditions.push(json!({"type": "Finalized", "status": finalized}));
        let off = self.random.pick(&[0, 0, 0, 0, 0, 0, 1, -1]);
        json!({
            "adapter": self.random.pick(&["dns", "dns", "map", "other"]),
            "observed_generation": generation + off,
            "observed_time": now,
            "conditions": conditions,
            "data": {"n": self.random.below(3)},
        })
    }
}

/// Walks over one set of kinds; adds the statuses and actions that it saw.
async fn walk(kinds: Vec<EntityConfig>, seed: u64, found: &mut BTreeSet<String>) {
    let rehearsal = Rehearsal::of(kinds).await;
    let mut walk = Walk {
        random: Random::seeded(seed),
        known: Vec::new(),
    };
    for step in 0..STEPS {
        rehearsal.api.clock.advance(1);
        let (mut created, mut key) = (None, None);
        let (method, path, body) = match walk.random.below(12) {
            0..4 => {
                let (kind, list, body) = walk.create();
                created = Some(kind);
                ("POST", list, body)
            }
            4..6 => ("PATCH", walk.path(), walk.change()),
            6..8 => ("DELETE", walk.path(), NONE),
            8 => {
                let path = format!("{}/force-delete", walk.path());
                ("POST", path, json!({"reason": "x"}))
            }
            _ => {
                let path = walk.path();
                let read = rehearsal.api.get(&path).await;
                let generation = read.body["generation"].as_i64().unwrap_or(1);
                let now = json!(rehearsal.api.clock.now());
                let report = walk.report(generation, &now);
                ("PUT", format!("{path}/statuses"), report)
            }
        };
        if walk.random.below(4) == 0 {
            key = Some(format!("key-{step}"));
        }
        let tag = walk.random.pick(&["\"g1\"", "\"g2\"", "*", "nonsense"]);
        let mut headers: Vec<_> = key.iter().map(|key| ("idempotency-key", &**key)).collect();
        if walk.random.below(6) == 0 {
            headers.push(("if-match", tag));
        }
        let sent = (&*headers, method, &*path, &body);
        let (dry, real) = rehearsal.both(&rehearsal.api, sent).await;
        found.insert(format!("{method} {}", real.status));
        let said = &dry.body["dry_run"];
        for effect in said["effects"].as_array().into_iter().flatten() {
            found.insert(effect["action"].as_str().unwrap().to_owned());
        }
        if said["failed_rules"].is_array() {
            found.insert("failed rule".to_owned());
        }
        if let (Some(kind), 201) = (created, real.status) {
            walk.known.push((kind, real.id().to_owned()));
        }
    }
    rehearsal.assert_sound().await;
}

#[tokio::test]
async fn a_dry_run_says_what_the_request_does_then() {
    let mut seen = BTreeSet::new();
    for (seed, kinds) in [
        kinds("cascade", "cascade", &["dns"], &[]),
        kinds("cascade", "restrict", &["dns", "map"], &["map"]),
        kinds("restrict", "cascade", &[], &[]),
        kinds("cascade", "cascade", &[], &["dns"]),
        kinds("", "", &["map"], &[]),
    ]
    .into_iter()
    .enumerate()
    {
        walk(kinds, u64::try_from(seed).unwrap(), &mut seen).await;
    }
    let expected = [
        "POST 201",
        "POST 204",
        "POST 400",
        "POST 404",
        "POST 409",
        "POST 422",
        "PATCH 200",
        "PATCH 400",
        "PATCH 404",
        "PATCH 409",
        "PATCH 412",
        "DELETE 202",
        "DELETE 400",
        "DELETE 404",
        "DELETE 409",
        "DELETE 412",
        "PUT 201",
        "PUT 204",
        "PUT 400",
        "PUT 404",
        "create",
        "patch",
        "delete",
        "hard_delete",
        "force_delete",
        "failed rule",
    ];
    let missing: Vec<_> = expected
        .iter()
        .filter(|what| !seen.contains(**what))
        .collect();
    assert!(missing.is_empty(), "never seen: {missing:?} of {seen:?}");
}
