//! Tenants: who sees and changes what.

mod headers;
mod legacy;
mod lists;
mod names;
mod plans;
mod reassignment;
mod system;
mod walk;

use hyperfleet_domain::entity_config::EntityConfig;
use serde_json::{Value, json};

use crate::support::{Answer, TestApi, child, linked, root, ruled};

/// Clusters, their node pools that go with them and may link to add-ons, and add-ons that link to
/// clusters. All wait for an adapter. Add-ons have a rule: other statements read them.
fn kinds() -> Vec<EntityConfig> {
    let pools = root("NodePool", "nodepools", &["dns"]);
    let pools = linked(&[("addon", "Addon", 0, 0)], pools);
    let addons = root("Addon", "addons", &["dns"]);
    let addons = linked(&[("cluster", "Cluster", 0, 0)], addons);
    vec![
        root("Cluster", "clusters", &["dns"]),
        child("Cluster", "cascade", pools),
        with_rule(addons),
    ]
}

fn with_rule(kind: EntityConfig) -> EntityConfig {
    ruled(&[("Seen", "size(statuses) > 0", "true", "'seen'")], kind)
}

/// The ids of a cluster, a node pool in it, and an add-on for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fleet {
    cluster: String,
    pool: String,
    addon: String,
}

impl Fleet {
    async fn of(api: &TestApi, name: &str) -> Self {
        let cluster = api.made("/clusters", "Cluster", name).await.id().to_owned();
        let pools = format!("/clusters/{cluster}/nodepools");
        let pool = api.made(&pools, "NodePool", name).await.id().to_owned();
        let addon = api.post("/addons", addon(name, &cluster)).await;
        assert_eq!(addon.status, 201, "{}", addon.body);
        let fleet = Self {
            cluster,
            pool,
            addon: addon.id().to_owned(),
        };
        for path in fleet.paths() {
            let answer = api.report(&path, "dns", 1, &[]).await;
            assert_eq!(answer.status, 201, "{path}: {}", answer.body);
        }
        fleet
    }

    /// What is nobody's: ids that no resource has.
    fn of_nobody() -> Self {
        let id = |last: u8| format!("01890000-0000-7000-8000-0000000000{last:02}");
        Self {
            cluster: id(1),
            pool: id(2),
            addon: id(3),
        }
    }

    fn ids(&self) -> [&str; 3] {
        [&self.cluster, &self.pool, &self.addon]
    }

    /// Where its resources are, by themselves.
    fn paths(&self) -> [String; 3] {
        [
            format!("/clusters/{}", self.cluster),
            format!("/nodepools/{}", self.pool),
            format!("/addons/{}", self.addon),
        ]
    }
}

fn addon(name: &str, cluster: &str) -> Value {
    json!({
        "kind": "Addon",
        "name": name,
        "spec": {},
        "references": {"cluster": [{"kind": "Cluster", "id": cluster}]},
    })
}

/// Everything that the database keeps of a tenant, but for the rows that keep totals.
async fn stored_rows(api: &TestApi, org: &str) -> String {
    let everything = "
        SELECT jsonb_build_array(
            (SELECT jsonb_agg(r ORDER BY r.id) FROM resources r WHERE r.tenancy ->> 'org' = $1),
            (SELECT jsonb_agg(e ORDER BY e.resource_id, e.adapter) FROM adapter_reports e
             JOIN resources r ON r.id = e.resource_id WHERE r.tenancy ->> 'org' = $1),
            (SELECT jsonb_agg(l ORDER BY l.source_id, l.target_id) FROM resource_references l
             JOIN resources r ON r.id = l.source_id WHERE r.tenancy ->> 'org' = $1),
            (SELECT jsonb_agg(a ORDER BY a.sequence) FROM audit_entries a WHERE a.tenancy ->> 'org' = $1)
        )::text";
    let mut connection = api.database.connect().await;
    let query = sqlx::query_scalar(everything).bind(org);
    query.fetch_one(&mut connection).await.unwrap()
}

/// One way of calling the API, from the document that it serves.
#[derive(Debug, Clone)]
struct Call {
    method: String,
    /// Below the base, with parameters in braces.
    template: String,
}

