//! Unreadable keys: written by a newer version, or damaged.

use std::collections::BTreeSet;

use hyperfleet_fleet::keys::{KeyOperation, KeyStore, Range, Transaction};
use hyperfleet_fleet::registry::Reports;
use hyperfleet_fleet::{Error, FollowUpdate, Followed, Item, MetadataChange, Set};
use hyperfleet_testkit::MemoryKeys;

use super::mirrored::{Mirrored, everything, on_shared, request};
use hyperfleet_testkit::{PATIENCE, fresh_prefix};

const SLEEP: &str = "ExecStart=/bin/sleep 1";
const OWN: [&str; 4] = ["unit", "want", "place", "global"];

impl<S: KeyStore> Mirrored<S> {
    async fn delete(&self, key: &str) {
        let transaction = Transaction {
            then: vec![KeyOperation::Delete(format!("{}{key}", self.prefix))],
            ..Transaction::default()
        };
        self.store.commit(transaction).await.unwrap();
    }

    /// What stands there.
    async fn get(&self, key: &str) -> String {
        let transaction = Transaction {
            then: vec![KeyOperation::Get(format!("{}{key}", self.prefix))],
            ..Transaction::default()
        };
        let found = self.store.commit(transaction).await.unwrap().found;
        String::from_utf8(found.into_iter().next().unwrap().value).unwrap()
    }

    /// All keys that are there.
    async fn keys(&self) -> BTreeSet<String> {
        let all = Range::below(&self.prefix);
        let listing = self.store.list(all, 1000, None).await.unwrap();
        let keys = listing.entries.into_iter().map(|entry| entry.key);
        let keys = keys.map(|key| String::from_utf8(key).unwrap());
        keys.map(|key| key[self.prefix.len()..].to_owned())
            .collect()
    }

    /// The response to reading or setting the unit.
    async fn refused(&self, name: &str) -> String {
        let mut texts = BTreeSet::new();
        for error in [
            self.fleet.find_unit(name).await.unwrap_err(),
            self.fleet.explain(name).await.unwrap_err(),
            self.set(name).await.unwrap_err(),
        ] {
            assert!(matches!(error, Error::Unreadable(_)), "{error:?}");
            texts.insert(error.to_string());
        }
        assert_eq!(texts.len(), 1, "{texts:?}");
        texts.pop_first().unwrap()
    }

    async fn set(&self, name: &str) -> Result<Set, Error> {
        self.fleet
            .set_unit(name, request(&[SLEEP], "launched"))
            .await
    }

    async fn listed(&self) -> Vec<String> {
        self.settle().await;
        let units = everything(&self.fleet).await.units;
        units.into_iter().map(|unit| unit.name).collect()
    }
}

#[tokio::test]
async fn a_damaged_unit_is_not_changed_until_it_is_destroyed() {
    let world = on_shared().await;
    let leading = world.lead("m1").await;
    for (number, (folder, value)) in OWN
        .into_iter()
        .flat_map(|folder| {
            let values = [
                "junk",
                r#"{"v":1}"#,
                r#"{"v":0,"state":"loaded"}"#,
                r#"{"v":"2"}"#,
            ];
            values.map(|value| (folder, value))
        })
        .enumerate()
    {
        let name = format!("a{number}.service");
        world.create(&name, &[SLEEP], "launched").await;
        world.place(&leading, &name, "m1").await;
        let before = world.keys().await;
        assert_eq!(before.iter().filter(|key| key.contains(&name)).count(), 4);
        world.put(&format!("{folder}/{name}"), value).await;
        let key = format!("{}{folder}/{name}", world.prefix);
        let expected = format!(
            "unit {name} is damaged: etcd key {key:?} is missing or cannot be read: \
             destroy the unit and create it again"
        );
        assert_eq!(world.refused(&name).await, expected, "{value}");
        assert_eq!(world.listed().await, [""; 0], "{folder} {value}");
        // Whatever its agents have to do, too; the next one of that name is as any other.
        world.fleet.destroy_unit(&name).await.unwrap();
        let left = world.keys().await;
        assert!(!left.iter().any(|key| key.contains(&name)), "{left:?}");
        let gone = world.fleet.destroy_unit(&name).await;
        assert!(matches!(gone, Err(Error::NoUnit)), "{gone:?}");
        assert_eq!(world.set(&name).await.unwrap(), Set::Created);
        world.fleet.destroy_unit(&name).await.unwrap();
    }
}

