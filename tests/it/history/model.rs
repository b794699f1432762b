//! Random lives against a model: every observed state can be read again.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{kinds, recorded, text};
use crate::support::{Random, TestApi};

/// Everything that is there at one moment, by id.
type Seen = BTreeMap<String, Value>;

/// Orders of lists, with and without what is deleted. They take turns from one moment to the next.
const LISTS: [(&str, bool); 6] = [
    ("name", false),
    ("created_time desc", true),
    ("generation,id", false),
    ("name", true),
    ("created_time desc", false),
    ("generation,id", true),
];

struct World {
    api: TestApi,
    random: Random,
    /// Every resource that ever was, with its path.
    paths: BTreeMap<String, String>,
    names: u32,
}

impl World {
    async fn seen(&self) -> Seen {
        let answer = self
            .api
            .get("/resources?includeDeleted=true&size=100")
            .await;
        by_id(answer.items())
    }

    /// Changes something at random.
    async fn step(&mut self) {
        self.names += 1;
        let name = format!("name-{}", self.names);
        let paths: Vec<_> = self.paths.values().cloned().collect();
        let sites: Vec<_> = paths
            .iter()
            .filter(|p| !p.contains("racks"))
            .cloned()
            .collect();
        let target = self.any(&paths);
        let generation = self.api.get(&target).await.body["generation"].clone();
        let generation = i32::try_from(generation.as_i64().unwrap_or(1)).unwrap();
        let number = self.random.below(4);
        let status = self.random.pick(&["True", "False"]);
        let adapter = self.random.pick(&["dns", "net"]);
        match self.random.below(14) {
            0 | 1 => {
                let body = json!({"kind": "Site", "name": name, "spec": {"size": number}});
                self.create("/sites", body).await;
            }
            2 => {
                let site = self.any(&sites);
                let body = json!({"kind": "Rack", "name": name, "spec": {}, "labels": {"a": "b"}});
                self.create(&format!("{site}/racks"), body).await;
            }
            3 => {
                let body = json!({"spec": {"size": number, "deep": {"list": [number]}}});
                self.api.patch(&target, body).await;
            }
            4 => {
                let body = json!({"labels": {"number": number.to_string()}});
                self.api.patch(&target, body).await;
            }
            5 => {
                let peer = self.any(&sites);
                let peer = peer.rsplit('/').next().unwrap().to_owned();
                let body = json!({"references": {"peer": [{"kind": "Site", "id": peer}]}});
                self.api.patch(&target, body).await;
            }
            6 | 7 => {
                let available = [("Available", status)];
                self.api
                    .report(&target, adapter, generation, &available)
                    .await;
            }
            8 => {
                self.api.report(&target, adapter, generation, &[]).await;
            }
            9 | 10 => {
                self.api.delete(&target).await;
            }
            11 => {
                // One report a step: a state between two reports would not be seen.
                let done = [("Finalized", "True")];
                self.api.report(&target, adapter, generation, &done).await;
            }
            _ => {
                let body = json!({"reason": "at random"});
                let path = format!("{target}/force-delete");
                self.api.post(&path, body).await;
            }
        }
    }

    /// One of these paths. Before there is one, a path to nothing.
    fn any(&mut self, paths: &[String]) -> String {
        let paths: Vec<_> = paths.iter().map(String::as_str).collect();
        if paths.is_empty() {
            return "/sites/none".to_owned();
        }
        self.random.pick(&paths).to_owned()
    }

    async fn create(&mut self, list: &str, body: Value) {
        let made = self.api.post(list, body).await;
        if made.status == 201 {
            let id = made.id().to_owned();
            self.paths.insert(id.clone(), format!("{list}/{id}"));
        }
    }
}

fn by_id(items: &[Value]) -> Seen {
    let items = items
        .iter()
        .map(|item| (item["id"].as_str().unwrap().to_owned(), recorded(item)));
    items.collect()
}

#[tokio::test]
async fn every_observed_state_can_be_read_again() {
    for seed in [1, 7] {
        let api = TestApi::spawn_with(&kinds()).await;
        let mut world = World {
            api,
            random: Random::seeded(seed),
            paths: BTreeMap::new(),
            names: 0,
        };
        let begin = world.api.clock.now();
        let mut moments: Vec<(DateTime<Utc>, Seen)> = vec![(begin, Seen::new())];
        for _ in 0..60 {
            world.api.clock.advance(1);
            world.step().await;
            let now = world.api.clock.now();
            moments.push((now, world.seen().await));
        }
        let removed = world.paths.len() - moments.last().unwrap().1.len();
        assert!(removed > 2, "seed {seed} removes {removed} only");
        for ((at, seen), (order, has_deleted)) in moments.iter().zip(LISTS.iter().cycle()) {
            check_lists(&world, *at, seen).await;
            check_order(&world, *at, seen, (order, *has_deleted)).await;
        }
        for path in &world.paths {
            check_moments(&world, path, &moments).await;
            check_generations(&world, path, &moments).await;
        }
    }
}