/// Every call that is not for everybody, in the order of the document. Leases are no resources: `leases` tests theirs.
async fn calls(api: &TestApi) -> Vec<Call> {
    let document = api.get("/openapi").await.body;
    let mut calls = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["security"] == json!([]) {
                continue;
            }
            let template = path.strip_prefix("/api/hyperfleet/v1").unwrap();
            if template.starts_with("/leases/") {
                continue;
            }
            calls.push(Call {
                method: method.to_uppercase(),
                template: template.to_owned(),
            });
        }
    }
    calls
}

impl Call {
    /// The path with ids, each chosen for the segment before it: `owners` says whose cluster a path
    /// goes through to what is below it, `fleets` whose resources are meant. `/resources/{id}` is
    /// each of them in turn.
    fn paths(&self, owners: &Fleet, fleet: &Fleet) -> Vec<String> {
        let segments: Vec<&str> = self.template.split('/').collect();
        let ids = if self.template.starts_with("/resources/{") {
            fleet.ids().to_vec()
        } else {
            vec![""]
        };
        let path = |any: &str| {
            let mut path = Vec::new();
            for (place, segment) in segments.iter().enumerate() {
                let is_parameter = segment.starts_with('{');
                let is_owner = is_parameter && segments.get(place + 1) == Some(&"nodepools");
                path.push(match (is_parameter, segments[place.max(1) - 1]) {
                    (false, _) => *segment,
                    (true, "clusters") if is_owner => &owners.cluster,
                    (true, "clusters") => &fleet.cluster,
                    (true, "nodepools") => &fleet.pool,
                    (true, "addons") => &fleet.addon,
                    (true, "resources") => any,
                    (true, other) => panic!("what stands below {other}?"),
                });
            }
            path.join("/")
        };
        ids.into_iter().map(path).collect()
    }

    /// How many ids its path has.
    fn parameters(&self) -> usize {
        self.template.matches('{').count()
    }

    /// The list that its path begins with.
    fn list(&self) -> &str {
        self.template.split("/{").next().unwrap()
    }

    /// Bodies that are judged by what is there, the first of which would do.
    fn bodies(&self, api: &TestApi, fleet: &Fleet) -> Vec<Value> {
        let link = |kind: &str, id: &str| json!([{"kind": kind, "id": id}]);
        let links = [
            json!({}),
            json!({"addon": link("Addon", &fleet.addon)}),
            json!({"cluster": link("Cluster", &fleet.cluster)}),
        ];
        let mut bodies = vec![self.body(api, fleet)];
        let is_linked = self.method == "PATCH" || self.template.ends_with("/nodepools");
        if is_linked && self.method != "GET" {
            let with = |links: Value| {
                let mut body = bodies[0].clone();
                body["references"] = links;
                body
            };
            bodies.extend(links.map(with));
        }
        bodies
    }

    /// A body that would do, were everything it is about there.
    fn body(&self, api: &TestApi, fleet: &Fleet) -> Value {
        match &*self.method {
            "GET" | "DELETE" => Value::Null,
            "PATCH" => json!({"labels": {"changed": "yes"}}),
            "PUT" => {
                let conditions = ["Available", "Applied", "Health"]
                    .map(|kind| json!({"type": kind, "status": "True"}));
                json!({
                    "adapter": "new",
                    "observed_generation": 1,
                    "observed_time": api.clock.now(),
                    "conditions": conditions,
                })
            }
            "POST" if self.template.ends_with("/force-delete") => json!({"reason": "for a test"}),
            "POST" if self.template.ends_with("/nodepools") => {
                json!({"kind": "NodePool", "name": "new-pool", "spec": {}})
            }
            "POST" if self.list() == "/clusters" => {
                json!({"kind": "Cluster", "name": "new-cluster", "spec": {}})
            }
            "POST" if ["/addons", "/resources"].contains(&self.list()) => {
                addon("new-addon", &fleet.cluster)
            }
            _ => panic!("what is the body of {self:?}?"),
        }
    }

    async fn send(&self, api: &TestApi, path: &str, body: Value) -> Answer {
        api.send(&self.method, path, body).await
    }
}