#[tokio::test]
async fn a_unit_without_desired_state_is_damaged() {
    let world = on_shared().await;
    world.create("a.service", &[SLEEP], "launched").await;
    world.delete("want/a.service").await;
    let text = world.refused("a.service").await;
    assert!(text.contains("want/a.service\" is missing"), "{text}");
    assert_eq!(world.listed().await, [""; 0]);
    world.fleet.destroy_unit("a.service").await.unwrap();
    assert_eq!(world.keys().await, BTreeSet::new());
}

#[tokio::test]
async fn records_of_a_newer_version_are_not_destroyed() {
    let world = on_shared().await;
    for folder in OWN {
        let name = format!("{folder}.service");
        world.create(&name, &[SLEEP], "").await;
        let other = if folder == "unit" { "want" } else { "unit" };
        world.put(&format!("{other}/{name}"), "junk").await;
        world.put(&format!("{folder}/{name}"), r#"{"v":2}"#).await;
        let before = world.keys().await;
        let key = format!("{}{folder}/{name}", world.prefix);
        let expected = format!(
            "unit {name} was written by a newer version of fleet and is not changed: etcd key {key:?}"
        );
        assert_eq!(world.refused(&name).await, expected);
        let error = world.fleet.destroy_unit(&name).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(world.keys().await, before);
    }
    assert_eq!(world.listed().await, [""; 0]);
}

#[tokio::test]
async fn lists_and_followers_show_what_can_be_asked_for() {
    let world = on_shared().await;
    let names: Vec<_> = OWN.map(|folder| format!("{folder}.service")).into();
    for name in &names {
        world.create(name, &[SLEEP], "launched").await;
    }
    world.settle().await;
    let mut follow = world.fleet.follow_units(None).await.unwrap();
    while !matches!(
        next(&mut follow).await,
        FollowUpdate::Listed {
            revision: Some(_),
            ..
        }
    ) {}
    for (folder, name) in OWN.iter().zip(&names) {
        world.put(&format!("{folder}/{name}"), r#"{"v":2}"#).await;
        let gone = Item::Gone(name.clone());
        loop {
            let FollowUpdate::Changed { items, .. } = next(&mut follow).await else {
                panic!("it was listed");
            };
            if items.contains(&gone) {
                break;
            }
        }
    }
    assert_eq!(world.listed().await, [""; 0]);
    // It comes back with what could not be read.
    world.delete("place/place.service").await;
    world.delete("global/global.service").await;
    assert_eq!(world.listed().await, ["global.service", "place.service"]);
}

async fn next<S: KeyStore, T: Followed>(
    follow: &mut hyperfleet_fleet::Follower<S, T>,
) -> FollowUpdate<T> {
    let told = tokio::time::timeout(PATIENCE, follow.next()).await;
    told.expect("news arrive in time").unwrap()
}

#[tokio::test]
async fn what_is_left_of_another_gives_way_to_a_new_unit() {
    let world = on_shared().await;
    let desired = r#"{"v":1,"state":"launched","generation":7}"#;
    let place = r#"{"v":1,"machine":"m1","hash":"h","epoch":1}"#;
    let global = r#"{"v":1,"hash":"h","state":"launched"}"#;
    for (number, left) in [
        vec![("want", desired)],
        vec![("place", place)],
        vec![("global", global)],
        vec![("want", desired), ("place", place), ("global", global)],
    ]
    .into_iter()
    .enumerate()
    {
        for lines in [[SLEEP], ["Global=true"]] {
            let name = format!("a{number}.service");
            for (folder, value) in &left {
                world.put(&format!("{folder}/{name}"), value).await;
            }
            world
                .put(
                    &format!("run/m1/{name}"),
                    r#"{"v":1,"hash":"h","state":"loaded"}"#,
                )
                .await;
            assert!(matches!(
                world.fleet.find_unit(&name).await,
                Err(Error::NoUnit)
            ));
            world.create(&name, &lines, "loaded").await;
            let unit = world.fleet.find_unit(&name).await.unwrap();
            assert_eq!(unit.machine, None);
            let keys = world.keys().await;
            let is_global = lines == ["Global=true"];
            assert_eq!(
                keys.contains(&format!("global/{name}")),
                is_global,
                "{keys:?}"
            );
            assert!(!keys.contains(&format!("place/{name}")), "{keys:?}");
            let was_placed = left.iter().any(|(folder, _)| *folder == "place");
            assert_eq!(keys.contains(&format!("run/m1/{name}")), !was_placed);
            world.fleet.destroy_unit(&name).await.unwrap();
        }
    }
    // But what cannot be read is in the way, and what is damaged of it can be removed.
    world.put("place/b.service", r#"{"v":2}"#).await;
    let text = world.refused("b.service").await;
    assert!(text.contains("newer version"), "{text}");
    world.put("place/c.service", "junk").await;
    world.refused("c.service").await;
    world.fleet.destroy_unit("c.service").await.unwrap();
    assert_eq!(world.set("c.service").await.unwrap(), Set::Created);
}

/// The order of a newer version to an agent: the unit must not be changed beside it.
#[tokio::test]
async fn orders_of_a_newer_version_are_never_overwritten() {
    let world = on_shared().await;
    let leading = world.lead("m1").await;
    world.create("a.service", &[SLEEP], "launched").await;
    world.place(&leading, "a.service", "m1").await;
    world.put("run/m1/a.service", r#"{"v":2}"#).await;
    let before = world.keys().await;
    let key = format!("{}run/m1/a.service", world.prefix);
    let expected = format!(
        "unit a.service was written by a newer version of fleet and is not changed: etcd key {key:?}"
    );
    let other_file = ["ExecStart=/bin/sleep 2"];
    let global = [SLEEP, "Global=true"];
    for refused in [
        world
            .fleet
            .set_unit("a.service", request(&[], "loaded"))
            .await
            .err(),
        world
            .fleet
            .set_unit("a.service", request(&other_file, "launched"))
            .await
            .err(),
        world
            .fleet
            .set_unit("a.service", request(&global, "launched"))
            .await
            .err(),
        world.fleet.destroy_unit("a.service").await.err(),
    ] {
        assert_eq!(refused.unwrap().to_string(), expected);
    }
    assert_eq!(world.keys().await, before);
    assert_eq!(world.get("run/m1/a.service").await, r#"{"v":2}"#);
    // Nor by a unit that takes over what is left of another, nor with what is damaged.
    world.delete("unit/a.service").await;
    world.delete("want/a.service").await;
    let created = world.set("a.service").await.unwrap_err();
    assert_eq!(created.to_string(), expected);
    world.put("unit/a.service", "junk").await;
    let destroyed = world.fleet.destroy_unit("a.service").await.unwrap_err();
    assert_eq!(destroyed.to_string(), expected);
    assert_eq!(world.get("run/m1/a.service").await, r#"{"v":2}"#);
}

#[tokio::test]
async fn damaged_orders_are_rewritten_or_destroyed_with_their_unit() {
    let world = on_shared().await;
    let leading = world.lead("m1").await;
    world.create("a.service", &[SLEEP], "launched").await;
    world.place(&leading, "a.service", "m1").await;
    world.put("run/m1/a.service", "junk").await;
    world.put("run/m2/a.service", "junk").await;
    world.set_desired("a.service", "loaded").await;
    let mended = world.get("run/m1/a.service").await;
    assert!(mended.contains(r#""state":"loaded""#), "{mended}");
    assert_eq!(world.get("run/m2/a.service").await, "junk");
    world.settle().await;
    let said = world.fleet.explain("a.service").await.unwrap().reason;
    let key = format!("{}run/m2/a.service", world.prefix);
    assert_eq!(
        said,
        format!(
            "placed on m1, and pinned there: this version of fleet cannot read etcd key {key:?}"
        )
    );
    world.fleet.destroy_unit("a.service").await.unwrap();
    let left = world.keys().await;
    assert!(
        !left.iter().any(|key| key.contains("a.service")),
        "{left:?}"
    );
}

#[tokio::test]
async fn damaged_metadata_is_named_with_what_helps() {
    let world = on_shared().await;
    world.put("label/m1/zone", "junk").await;
    let changes = [MetadataChange {
        machine: "m1".to_owned(),
        key: "zone".to_owned(),
        value: None,
    }];
    let error = world.fleet.set_metadata(&changes).await.unwrap_err();
    let key = format!("{}label/m1/zone", world.prefix);
    let expected = format!(
        "metadata zone of machine m1 is damaged: etcd key {key:?} is missing or cannot be read: \
         delete that key in etcd"
    );
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn unreadable_records_take_precedence_over_reasons() {
    let world = Mirrored::start(MemoryKeys::new(), fresh_prefix()).await;
    let said = async |name: &str| {
        let newest = world.put("pool/p1", "{}").await;
        let mut follow = world.fleet.follow_units(None).await.unwrap();
        // The mirror has come so far: what it lists is of that revision or later.
        loop {
            match next(&mut follow).await {
                FollowUpdate::Listed {
                    revision: Some(at), ..
                } if at >= newest => break,
                FollowUpdate::Listed {
                    revision: Some(_), ..
                } => {
                    tokio::task::yield_now().await;
                    follow = world.fleet.follow_units(None).await.unwrap();
                }
                _ => {}
            }
        }
        world.fleet.explain(name).await.unwrap().reason
    };
    let key = |key: &str| format!("etcd key \"{}{key}\"", world.prefix);
    let leading = world.lead("m1").await;
    world.create("a.service", &[SLEEP], "launched").await;
    world.place(&leading, "a.service", "m2").await;
    world.put("machine/m2", r#"{"v":2}"#).await;
    let stays = |at: &str| {
        format!(
            "placed on m2, and pinned there: this version of fleet cannot read {}",
            key(at)
        )
    };
    assert_eq!(said("a.service").await, stays("machine/m2"));
    world.set_desired("a.service", "inactive").await;
    assert_eq!(said("a.service").await, stays("machine/m2"));
    world.set_desired("a.service", "launched").await;
    world.delete("machine/m2").await;
    let reports = Reports::new(world.register("m2", &[]).await);
    world.put("run/m2/a.service", "junk").await;
    assert_eq!(said("a.service").await, stays("run/m2/a.service"));
    world.set_desired("a.service", "loaded").await;
    world.put("state/a.service,m2", r#"{"v":2}"#).await;
    assert_eq!(
        said("a.service").await,
        format!(
            "placed on m2: this version of fleet cannot read its report, {}",
            key("state/a.service,m2")
        )
    );
    drop(reports);
    // Without a place.
    world.create("b.service", &[SLEEP], "launched").await;
    // Nobody reads what an earlier version has stored.
    world.put("why/b.service", "junk").await;
    assert_eq!(said("b.service").await, "about to be placed on m2");
    world.put("engine/leader", r#"{"v":2}"#).await;
    assert_eq!(
        said("b.service").await,
        format!(
            "not looked at yet: this version of fleet cannot read who leads, {}",
            key("engine/leader")
        )
    );
    world
        .create("g.service", &["Global=true"], "launched")
        .await;
    world.put("machine/m3", "junk").await;
    assert_eq!(
        said("g.service").await,
        "global: belongs on 1 of 1 machines (m2), \
         not counting 1 that this version of fleet cannot read"
    );
}
