//! Setting, reading and destroying units.

use hyperfleet_fleet::keys::KeyStore;
use hyperfleet_fleet::registry::{Label, Reports, UnitState};
use hyperfleet_fleet::{Error, Fleet, MetadataChange, Set, SetUnit, StateFilter, UnitView};
use hyperfleet_fleet_model::unit::DesiredState::{Inactive, Launched, Loaded};
use hyperfleet_fleet_model::unit::UnitOption;
use hyperfleet_testkit::MemoryKeys;

use super::mirrored::{Mirrored, all, everything, on_shared, option, request, state};
use hyperfleet_testkit::{fresh_prefix, until};

const SLEEP: &str = "ExecStart=/bin/sleep 1";
/// SHA-1 of `[Service]`, newline, the line, newline.
const HASH: &str = "0291f12e379921025c603e454c0fe989ddb0f3dd";
const OTHER: &str = "ExecStart=/bin/sleep 2";

/// The message of a refused request.
async fn refused<S: KeyStore>(fleet: &Fleet<S>, name: &str, request: SetUnit) -> String {
    match fleet.set_unit(name, request).await {
        Err(Error::Invalid(text)) => format!("400 {text}"),
        Err(Error::Conflict(text)) => format!("409 {text}"),
        other => panic!("{name}: {other:?}"),
    }
}

