//! Random writers, and watchers that break off and go on at any instance: what they see is what an uninterrupted watch sees,
//! and what the lists show at the end.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::{Instance, Watch};
use crate::support::Random;

const WRITERS: u64 = 4;
const STEPS: usize = 40;
const WATCHED: [&str; 4] = [
    "/resources?includeDeleted=true",
    "/plains",
    "/clusters?search=labels.shard%20%3D%20'1'",
    "/clusters",
];

/// A watcher that breaks off now and then.
struct Wanderer {
    path: &'static str,
    watch: Watch,
    seen: Vec<Value>,
    /// The list as its events make it, by id.
    list: BTreeMap<String, Value>,
    is_listed: bool,
    /// Whether it began with a list, which may show changes before their events.
    is_initial: bool,
}

impl Wanderer {
    async fn begin(instance: &Instance, path: &'static str, initial: &str) -> Self {
        let sign = if path.contains('?') { '&' } else { '?' };
        let mut watch = instance
            .watch(&format!("{path}{sign}initial={initial}"))
            .await;
        if initial == "false" {
            watch.bookmark().await;
        }
        Self {
            path,
            watch,
            seen: Vec::new(),
            list: BTreeMap::new(),
            is_listed: initial == "false",
            is_initial: initial == "true",
        }
    }

    /// Applies one event. Each must fit the earlier ones, unless the list already contained its change or a later one.
    async fn step(&mut self) {
        let event = self.watch.next().await;
        if event["type"] == "BOOKMARK" {
            self.is_listed = true;
            return;
        }
        let object = event["object"].clone();
        let id = object["id"].as_str().unwrap().to_owned();
        let known = self.list.contains_key(&id);
        match event["type"].as_str().unwrap() {
            _ if self.is_initial => {}
            "ADDED" => assert!(!known, "{}: {event}", self.path),
            _ => assert!(known, "{}: {event}", self.path),
        }
        if event["type"] == "DELETED" {
            self.list.remove(&id);
        } else {
            self.list.insert(id, object);
        }
        self.seen.push(event);
    }

    /// Goes on at another instance.
    async fn wander(&mut self, instance: &Instance) {
        if !self.is_listed {
            return;
        }
        let position = self.watch.position.clone().unwrap();
        let headers = [("last-event-id", position.as_str())];
        let again = instance.watch_with(&headers, self.path).await;
        self.watch = again;
        self.watch.bookmark().await;
    }
}

/// One random change. Others may have changed the resource meanwhile: refusals do not matter.
async fn change(instance: &Instance, random: &mut Random, name: &str) {
    let api = &instance.api;
    let of_kind = ["/clusters", "/plains"][random.below(2)];
    let found = api
        .get(&format!("{of_kind}?includeDeleted=true&size=100"))
        .await;
    let items = found.items();
    if items.len() < 4 || random.below(4) == 0 {
        let kind = if of_kind == "/plains" {
            "Plain"
        } else {
            "Cluster"
        };
        let shard = random.below(3).to_string();
        let body = json!({"kind": kind, "name": name, "spec": {}, "labels": {"shard": shard}});
        let made = api.post(of_kind, body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        return;
    }
    let item = &items[random.below(items.len())];
    let path = format!("{of_kind}/{}", item["id"].as_str().unwrap());
    let generation = i32::try_from(item["generation"].as_i64().unwrap()).unwrap();
    match random.below(6) {
        0 | 1 => {
            let shard = random.below(3).to_string();
            api.patch(&path, json!({"labels": {"shard": shard}})).await;
        }
        2 => {
            api.patch(&path, json!({"spec": {"step": name}})).await;
        }
        3 => {
            let status = ["True", "False"][random.below(2)];
            let adapter = ["dns", "validation"][random.below(2)];
            api.report(&path, adapter, generation, &[("Available", status)])
                .await;
        }
        4 => {
            api.delete(&path).await;
        }
        _ => {
            api.post(&format!("{path}/force-delete"), json!({"reason": "x"}))
                .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_watches_see_what_uninterrupted_ones_see() {
    let one = Instance::spawn().await;
    let other = one.another();
    let mut unbroken = Vec::new();
    let mut broken = Vec::new();
    for path in WATCHED {
        unbroken.push(Wanderer::begin(&one, path, "false").await);
        broken.push(Wanderer::begin(&other, path, "false").await);
    }
    let writers = (0..WRITERS).map(|writer| {
        let (one, other) = (&one, &other);
        async move {
            let mut random = Random::seeded(writer);
            for step in 0..STEPS {
                let instance = if random.below(2) == 0 { one } else { other };
                change(instance, &mut random, &format!("w{writer}-{step}")).await;
            }
        }
    });
    let watchers = async {
        let mut random = Random::seeded(99);
        let mut late = Vec::new();
        for round in 0..120 {
            let place = random.below(broken.len());
            let wanderer: &mut Wanderer = &mut broken[place];
            let instance = [&one, &other][random.below(2)];
            // Some of the time there is nothing to take: then it only wanders.
            let step = tokio::time::timeout(std::time::Duration::from_millis(20), wanderer.step());
            let _ = step.await;
            wanderer.wander(instance).await;
            if round % 20 == 0 {
                late.push(Wanderer::begin(instance, WATCHED[place], "true").await);
            }
        }
        late
    };
    let (_, mut late) = tokio::join!(futures_util::future::join_all(writers), watchers);
    for (list, kind) in [("/plains", "Plain"), ("/clusters", "Cluster")] {
        let body = json!({"kind": kind, "name": "the-end", "spec": {}, "labels": {"shard": "1"}});
        let made = one.api.post(list, body).await;
        assert_eq!(made.status, 201, "{}", made.body);
    }
    for wanderer in unbroken.iter_mut().chain(&mut broken).chain(&mut late) {
        // Of both kinds, if the list has both.
        let ends = if wanderer.path.starts_with("/resources") {
            2
        } else {
            1
        };
        while !wanderer.is_listed
            || wanderer
                .list
                .values()
                .filter(|o| o["name"] == "the-end")
                .count()
                < ends
        {
            wanderer.step().await;
        }
    }
    for (unbroken, broken) in unbroken.iter().zip(&broken) {
        assert!(!unbroken.seen.is_empty());
        for (expected, found) in unbroken.seen.iter().zip(&broken.seen) {
            assert_eq!(expected, found, "{}", unbroken.path);
        }
        assert_eq!(unbroken.seen.len(), broken.seen.len(), "{}", unbroken.path);
    }
    for wanderer in unbroken.iter().chain(&broken).chain(&late) {
        let sign = if wanderer.path.contains('?') {
            '&'
        } else {
            '?'
        };
        let list = one
            .api
            .get(&format!("{}{sign}size=100", wanderer.path))
            .await;
        let listed = list.items().iter();
        let listed: BTreeMap<_, _> = listed
            .map(|item| (item["id"].as_str().unwrap().to_owned(), item.clone()))
            .collect();
        assert_eq!(wanderer.list, listed, "{}", wanderer.path);
    }
}
