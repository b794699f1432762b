use hyperfleet_fleet::registry::{Prefix, Registry};
use hyperfleet_fleet_model::unit::{DesiredState, UnitOption};

use super::*;

fn view(name: &str, resource: &str, desired: DesiredState) -> UnitView {
    let owner = Ownership {
        adapter: "fleet".to_owned(),
        resource: resource.to_owned(),
        path: path(resource),
        workload: 1,
        index: 1,
    };
    let options = owner.options();
    UnitView {
        current: None,
        desired,
        machine: None,
        name: name.to_owned(),
        options,
    }
}

fn path(resource: &str) -> String {
    format!("/api/hyperfleet/v1/{resource}")
}

fn state(unit: &str, hash: &str, active: &str) -> StateView {
    StateView {
        unit: unit.to_owned(),
        machine: "m".to_owned(),
        hash: hash.to_owned(),
        load: "loaded".to_owned(),
        active: active.to_owned(),
        sub: "running".to_owned(),
        error: String::new(),
    }
}

fn woken(paths: &mut mpsc::UnboundedReceiver<String>) -> Vec<String> {
    std::iter::from_fn(|| paths.try_recv().ok()).collect()
}

fn names(index: &Index, resource: &str) -> Vec<String> {
    index.names(resource).into_iter().collect()
}

#[test]
fn units_belong_to_the_resource_that_they_name() {
    let (index, mut paths) = Index::new("fleet");
    index.see_unit(&view("a", "1", DesiredState::Launched));
    index.see_unit(&view("b", "1", DesiredState::Inactive));
    let mut foreign = view("c", "1", DesiredState::Launched);
    foreign.options = vec![UnitOption::new("Service", "ExecStart", "/x")];
    index.see_unit(&foreign);
    assert_eq!(names(&index, "1"), ["a", "b"]);
    assert_eq!(index.active_count(), 1, "a unit that stops is not counted");
    assert_eq!(
        woken(&mut paths),
        ["/api/hyperfleet/v1/1", "/api/hyperfleet/v1/1"]
    );
    // Given another owner by hand.
    index.see_unit(&view("b", "2", DesiredState::Launched));
    assert_eq!((names(&index, "1").len(), names(&index, "2").len()), (1, 1));
    index.apply_unit(Item::Gone("a".to_owned()));
    assert_eq!(names(&index, "1"), [""; 0]);
    assert_eq!(
        woken(&mut paths),
        ["/api/hyperfleet/v1/2", "/api/hyperfleet/v1/1"],
        "a unit that was destroyed wakes its resource"
    );
    index.forget_all_but(&HashSet::new());
    assert_eq!((index.active_count(), index.resources()), (0, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_service_is_active_since_it_was_seen_so_with_its_file() {
    let (index, mut paths) = Index::new("fleet");
    index.see_unit(&view("a", "1", DesiredState::Launched));
    woken(&mut paths);
    let second = Duration::from_secs(1);
    let active = state("a", "h", "active");
    index.see_state(&active, FirstSeen::AtStart);
    assert_eq!(
        index.active_for(&active),
        Duration::MAX,
        "it was active before"
    );
    assert_eq!(woken(&mut paths), ["/api/hyperfleet/v1/1"]);
    index.apply_state(Item::Is(state("a", "h", "activating")));
    assert_eq!(index.active_for(&active), Duration::ZERO);
    index.apply_state(Item::Is(active.clone()));
    tokio::time::advance(second).await;
    index.apply_state(Item::Is(active.clone()));
    assert_eq!(index.active_for(&active), second, "it goes on");
    let other_file = state("a", "other", "active");
    index.apply_state(Item::Is(other_file.clone()));
    assert_eq!(index.active_for(&other_file), Duration::ZERO);
    assert_eq!(
        index.active_for(&active),
        Duration::ZERO,
        "the older file is not active"
    );
}

#[test]
fn a_destroyed_unit_keeps_its_owner_until_it_has_stopped() {
    let (index, mut paths) = Index::new("fleet");
    index.see_unit(&view("a", "1", DesiredState::Launched));
    index.see_state(&state("a", "h", "active"), FirstSeen::Later);
    index.apply_unit(Item::Gone("a".to_owned()));
    assert_eq!(names(&index, "1"), ["a"]);
    assert_eq!(index.destroyed("a").unwrap().resource, "1");
    woken(&mut paths);
    index.forget_states_but(&HashSet::new());
    assert_eq!(names(&index, "1"), [""; 0]);
    assert_eq!(woken(&mut paths), ["/api/hyperfleet/v1/1"]);
}

#[tokio::test]
async fn what_changes_in_fleet_reaches_the_index() {
    let keys = hyperfleet_testkit::MemoryKeys::new();
    let fleet = Fleet::new(Registry::new(keys, Prefix::new("/fleet/v3/").unwrap()), 100);
    let (index, mut paths) = Index::new("fleet");
    let mirrored = fleet.clone();
    let mirror = tokio::spawn(async move { mirrored.run_mirror().await });
    let index = std::sync::Arc::new(index);
    let (followed, followed_fleet) = (std::sync::Arc::clone(&index), fleet.clone());
    let task = tokio::spawn(async move { followed.follow(&followed_fleet).await });
    index.wait_until_read().await;
    let unit = view("a@1.service", "1", DesiredState::Launched);
    let mut options = unit.options;
    options.push(UnitOption::new("Service", "ExecStart", "/x"));
    let request = hyperfleet_fleet::SetUnit {
        options: Some(options),
        desired: Some(DesiredState::Launched),
    };
    fleet.set_unit("a@1.service", request).await.unwrap();
    assert_eq!(paths.recv().await.as_deref(), Some("/api/hyperfleet/v1/1"));
    assert_eq!(names(&index, "1"), ["a@1.service"]);
    fleet.destroy_unit("a@1.service").await.unwrap();
    while !index.names("1").is_empty() {
        paths.recv().await.unwrap();
    }
    task.abort();
    mirror.abort();
}