/// How often a unit was changed.
async fn generation<S: KeyStore>(fleet: &Fleet<S>, name: &str) -> u64 {
    let unit = fleet.registry().find_unit(name).await.unwrap();
    unit.unwrap().desired.value.generation
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_in_this_order() {
    let world = on_shared().await;
    let fleet = &world.fleet;
    world.create("there.service", &[SLEEP], "").await;
    world.create("t@.service", &[SLEEP], "inactive").await;
    let template = r#"400 cannot activate template "t@.service""#;
    let absent = "409 unit does not exist and options field empty";
    let together = "400 MachineID cannot be used with Global";
    let newline = r#"400 option 1 ("A" in section "Unit"): a value cannot have a newline without a "\" before it"#;
    let both = ["MachineID=m1", "Global=true"];
    let two_lines = SetUnit {
        options: Some(vec![UnitOption::new("Unit", "A", "b\nc=d")]),
        desired: None,
    };
    let no_lines = SetUnit {
        options: Some(Vec::new()),
        desired: None,
    };
    for (name, request, expected) in [
        (
            "a.xyz",
            request(&[SLEEP], ""),
            r#"400 invalid unit type: "xyz""#,
        ),
        (
            "a%.service",
            request(&[SLEEP], ""),
            "400 invalid character '%' in unit name",
        ),
        (
            ".service",
            request(&[SLEEP], ""),
            "400 unit name must have something before its type",
        ),
        // Absent.
        ("a.service", request(&[], "launched"), absent),
        ("a.service", no_lines.clone(), absent),
        ("t@5.service", request(&[], "launched"), absent),
        ("a.service", two_lines.clone(), newline),
        ("a.service", request(&both, "loaded"), together),
        (
            "u@.service",
            request(&[SLEEP], "loaded"),
            r#"400 cannot activate template "u@.service""#,
        ),
        (
            "a.service",
            request(&["MachineMetadata=a=b c=d"], ""),
            r#"400 invalid MachineMetadata "a=b c=d": expect key=value, several of them each in quotes"#,
        ),
        // Present, another file.
        ("there.service", two_lines, newline),
        ("there.service", request(&both, ""), together),
        ("t@.service", request(&[OTHER], "launched"), template),
        // Present, the same file or none.
        (
            "there.service",
            request(&[SLEEP], ""),
            "409 must provide DesiredState to update existing unit",
        ),
        (
            "there.service",
            no_lines,
            "409 must provide DesiredState to update existing unit",
        ),
        ("t@.service", request(&[], "launched"), template),
        ("t@.service", request(&[SLEEP], "loaded"), template),
    ] {
        let found = refused(fleet, name, request.clone()).await;
        assert_eq!(found, expected, "{name}: {request:?}");
    }
    // Nothing of it was stored.
    let found = everything(fleet).await.units;
    let found: Vec<_> = found.iter().map(|unit| unit.name.as_str()).collect();
    assert_eq!(found, ["t@.service", "there.service"]);
    for name in found {
        assert_eq!(generation(fleet, name).await, 1, "{name}");
    }
}

#[tokio::test]
async fn a_request_means_what_is_there_makes_of_it() {
    let world = on_shared().await;
    let set = async |lines: &[&str], desired| {
        let set = world
            .fleet
            .set_unit("a.service", request(lines, desired))
            .await;
        let unit = world.fleet.find_unit("a.service").await.unwrap();
        let generation = generation(&world.fleet, "a.service").await;
        (set.unwrap(), unit.desired, generation)
    };
    let created = request(&[SLEEP], "");
    let created = world.fleet.set_unit("a.service", created).await;
    assert_eq!(created.unwrap(), Set::Created);
    let unit = world.fleet.find_unit("a.service").await.unwrap();
    let expected = UnitView {
        name: "a.service".to_owned(),
        options: vec![option(SLEEP)],
        desired: Inactive,
        current: Some(Inactive),
        machine: None,
    };
    assert_eq!(unit, expected);
    let observed = world.fleet.observe(&["a.service".to_owned()]).await;
    let observed = observed.unwrap().remove("a.service").unwrap().unit;
    assert_eq!(observed.unwrap().hash, HASH);
    assert_eq!(set(&[], "launched").await, (Set::Updated, Launched, 2));
    assert_eq!(set(&[SLEEP], "launched").await, (Set::Updated, Launched, 2));
    assert_eq!(set(&[SLEEP], "loaded").await, (Set::Updated, Loaded, 3));
    assert_eq!(
        set(&[OTHER], "launched").await,
        (Set::Replaced, Launched, 4)
    );
    // Blanks do not change the file.
    assert_eq!(
        set(&["ExecStart=  /bin/sleep 2 "], "launched").await,
        (Set::Updated, Launched, 4)
    );
    assert_eq!(set(&[SLEEP], "").await, (Set::Replaced, Inactive, 5));
}

#[tokio::test]
async fn what_is_unknown_in_the_section_is_kept_in_silence() {
    let world = on_shared().await;
    world
        .create("a.service", &["Bogus=1", "machineid=x"], "loaded")
        .await;
    let unit = world.fleet.find_unit("a.service").await.unwrap();
    assert_eq!(unit.options.len(), 2);
}

#[tokio::test]
async fn the_state_of_a_unit_comes_from_its_placement() {
    let world = on_shared().await;
    let leading = world.lead("m1").await;
    let mut here = Reports::new(world.register("m1", &[]).await);
    let mut there = Reports::new(world.register("m2", &[]).await);
    world.create("a.service", &[SLEEP], "launched").await;
    world
        .create("g.service", &["Global=true"], "launched")
        .await;
    let seen = async || {
        world.settle().await;
        let found = world.fleet.find_unit("a.service").await.unwrap();
        let listed = everything(&world.fleet).await.units;
        assert_eq!(found, listed[0], "the list says the same");
        (found.current.unwrap(), found.machine)
    };
    world
        .report(
            &mut there,
            &[
                ("a.service", state("active", true)),
                ("g.service", state("active", true)),
            ],
        )
        .await;
    assert_eq!(seen().await, (Inactive, None), "it is placed nowhere");
    world.place(&leading, "a.service", "m1").await;
    let m1 = Some("m1".to_owned());
    assert_eq!(
        seen().await,
        (Inactive, m1.clone()),
        "its machine has not reported it"
    );
    world
        .report(&mut here, &[("a.service", state("inactive", false))])
        .await;
    assert_eq!(seen().await, (Loaded, m1.clone()));
    world
        .report(&mut here, &[("a.service", state("failed", true))])
        .await;
    assert_eq!(seen().await, (Launched, m1), "whatever became of it");
    world.withdraw(&leading, "a.service").await;
    assert_eq!(seen().await, (Inactive, None));
    // A global unit is on no particular machine.
    let global = world.fleet.find_unit("g.service").await.unwrap();
    assert_eq!((global.current, global.machine), (None, None));
    assert_eq!(everything(&world.fleet).await.units[1].current, None);
}

#[tokio::test]
async fn a_unit_that_gets_another_file_stays_where_it_is() {
    let world = on_shared().await;
    let leading = world.lead("m1").await;
    world.create("a.service", &[SLEEP], "launched").await;
    world.place(&leading, "a.service", "m1").await;
    let set = world
        .fleet
        .set_unit("a.service", request(&[OTHER], "loaded"))
        .await;
    assert_eq!(set.unwrap(), Set::Replaced);
    let unit = world.fleet.find_unit("a.service").await.unwrap();
    assert_eq!(unit.machine.as_deref(), Some("m1"));
    // But not as a global unit, whose rule is part of its agents' orders.
    let lines = [
        "Global=true",
        r#"MachineMetadata="zone=a" "zone=b""#,
        "Conflicts=x* y",
    ];
    let set = world
        .fleet
        .set_unit("a.service", request(&lines, "loaded"))
        .await;
    assert_eq!(set.unwrap(), Set::Replaced);
    let known = world.registry.snapshot().await.unwrap();
    let rule = &known.globals["a.service"].value.rule;
    assert_eq!(rule.conflicts, ["x*", "y"]);
    assert_eq!(
        rule.metadata["zone"],
        ["a".to_owned(), "b".to_owned()].into()
    );
    assert!(known.placements.is_empty());
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let world = on_shared().await;
    for name in ["a.service", "no name", "", "a/b"] {
        let found = world.fleet.find_unit(name).await;
        assert!(matches!(found, Err(Error::NoUnit)), "{name}: {found:?}");
        let gone = world.fleet.destroy_unit(name).await;
        assert!(matches!(gone, Err(Error::NoUnit)), "{name}: {gone:?}");
        let why = world.fleet.explain(name).await;
        assert!(matches!(why, Err(Error::NoUnit)), "{name}: {why:?}");
        let state = world.fleet.find_state(name).await;
        assert!(matches!(state, Err(Error::NoState)), "{name}: {state:?}");
    }
    world.create("a.service", &[SLEEP], "").await;
    let state = world.fleet.find_state("a.service").await;
    assert!(matches!(state, Err(Error::NoState)), "{state:?}");
    world.fleet.destroy_unit("a.service").await.unwrap();
    let found = world.fleet.find_unit("a.service").await;
    assert!(matches!(found, Err(Error::NoUnit)), "{found:?}");
}

#[tokio::test]
async fn records_of_a_newer_version_are_not_changed() {
    let world = on_shared().await;
    world.create("a.service", &[SLEEP], "").await;
    world.put("unit/a.service", r#"{"v":2}"#).await;
    let found = world.fleet.find_unit("a.service").await.unwrap_err();
    assert_eq!(
        found.to_string(),
        format!(
            "unit a.service was written by a newer version of fleet and is not changed: etcd key {:?}",
            format!("{}unit/a.service", world.prefix)
        )
    );
    for error in [
        world
            .fleet
            .set_unit("a.service", request(&[OTHER], ""))
            .await
            .unwrap_err(),
        world.fleet.destroy_unit("a.service").await.unwrap_err(),
        world.fleet.explain("a.service").await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Unreadable(_)), "{error:?}");
    }
    world.settle().await;
    assert_eq!(everything(&world.fleet).await.units, []);
    // Records of a newer agent or engine do not hide the unit.
    let leading = world.lead("m1").await;
    world.create("b.service", &[SLEEP], "loaded").await;
    world.put("state/b.service,m1", r#"{"v":2}"#).await;
    world.place(&leading, "b.service", "m1").await;
    let unit = world.fleet.find_unit("b.service").await.unwrap();
    assert_eq!(unit.current, Some(Inactive));
    let why = world.fleet.explain("b.service").await.unwrap();
    let of_unit = (why.name, why.desired, why.current, why.machine);
    assert_eq!(
        of_unit,
        (unit.name, unit.desired, unit.current, unit.machine)
    );
}

#[tokio::test]
async fn concurrent_writers_of_a_unit_all_succeed() {
    let world = on_shared().await;
    let set = |number: usize| {
        let fleet = world.fleet.clone();
        tokio::spawn(async move {
            let line = format!("ExecStart=/bin/sleep {number}");
            let state = ["loaded", "launched"][number % 2];
            fleet.set_unit("a.service", request(&[&line], state)).await
        })
    };
    let mut results = Vec::new();
    for task in (0..16).map(set).collect::<Vec<_>>() {
        results.push(task.await.unwrap().unwrap());
    }
    let created = results.iter().filter(|set| **set == Set::Created).count();
    let replaced = results.iter().filter(|set| **set == Set::Replaced).count();
    assert_eq!((created, replaced), (1, 15));
    // Each was decided on the current unit: none was lost, none doubled.
    assert_eq!(generation(&world.fleet, "a.service").await, 16);
}

/// More than there are attempts, and at two servers.
#[tokio::test]
async fn writers_of_a_unit_at_two_servers_all_succeed() {
    const WRITERS: usize = 200;
    let world = on_shared().await;
    let beside = world.beside().await;
    let set = |number: usize| {
        let fleet = [&world.fleet, &beside.fleet][number % 2].clone();
        tokio::spawn(async move {
            let line = format!("ExecStart=/bin/sleep {number}");
            fleet
                .set_unit("a.service", request(&[&line], "loaded"))
                .await
        })
    };
    for task in (0..WRITERS).map(set).collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
    assert_eq!(generation(&world.fleet, "a.service").await, WRITERS as u64);
}

#[tokio::test]
async fn of_many_concurrent_destroys_one_succeeds() {
    let world = on_shared().await;
    world.create("a.service", &[SLEEP], "").await;
    let destroy = |_| {
        let fleet = world.fleet.clone();
        tokio::spawn(async move { fleet.destroy_unit("a.service").await })
    };
    let mut done = 0;
    for task in (0..8).map(destroy).collect::<Vec<_>>() {
        match task.await.unwrap() {
            Ok(()) => done += 1,
            Err(error) => assert!(matches!(error, Error::NoUnit), "{error:?}"),
        }
    }
    // A delete of a deleted unit fails its guards and then finds it gone.
    assert_eq!(done, 1);
}

/// On several servers, each of which knows nothing of the others' writes.
#[tokio::test]
async fn concurrent_units_never_close_a_circle() {
    let world = on_shared().await;
    let others = [world.beside().await, world.beside().await];
    let servers = [&world.fleet, &others[0].fleet, &others[1].fleet];
    for round in 0..20 {
        let name = |number: usize| format!("r{round}-{}.service", number % 3);
        let sets = servers.iter().enumerate().map(async |(number, fleet)| {
            let lines = format!("Replaces={}", name(number + 1));
            fleet
                .set_unit(&name(number), request(&[&lines], "launched"))
                .await
        });
        let sets = futures_util::future::join_all(sets).await;
        let refused: Vec<_> = sets.into_iter().filter_map(Result::err).collect();
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(
            refused[0].to_string().starts_with("circular Replaces"),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn no_unit_with_replaces_is_set_while_the_mirror_is_not_kept() {
    let mut world = on_shared().await;
    world.create("a.service", &["Replaces=b.service"], "").await;
    world.stop();
    until("the mirror is not connected", async || {
        !world.fleet.is_connected()
    })
    .await;
    // Without the mirror, circles cannot be found.
    let lines = request(&["Replaces=a.service"], "");
    let set = world.fleet.set_unit("b.service", lines).await;
    assert!(matches!(set, Err(Error::Unavailable(None))), "{set:?}");
}

#[tokio::test]
async fn units_do_not_replace_each_other() {
    let world = on_shared().await;
    world
        .create("a.service", &["Replaces=b*.service"], "launched")
        .await;
    let circular = r#"400 circular Replaces: "b1.service" and "a.service" replace each other"#;
    let lines = ["Replaces=a.service"];
    let found = refused(&world.fleet, "b1.service", request(&lines, "loaded")).await;
    assert_eq!(found, circular, "at once, though the mirror sees it later");
    world.create("c.service", &lines, "launched").await;
    world.create("b1.service", &[SLEEP], "launched").await;
    let found = refused(&world.fleet, "b1.service", request(&lines, "loaded")).await;
    assert_eq!(found, circular, "with another file, too");
    // A unit that matches its own pattern replaces others.
    world
        .create("web@1.service", &["Replaces=%p@*.service"], "launched")
        .await;
    let found = refused(
        &world.fleet,
        "web@2.service",
        request(&["Replaces=%p@*.service"], ""),
    )
    .await;
    assert!(found.contains("circular"), "{found}");
    // Across any number of units.
    world
        .create("x.service", &["Replaces=y.service"], "launched")
        .await;
    world
        .create("y.service", &["Replaces=z*.service"], "launched")
        .await;
    let lines = ["Replaces=x.service"];
    let found = refused(&world.fleet, "z.service", request(&lines, "")).await;
    assert_eq!(
        found,
        r#"400 circular Replaces: "z.service" replaces "x.service", which replaces "y.service", which replaces "z.service""#
    );
    let lines = ["Replaces=a.service"];
    // Once the other is gone or changed, it is allowed.
    world.fleet.destroy_unit("a.service").await.unwrap();
    let set = world
        .fleet
        .set_unit("b1.service", request(&lines, "loaded"))
        .await;
    assert_eq!(set.unwrap(), Set::Replaced);
    let set = world
        .fleet
        .set_unit("web@1.service", request(&[SLEEP], "loaded"))
        .await;
    assert_eq!(set.unwrap(), Set::Replaced);
    world
        .create("web@2.service", &["Replaces=%p@*.service"], "launched")
        .await;
}

fn change(machine: &str, key: &str, value: Option<&str>) -> MetadataChange {
    MetadataChange {
        machine: machine.to_owned(),
        key: key.to_owned(),
        value: value.map(str::to_owned),
    }
}

#[tokio::test]
async fn metadata_is_laid_over_what_machines_say() {
    let world = on_shared().await;
    world
        .register("m1", &[("zone", "east"), ("disk", "ssd")])
        .await;
    world.register("m2", &[]).await;
    let changes = [
        change("m1", "zone", Some("west")),
        change("m2", "zone", Some("south")),
        change("m1", "zone", Some("north")), // the later one counts
        change("m1", "disk", None),
        change("elsewhere", "zone", Some("up")),
    ];
    world.fleet.set_metadata(&changes).await.unwrap();
    // At once, because it was written here.
    let machines = world.fleet.list_machines(None).await.unwrap().items;
    let seen: Vec<_> = machines
        .iter()
        .map(|m| (m.id.as_str(), m.metadata.clone()))
        .collect();
    let only = |zone: &str| [("zone".to_owned(), zone.to_owned())].into();
    assert_eq!(seen, [("m1", only("north")), ("m2", only("south"))]);
    world
        .fleet
        .set_metadata(&[change("m1", "disk", Some("new"))])
        .await
        .unwrap();
    let machines = world.fleet.list_machines(None).await.unwrap().items;
    assert_eq!(
        machines[0].metadata["disk"], "new",
        "what was hidden comes back"
    );
    assert_eq!(machines[0].ip, "10.0.0.1");
}

#[tokio::test]
async fn metadata_beyond_the_limits_changes_nothing() {
    let world = on_shared().await;
    world.fleet.set_metadata(&[]).await.unwrap();
    let long = "x".repeat(4097);
    let many: Vec<_> = (0..129)
        .map(|n| change("m2", &format!("k{n}"), Some("v")))
        .collect();
    let allowed =
        r"expect 1 to 256 characters of A-Z a-z 0-9 and - . : ; < = > ? @ [ \ ] ^ _ ` { | } ~";
    let id = format!("unusable machine id: {allowed}");
    let key = format!("unusable metadata key: {allowed}");
    for (wrong, text) in [
        (vec![change("m 2", "k", Some("v"))], id.as_str()),
        (vec![change("m2", "k k", Some("v"))], &key),
        (vec![change("m2", "", Some("v"))], &key),
        (
            vec![change("m2", "k", Some(&long))],
            "unusable metadata value: at most 4096 bytes",
        ),
        (
            many,
            "unusable metadata: at most 128 keys of a machine at once",
        ),
    ] {
        let mut changes = vec![change("m1", "k", Some("v"))];
        changes.extend(wrong);
        let set = world.fleet.set_metadata(&changes).await;
        assert!(
            matches!(&set, Err(Error::Invalid(found)) if found == text),
            "{set:?}"
        );
    }
    assert!(world.registry.snapshot().await.unwrap().labels.is_empty());
    // Fewer changes are accepted, however long.
    let changes: Vec<_> = (0..128)
        .map(|n| change("m2", &format!("k{n}"), None))
        .collect();
    world.fleet.set_metadata(&changes).await.unwrap();
    let labels = world.registry.snapshot().await.unwrap().labels;
    assert_eq!(labels.len(), 128);
    assert!(
        labels
            .values()
            .all(|label| label.value == Label { value: None })
    );
}

#[tokio::test]
async fn states_are_asked_for_by_whole_names() {
    let world = on_shared().await;
    for id in ["m2", "m1"] {
        let mut reports = Reports::new(world.register(id, &[]).await);
        let states =
            ["a.service", "a-b.service", "b.service"].map(|unit| (unit, state("active", true)));
        world.report(&mut reports, &states).await;
    }
    world.settle().await;
    let list = async |unit: &str, machine: &str| {
        let given = |text: &str| Some(text.to_owned());
        let filter = StateFilter {
            unit: given(unit),
            machine: given(machine),
        };
        let states = all(async |token| world.fleet.list_states(&filter, token).await).await;
        let names = states.iter().map(|s| format!("{} {}", s.unit, s.machine));
        names.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        list("", "m1").await,
        "a-b.service m1, a.service m1, b.service m1"
    );
    assert_eq!(list("a.service", "").await, "a.service m1, a.service m2");
    assert_eq!(list("a.service", "m2").await, "a.service m2");
    assert_eq!(list("", "").await.matches(',').count(), 5);
    for (unit, machine) in [
        ("a.service", "m"),
        ("a", ""),
        ("no name", ""),
        ("", "m 1"),
        ("a.service", "m3"),
    ] {
        assert_eq!(list(unit, machine).await, "", "{unit} {machine}");
    }
    let first = world.fleet.find_state("a.service").await.unwrap();
    assert_eq!(
        (first.machine.as_str(), first.sub.as_str()),
        ("m1", "running")
    );
}

#[tokio::test]
async fn it_is_said_why_a_unit_is_where_it_is() {
    let store = MemoryKeys::new();
    let world = Mirrored::start(store, fresh_prefix()).await;
    let said = async |name: &str| {
        world.settle().await;
        world.fleet.explain(name).await.unwrap().reason
    };
    world.create("a.service", &[SLEEP], "").await;
    assert_eq!(said("a.service").await, "inactive: it needs no machine");
    world.set_desired("a.service", "loaded").await;
    assert_eq!(said("a.service").await, "there are no machines");
    let m2 = world.register("m2", &[]).await;
    assert_eq!(
        said("a.service").await,
        "not looked at yet: no engine leads"
    );
    let leading = world.lead("m9").await;
    assert_eq!(said("a.service").await, "about to be placed on m2");
    world
        .create("b.service", &["MachineMetadata=zone=west"], "loaded")
        .await;
    let explained = world.fleet.explain("b.service").await.unwrap();
    assert!(explained.blocked, "{explained:?}");
    assert_eq!(
        explained.reason,
        "no machine can run it: MachineMetadata=zone=west: 1 machine (m2)"
    );
    let [refusal] = &explained.refusals[..] else {
        panic!("{:?}", explained.refusals);
    };
    assert_eq!(
        (
            refusal.requirement.as_str(),
            refusal.count,
            &refusal.machines[..]
        ),
        ("MachineMetadata=zone=west", 1, &["m2".to_owned()][..])
    );
    let gone = world.registry.deregister_machine(m2).await;
    gone.unwrap();
    assert_eq!(said("b.service").await, "there are no machines");
    world.place(&leading, "a.service", "m1").await;
    assert_eq!(
        said("a.service").await,
        "placed on m1, which is gone: about to be moved"
    );
    let mut reports = Reports::new(world.register("m1", &[("zone", "east")]).await);
    assert_eq!(
        said("a.service").await,
        "placed on m1, which has not reported it yet"
    );
    world
        .report(&mut reports, &[("a.service", state("active", true))])
        .await;
    assert_eq!(said("a.service").await, "placed on m1, and launched there");
    let failed = UnitState {
        result: "exit-code".to_owned(),
        ..state("failed", true)
    };
    world.report(&mut reports, &[("a.service", failed)]).await;
    assert_eq!(
        said("a.service").await,
        "placed on m1, where it has failed (exit-code)"
    );
    world.set_desired("a.service", "inactive").await;
    assert_eq!(said("a.service").await, "inactive: about to leave m1");
}

#[tokio::test]
async fn it_is_said_where_a_global_unit_belongs_and_fails() {
    let world = Mirrored::start(MemoryKeys::new(), fresh_prefix()).await;
    let said = async |name: &str| {
        world.settle().await;
        world.fleet.explain(name).await.unwrap().reason
    };
    let leading = world.lead("m9").await;
    let mut reports = Reports::new(world.register("m1", &[("zone", "east")]).await);
    let failed = UnitState {
        result: "exit-code".to_owned(),
        ..state("failed", true)
    };
    world
        .create(
            "g.service",
            &["Global=true", "MachineMetadata=zone=east"],
            "loaded",
        )
        .await;
    world.register("m2", &[("zone", "west")]).await;
    assert_eq!(
        said("g.service").await,
        "global: belongs on 1 of 2 machines (m1)"
    );
    world.report(&mut reports, &[("g.service", failed)]).await;
    until("its failure is seen", async || {
        let failed =
            "global: belongs on 1 of 2 machines (m1); it has failed (exit-code) on 1 of them (m1)";
        said("g.service").await == failed
    })
    .await;
    world
        .create("c.service", &["Conflicts=g.service"], "loaded")
        .await;
    world.place(&leading, "c.service", "m1").await;
    assert_eq!(
        said("g.service").await,
        "global: belongs on none of 2 machines: Conflicts with c.service: 1 of them (m1); MachineMetadata=zone=east: 1 of \
         them (m2)"
    );
}
