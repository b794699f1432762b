//! Moves for the sake of balance, as an operator asks for them.

use serde_json::{Value, json};

use super::cluster::{fleet_of, launch, until_on};
use super::error;
use hyperfleet_testkit::{TestFleet, until};

async fn plan(fleet: &TestFleet, query: &str) -> Value {
    fleet.get(&format!("/fleet/v1/rebalance{query}")).await.body
}

async fn order(fleet: &TestFleet, body: &Value) -> (u16, Value) {
    let path = "/fleet/v1/rebalance";
    let answer = fleet.send("POST", path, &[], &body.to_string()).await;
    (answer.status, answer.body)
}

async fn until_no_orders(fleet: &TestFleet) {
    until("no order is left", async || {
        fleet.registry.snapshot().await.unwrap().moves.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_plan_is_shown_first_and_then_carried_out() {
    let (fleet, machines) = fleet_of(&["m1", "m2"]).await;
    let cordon = "/fleet/v1/machines/m2/cordon";
    assert_eq!(fleet.send("PUT", cordon, &[], "").await.status, 204);
    let units: Vec<_> = (0..4).map(|n| format!("u{n}.service")).collect();
    for unit in &units {
        launch(&fleet, unit, &[]).await;
        until_on(&fleet, unit, "m1").await;
    }
    assert_eq!(plan(&fleet, "").await["moves"], json!([]));
    assert_eq!(fleet.delete(cordon).await.status, 204);
    let planned = plan(&fleet, "").await;
    let one = |name: &str| json!({"from": "m1", "name": name, "to": "m2"});
    assert_eq!(
        planned,
        json!({"after": {"m1": 2, "m2": 2}, "before": {"m1": 4, "m2": 0},
            "moves": [one("u0.service"), one("u1.service")]})
    );
    assert_eq!(
        plan(&fleet, "?max=1").await["moves"],
        json!([one("u0.service")])
    );
    assert!(
        machines[1].running().is_empty(),
        "nothing is moved by a plan"
    );
    assert_eq!(order(&fleet, &planned).await.0, 202);
    until_on(&fleet, "u0.service", "m2").await;
    until_on(&fleet, "u1.service", "m2").await;
    until_no_orders(&fleet).await;
    assert_eq!(machines[0].stopped(), ["u0.service", "u1.service"]);
    assert_eq!(plan(&fleet, "").await["moves"], json!([]));
}

#[tokio::test]
async fn orders_that_are_not_right_are_taken_back() {
    let (fleet, machines) = fleet_of(&["m1", "m2"]).await;
    launch(&fleet, "a.service", &[("MachineID", "m1")]).await;
    launch(&fleet, "b.service", &[]).await;
    until_on(&fleet, "a.service", "m1").await;
    until_on(&fleet, "b.service", "m2").await;
    let moves = json!({"moves": [
        {"name": "a.service", "from": "m1", "to": "m2"},
        {"name": "b.service", "from": "m1", "to": "m2"},
        {"name": "c.service", "from": "m1", "to": "m2"},
    ]});
    assert_eq!(order(&fleet, &moves).await.0, 202);
    until_no_orders(&fleet).await;
    assert!(machines.iter().all(|machine| machine.stopped().is_empty()));
    assert_eq!(order(&fleet, &json!({})).await.0, 202);
}

#[tokio::test]
async fn what_is_no_move_is_refused() {
    let fleet = TestFleet::spawn().await;
    let incomplete = json!({"moves": [{"name": "a.service", "from": "m1"}]});
    assert_eq!(order(&fleet, &incomplete).await.0, 400);
    let empty = json!({"moves": [{"name": "a.service", "from": "m1", "to": ""}]});
    let message = "invalid move: expect name, from and to";
    assert_eq!(order(&fleet, &empty).await, (400, error(400, message)));
    let unusable = json!({"moves": [{"name": "a b", "from": "m1", "to": "m2"}]});
    assert_eq!(order(&fleet, &unusable).await.0, 400);
    for query in ["?max=0", "?max=101", "?max=x"] {
        let message = "invalid value of max query parameter";
        assert_eq!(plan(&fleet, query).await, error(400, message), "{query}");
    }
}
