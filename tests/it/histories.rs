//! Every eighth of the two hundred histories of a resource that were computed with the functions of the Go HyperFleet API:
//! the service stores and answers what its rules decide. The rules replay all of them (`crates/domain/src/tests/histories.rs`).

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hyperfleet_domain::entity_config::EntityConfig;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Answer, TestApi, child, root};

const KINDS_PER_SERVER: usize = 10;
/// Every eighth history is replayed.
const STEP: usize = 8;

#[derive(Deserialize)]
struct History {
    name: String,
    required_adapters: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    op: String,
    at: DateTime<Utc>,
    #[serde(default)]
    has_children: bool,
    /// The members of a report, as they are sent.
    #[serde(flatten)]
    report: BTreeMap<String, Value>,
    expect: Expect,
}

#[derive(Deserialize)]
struct Expect {
    outcome: String,
    detail: Option<String>,
    generation: i32,
    conditions: Value,
    adapter_statuses: Vec<Value>,
}

/// The kinds of the lives: one per list of required adapters, each with a child kind whose
/// resources stay finalizing until they are forced out.
struct Kinds(Vec<Vec<String>>);

impl Kinds {
    fn of(histories: &[&History]) -> Self {
        let mut lists: Vec<_> = histories
            .iter()
            .map(|h| h.required_adapters.clone())
            .collect();
        lists.sort();
        lists.dedup();
        Self(lists)
    }

    fn number(&self, history: &History) -> usize {
        self.0.binary_search(&history.required_adapters).unwrap()
    }

    fn configs(&self) -> Vec<EntityConfig> {
        let lists = self.0.iter().enumerate();
        let pairs = lists.map(|(number, adapters)| {
            let adapters: Vec<_> = adapters.iter().map(String::as_str).collect();
            let kind = format!("Kind{number}");
            let below = root(
                &format!("Child{number}"),
                &format!("children{number}"),
                &["cleanup"],
            );
            [
                root(&kind, &format!("kinds{number}"), &adapters),
                child(&kind, "cascade", below),
            ]
        });
        pairs.flatten().collect()
    }
}

/// One life, being replayed.
struct Replay<'a> {
    api: &'a TestApi,
    kind: usize,
    name: &'a str,
    path: String,
    child: Option<String>,
    patches: u32,
}

impl Replay<'_> {
    /// Does what a step says.
    async fn take(&mut self, step: &Step) -> Answer {
        let (api, kind, path) = (self.api, self.kind, self.path.clone());
        match step.op.as_str() {
            "create" => {
                let body = json!({"kind": format!("Kind{kind}"), "name": self.name, "spec": {}});
                let answer = api.post(&format!("/kinds{kind}"), body).await;
                self.path = format!("/kinds{kind}/{}", answer.id());
                answer
            }
            "patch" => {
                self.patches += 1;
                let body = json!({"spec": {"patches": self.patches}});
                api.patch(&path, body).await
            }
            "delete" => {
                if step.has_children {
                    let list = format!("{path}/children{kind}");
                    let made = api.make(&list, &format!("Child{kind}"), "child").await;
                    self.child = Some(made);
                }
                api.delete(&path).await
            }
            "children_gone" => {
                let child = self.child.take().unwrap();
                let reason = json!({"reason": "the history says so"});
                api.post(&format!("{child}/force-delete"), reason).await
            }
            "report" => {
                let body = serde_json::to_value(&step.report).unwrap();
                api.put(&format!("{path}/statuses"), body).await
            }
            other => panic!("the vectors have a new step: {other}"),
        }
    }

    /// Compares an answer, and what is stored then, with what a step leads to.
    async fn check(&self, step: &Step, answer: Answer, at: &str) {
        let Expect {
            outcome,
            detail,
            generation,
            conditions,
            adapter_statuses,
        } = &step.expect;
        let statuses = format!("{}/statuses?size=100", self.path);
        let (found, statuses) = tokio::join!(self.api.get(&self.path), self.api.get(&statuses));
        let named = match (step.op.as_str(), answer.status, found.status) {
            ("create", 201, 200) => "created",
            ("patch", 200, 200) => "updated",
            ("delete", 202, 200) => "finalizing",
            ("children_gone", 204, 200) => "ok",
            ("report", 201, 200) => "accepted",
            ("report", 201, 404) => "hard_deleted",
            ("report", 204, 200) => "discarded",
            ("report", 400, 200) => "invalid",
            other => panic!("{at}: {other:?} {}", answer.body),
        };
        assert_eq!(named, outcome, "{at}");
        if let Some(detail) = detail {
            assert_eq!(answer.detail(), detail, "{at}");
        }
        if outcome == "hard_deleted" {
            assert_eq!(statuses.status, 404, "{at}");
            return;
        }
        if matches!(named, "created" | "updated" | "finalizing") {
            assert_eq!(answer.body, found.body, "{at}");
        }
        assert_eq!(found.body["generation"], json!(generation), "{at}");
        assert_eq!(found.body["status"]["conditions"], *conditions, "{at}");
        let expected: BTreeMap<_, _> = adapter_statuses.iter().map(by_adapter).collect();
        let stored: BTreeMap<_, _> = statuses.items().iter().map(by_adapter).collect();
        assert_eq!(stored, expected, "{at}");
        assert_eq!(statuses.body["total"], json!(expected.len()), "{at}");
    }
}

/// A report with what the vectors leave out: `data`, which nobody sends.
fn by_adapter(report: &Value) -> (&str, Value) {
    let mut complete = report.clone();
    complete
        .as_object_mut()
        .unwrap()
        .entry("data")
        .or_insert(json!({}));
    (report["adapter"].as_str().unwrap(), complete)
}

#[tokio::test]
async fn the_service_replays_every_eighth_history() {
    let text = include_str!("../vectors/hyperfleet_histories.json");
    let histories: Vec<History> = serde_json::from_str(text).unwrap();
    assert_eq!(histories.len(), 200);
    let histories: Vec<_> = histories.into_iter().step_by(STEP).collect();
    // Routes of all their kinds in one server would cost more than what is tested.
    let mut lists: Vec<_> = histories.iter().map(|h| &h.required_adapters).collect();
    lists.sort();
    lists.dedup();
    let mut replayed = 0;
    for lists in lists.chunks(KINDS_PER_SERVER) {
        let lives = histories
            .iter()
            .filter(|h| lists.contains(&&h.required_adapters));
        replayed += replay(lives.collect()).await;
    }
    assert_eq!(replayed, 200 / STEP);
}

/// Replays lives on a server of their own; gives how many.
async fn replay(histories: Vec<&History>) -> usize {
    let kinds = Kinds::of(&histories);
    let api = TestApi::spawn_with(&kinds.configs()).await;
    for history in &histories {
        let mut replay = Replay {
            api: &api,
            kind: kinds.number(history),
            name: &history.name,
            path: String::new(),
            child: None,
            patches: 0,
        };
        for (number, step) in history.steps.iter().enumerate() {
            let at = format!("{}, step {number} ({})", history.name, step.op);
            api.clock.set(step.at);
            let answer = replay.take(step).await;
            replay.check(step, answer, &at).await;
        }
    }
    histories.len()
}