/// Lists of a moment have what was there.
async fn check_lists(world: &World, at: DateTime<Utc>, seen: &Seen) {
    let at = text(at);
    let list = format!("/resources?includeDeleted=true&size=100&at={at}");
    let answer = world.api.get(&list).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(by_id(answer.items()), *seen, "{at}");
    assert_eq!(answer.body["total"], json!(seen.len()));
    let sites = seen.values().filter(|item| item["kind"] == "Site");
    for site in sites.take(3) {
        let id = site["id"].as_str().unwrap();
        let list = format!("/sites/{id}/racks?includeDeleted=true&size=100&at={at}");
        let answer = world.api.get(&list).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let racks = seen
            .iter()
            .filter(|(_, item)| item["owner_references"]["id"] == id);
        let racks: Seen = racks.map(|(id, item)| (id.clone(), item.clone())).collect();
        assert_eq!(by_id(answer.items()), racks, "{at}");
        assert_eq!(answer.body["total"], json!(racks.len()), "{at}");
        let list =
            format!("/sites?includeDeleted=true&size=100&at={at}&ref_type=peer&ref_target_id={id}");
        let answer = world.api.get(&list).await;
        let linked = seen.iter().filter(|(_, item)| {
            let peers = item["references"]["peer"].as_array();
            peers.is_some_and(|peers| peers.iter().any(|peer| peer["id"] == id))
        });
        let linked: Seen = linked
            .map(|(id, item)| (id.clone(), item.clone()))
            .collect();
        assert_eq!(by_id(answer.items()), linked, "{at}");
    }
}

/// A list of a moment is in its order, page by page.
async fn check_order(world: &World, at: DateTime<Utc>, seen: &Seen, list: (&str, bool)) {
    let (order, has_deleted) = list;
    let sites = seen.values().filter(|item| item["kind"] == "Site");
    let sites = sites.filter(|item| has_deleted || item.get("deleted_time").is_none());
    let mut expected: Vec<_> = sites.cloned().collect();
    let at = text(at);
    let list = format!("/sites?order={order}&includeDeleted={has_deleted}&at={at}");
    let list = list.replace(' ', "%20");
    let listed = check_pages(world, &list, expected.len()).await;
    expected.sort_by_key(|item| {
        let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        match order {
            "name" => (text("name"), String::new()),
            "generation,id" => (format!("{:9}", item["generation"]), text("id")),
            _ => (text("created_time"), text("id")),
        }
    });
    if order.ends_with("desc") {
        expected.reverse();
    }
    assert_eq!(listed, expected, "{list}");
}

/// The items of a list, which are the same by its tokens and by numbers of pages.
async fn check_pages(world: &World, list: &str, total: usize) -> Vec<Value> {
    let mut items = Vec::new();
    let mut next = String::new();
    for page in 1.. {
        let answer = world.api.get(&format!("{list}&size=3{next}")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.body["total"], json!(total), "{list}");
        let numbered = world.api.get(&format!("{list}&size=3&page={page}")).await;
        assert_eq!(numbered.items(), answer.items(), "{list}, page {page}");
        assert_eq!(numbered.body["total"], json!(total), "{list}, page {page}");
        items.extend(answer.items().iter().map(recorded));
        let Some(token) = answer.body["continue"].as_str() else {
            break;
        };
        next = format!("&continue={token}");
    }
    items
}

/// One resource at every moment, also before it was created and after it was removed.
async fn check_moments(
    world: &World,
    (id, path): (&String, &String),
    moments: &[(DateTime<Utc>, Seen)],
) {
    for (at, seen) in moments {
        let answer = world.api.get(&format!("{path}?at={}", text(*at))).await;
        match seen.get(id) {
            None => assert_eq!(answer.status, 404, "{path} {at}: {}", answer.body),
            Some(expected) => {
                assert_eq!(answer.status, 200, "{path} {at}: {}", answer.body);
                assert_eq!(recorded(&answer.body), *expected, "{path} {at}");
                assert_eq!(answer.header("etag"), None);
            }
        }
    }
}

/// The last state of every generation, and the list of them.
async fn check_generations(
    world: &World,
    (id, path): (&String, &String),
    moments: &[(DateTime<Utc>, Seen)],
) {
    let mut last: BTreeMap<i64, &Value> = BTreeMap::new();
    for (_, seen) in moments {
        if let Some(state) = seen.get(id) {
            last.insert(state["generation"].as_i64().unwrap(), state);
        }
    }
    // What is removed by the request that deletes it is never seen with its last generation.
    for (generation, expected) in &last {
        let answer = world
            .api
            .get(&format!("{path}?generation={generation}"))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(recorded(&answer.body), **expected, "{path} {generation}");
    }
    let answer = world.api.get(&format!("{path}/history?size=100")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["complete"], true);
    let items = answer.items();
    assert_eq!(answer.body["total"], json!(items.len()));
    let numbers: Vec<_> = items
        .iter()
        .map(|i| i["generation"].as_i64().unwrap())
        .collect();
    let newest = *last.keys().last().unwrap();
    let expected: Vec<_> = (1..=newest).rev().collect();
    assert_eq!(
        numbers[numbers.len() - expected.len()..],
        expected[..],
        "{path}"
    );
    for item in items {
        let Some(state) = last.get(&item["generation"].as_i64().unwrap()) else {
            continue;
        };
        for member in ["spec", "labels"] {
            assert_eq!(item[member], state[member], "{path}");
        }
    }
    let mut paged = Vec::new();
    for page in 1..=items.len() {
        let answer = world
            .api
            .get(&format!("{path}/history?size=1&page={page}"))
            .await;
        paged.extend(answer.items().to_vec());
    }
    assert_eq!(paged, items);
}
