use super::*;

const LIMIT: RemovalLimit = RemovalLimit {
    units: 10,
    percent: 50,
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Asks for the removal of `units` until the decision is not to wait.
fn ask(
    brake: &mut Brake,
    resource: &str,
    units: usize,
    owned: usize,
    now: Duration,
) -> BrakeDecision {
    brake.decide(resource, units, owned, true, false, now)
}

#[test]
fn a_change_is_counted_as_a_whole_before_the_first_unit_goes() {
    let mut brake = Brake::new(LIMIT);
    for resource in ["a", "b", "c", "d"] {
        let verdict = ask(&mut brake, resource, 3, 20, seconds(0));
        assert_eq!(verdict, BrakeDecision::Wait(seconds(2)));
    }
    let held = BrakeDecision::Held {
        pending: 12,
        removed: 0,
        owned: 20,
    };
    assert_eq!(ask(&mut brake, "a", 3, 20, seconds(2)), held);
    brake.retain(|resource| resource != "nobody");
    assert_eq!(ask(&mut brake, "a", 3, 20, seconds(2)), held);
    // One of the resources needs its units again: 9 units may be removed.
    assert_eq!(ask(&mut brake, "d", 0, 20, seconds(3)), BrakeDecision::Go);
    assert_eq!(ask(&mut brake, "a", 3, 20, seconds(3)), BrakeDecision::Go);
}

#[test]
fn many_small_changes_are_one_large() {
    let mut brake = Brake::new(LIMIT);
    let mut owned = 20;
    for (at, resource) in [(0, "a"), (10, "b")] {
        ask(&mut brake, resource, 5, owned, seconds(at));
        assert_eq!(
            ask(&mut brake, resource, 5, owned, seconds(at + 2)),
            BrakeDecision::Go
        );
        owned -= 5;
    }
    ask(&mut brake, "c", 1, owned, seconds(20));
    let held = BrakeDecision::Held {
        pending: 1,
        removed: 10,
        owned: 10,
    };
    assert_eq!(ask(&mut brake, "c", 1, 10, seconds(22)), held);
    assert_eq!(
        ask(&mut brake, "c", 1, 10, seconds(603)),
        BrakeDecision::Go,
        "ten minutes later"
    );
}

#[test]
fn an_operator_and_a_limit_of_all_let_everything_go() {
    let mut brake = Brake::new(LIMIT);
    let verdict = brake.decide("a", 100, 100, true, true, seconds(0));
    assert_eq!(verdict, BrakeDecision::Go);
    let mut brake = Brake::new(RemovalLimit {
        percent: 100,
        ..LIMIT
    });
    assert_eq!(
        ask(&mut brake, "a", 100, 100, seconds(0)),
        BrakeDecision::Go
    );
}

#[test]
fn few_units_are_removed_at_once_and_none_before_the_check() {
    let mut brake = Brake::new(LIMIT);
    assert_eq!(ask(&mut brake, "a", 10, 10, seconds(0)), BrakeDecision::Go);
    let mut brake = Brake::new(LIMIT);
    for now in [0, 100] {
        let verdict = brake.decide("a", 1, 100, false, false, seconds(now));
        assert_eq!(verdict, BrakeDecision::Wait(seconds(2)));
    }
    assert_eq!(
        ask(&mut brake, "a", 1, 100, seconds(101)),
        BrakeDecision::Go
    );
}

#[test]
fn a_resource_without_units_counts_no_more() {
    let mut brake = Brake::new(LIMIT);
    for resource in ["a", "b"] {
        ask(&mut brake, resource, 8, 20, seconds(0));
    }
    let held = ask(&mut brake, "a", 8, 20, seconds(2));
    assert!(
        matches!(held, BrakeDecision::Held { pending: 16, .. }),
        "{held:?}"
    );
    brake.retain(|resource| resource == "a");
    assert_eq!(ask(&mut brake, "a", 8, 20, seconds(3)), BrakeDecision::Go);
}
