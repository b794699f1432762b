use std::collections::HashSet;

use serde_json::json;

use super::*;
use crate::domain::EntityRegistry;
use crate::domain::entity_config::{EntityConfig, ReferenceConfig, built_in, registry};
use crate::domain::json_limits::DOCUMENT_BYTES_MAX;

const CLUSTER: &str = "0190a6f0-1c2b-7def-8123-456789abcdef";
const POOL: &str = "0190a6f0-1c2b-7def-8123-456789abcde0";

fn kinds() -> EntityRegistry {
    registry(&built_in()).unwrap()
}

fn id(text: &str) -> ResourceId {
    ResourceId::parse(text).unwrap()
}

fn row() -> SourceResource {
    SourceResource {
        id: CLUSTER.to_owned(),
        kind: "Cluster".to_owned(),
        name: "first".to_owned(),
        href: Some(format!("/api/hyperfleet/v1/clusters/{CLUSTER}")),
        generation: 3,
        created_time: "2026-01-01T10:00:00.123456+00:00".to_owned(),
        updated_time: "2026-01-01T12:00:00+00:00".to_owned(),
        created_by: "maker@example.com".to_owned(),
        updated_by: "author@example.com".to_owned(),
        spec: r#"{"a": 1.50, "big": 123456789012345678901234567890}"#.to_owned(),
        tenancy: r#"{"org": "acme"}"#.to_owned(),
        labels: r#"{"env": "prod"}"#.to_owned(),
        conditions: "[]".to_owned(),
        reports: "[]".to_owned(),
        ..SourceResource::default()
    }
}

fn pool() -> SourceResource {
    SourceResource {
        id: POOL.to_owned(),
        kind: "NodePool".to_owned(),
        href: None,
        owner_id: Some(CLUSTER.to_owned()),
        ..row()
    }
}

/// The row, with the cluster imported before.
fn translated(row: SourceResource) -> Result<ImportedResource, ImportReason> {
    translate(&kinds(), row, |owner| {
        (owner == id(CLUSTER)).then_some("Cluster")
    })
}

fn reason(row: SourceResource) -> String {
    let reason = translated(row).unwrap_err();
    assert!(reason.is_refusal());
    assert!(!reason.advice().is_empty());
    format!("{} | {reason}", reason.code())
}

fn condition(kind: &str, status: &str) -> serde_json::Value {
    json!({
        "type": kind, "status": status, "reason": null, "message": "", "observed_generation": 2,
        "created_time": "2026-01-01T10:00:00+00:00", "last_updated_time": "2026-01-01T10:00:01.5+00:00",
        "last_transition_time": "2026-01-01T10:00:02+00:00",
    })
}

#[test]
fn a_row_is_kept_exactly() {
    let imported = translated(row()).unwrap();
    let resource = imported.resource;
    let state = resource.state;
    assert_eq!(state.id, id(CLUSTER));
    assert_eq!(
        (state.kind.as_str(), state.name.as_str()),
        ("Cluster", "first")
    );
    assert_eq!(
        (state.generation, state.owner, state.deletion),
        (3, None, None)
    );
    assert_eq!(resource.created_at.timestamp_subsec_micros(), 123_456);
    assert_eq!(state.updated_at.to_rfc3339(), "2026-01-01T12:00:00+00:00");
    assert_eq!(resource.created_by, "maker@example.com");
    assert_eq!(resource.updated_by, "author@example.com");
    assert_eq!(
        resource.tenancy.get("org").map(String::as_str),
        Some("acme")
    );
    assert_eq!(resource.labels.iter().count(), 1);
    assert_eq!(imported.spec.get(), row().spec);
    assert_eq!(imported.href, None);
}

#[test]
fn a_deletion_without_an_author_gets_the_older_service_s_own() {
    let deleted = |by: Option<&str>| SourceResource {
        deleted_time: Some("2026-01-02T00:00:00+00:00".to_owned()),
        deleted_by: by.map(str::to_owned),
        ..row()
    };
    let by = |row| translated(row).unwrap().resource.state.deletion.unwrap().by;
    assert_eq!(by(deleted(Some("remover"))), "remover");
    assert_eq!(by(deleted(None)), DELETED_BY_DEFAULT);
}

#[test]
fn conditions_stand_in_the_order_of_aggregation() {
    let given = [
        "Zeta",
        "DnsSuccessful",
        "LastKnownReconciled",
        "Alpha",
        "ValidationSuccessful",
        "Reconciled",
    ];
    let conditions = given.map(|kind| condition(kind, "True"));
    let row = SourceResource {
        conditions: json!(conditions).to_string(),
        ..row()
    };
    let conditions = translated(row).unwrap().resource.state.conditions;
    let kinds: Vec<_> = conditions.iter().map(|c| c.kind.as_str()).collect();
    let expected = [
        "Reconciled",
        "LastKnownReconciled",
        "ValidationSuccessful",
        "DnsSuccessful",
        "Alpha",
        "Zeta",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(conditions[0].reason, None);
    assert_eq!(conditions[0].message.as_deref(), Some(""));
}

#[test]
fn each_broken_rule_has_its_reason() {
    let long = "x".repeat(DOCUMENT_BYTES_MAX);
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(64), "]".repeat(64));
    let many = format!("{{\"a\": [{}[]]}}", "[],".repeat(20_000));
    let text = str::to_owned;
    #[rustfmt::skip]
    let cases = [
        (SourceResource { id: text("cluster-1"), ..row() }, "id | the id is not a UUID"),
        (SourceResource { id: CLUSTER.to_uppercase(), ..row() }, "id |"),
        (SourceResource { kind: text("Channel"), ..row() }, "unknown_kind |"),
        (SourceResource { name: text("First"), ..row() }, "name | name must start and end"),
        (SourceResource { name: text("ab"), ..row() }, "name | name must be at least 3"),
        (SourceResource { owner_id: Some(text(POOL)), ..row() }, "parent | the kind and its parent do not fit"),
        (SourceResource { owner_id: None, ..pool() }, "parent |"),
        (SourceResource { owner_id: Some(text(POOL)), ..pool() }, "no_parent |"),
        (SourceResource { owner_id: Some(text("x")), ..pool() }, "no_parent |"),
        (SourceResource { spec: text("[]"), ..row() }, "spec | spec: invalid type"),
        (SourceResource { spec: text(r#"{"a": 1e400}"#), ..row() }, "spec | spec: number out of range"),
        (SourceResource { spec: json!({"a": long}).to_string(), ..row() }, "spec | spec: it has 1048584 bytes"),
        (SourceResource { spec: deep, ..row() }, "spec | spec: it is nested deeper than 63 levels"),
        (SourceResource { spec: many, ..row() }, "spec | spec: it has 20003 arrays and objects"),
        (SourceResource { labels: text(r#"{"-": "x"}"#), ..row() }, "labels | labels: label key"),
        (SourceResource { labels: text(r#"{"a": null}"#), ..row() }, "labels |"),
        (SourceResource { tenancy: text(r#"{"org": 1}"#), ..row() }, "tenancy |"),
        (SourceResource { tenancy: text(r#"{"org": "a b"}"#), ..row() }, "tenancy | tenancy: \"org\": \"a b\""),
        (SourceResource { conditions: json!([condition("A", "true")]).to_string(), ..row() }, "conditions |"),
        (SourceResource { generation: 0, ..row() }, "column | generation is impossible: 0"),
        (SourceResource { generation: 1 << 40, ..row() }, "column |"),
        (SourceResource { created_time: text("infinity"), ..row() }, "column | created_time is impossible: infinity"),
        (SourceResource { updated_time: text("0044-03-15T00:00:00+00:00 BC"), ..row() }, "column | updated_time"),
        (SourceResource { deleted_time: Some(text("-infinity")), ..row() }, "column | deleted_time"),
    ];
    for (row, expected) in cases {
        let found = reason(row);
        assert!(found.starts_with(expected), "{expected}: {found}");
    }
}

#[test]
fn limits_of_a_spec_are_those_of_a_request() {
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(62), "]".repeat(62));
    let large = json!({"a": "x".repeat(DOCUMENT_BYTES_MAX - 8)}).to_string();
    // The database prints a blank after each colon and comma.
    let spread = large.replace("\":\"", "\":                \"");
    for spec in [deep, large, spread] {
        let bytes = spec.len();
        let row = SourceResource { spec, ..row() };
        assert!(translated(row).is_ok(), "{bytes} bytes");
    }
}

#[test]
fn a_child_belongs_to_an_imported_parent_of_the_right_kind() {
    assert_eq!(
        translated(pool()).unwrap().resource.state.owner,
        Some(id(CLUSTER))
    );
    let wrong = translate(&kinds(), pool(), |_| Some("NodePool")).unwrap_err();
    assert_eq!(wrong.code(), "parent");
}

#[test]
fn another_path_is_told_and_changes_nothing_else() {
    let there = format!("/api/hyperfleet/v1/a/{POOL}/nodepools/{POOL}");
    let row = SourceResource {
        href: Some(there.clone()),
        ..pool()
    };
    let href = translated(row).unwrap().href.unwrap();
    let here = format!("/api/hyperfleet/v1/clusters/{CLUSTER}/nodepools/{POOL}");
    assert!(!href.is_refusal());
    assert_eq!(href, ImportReason::Href { here, there });
}

fn reported(change: impl FnOnce(&mut serde_json::Value)) -> SourceResource {
    let mut report = json!({
        "adapter": "dns", "observed_generation": 2, "created_time": "2026-01-01T10:00:00+00:00",
        "last_report_time": "2026-01-01T11:00:00+00:00", "data": {"n": 1},
        "conditions": [{"type": "Available", "status": "True", "last_transition_time": "2026-01-01T10:00:00.123456789Z"}],
        "metadata": {"attempt": 2, "other": true},
    });
    change(&mut report);
    let other = json!({
        "adapter": "other", "observed_generation": 1, "created_time": null,
        "last_report_time": "2026-01-01T11:00:00+00:00", "data": null, "conditions": [], "metadata": null,
    });
    SourceResource {
        reports: json!([report, other]).to_string(),
        ..row()
    }
}

#[test]
fn a_report_is_kept_exactly() {
    let imported = translated(reported(|_| {})).unwrap();
    assert_eq!(imported.parts(), ImportedParts::All);
    let [dns, other] = imported.reports.try_into().unwrap();
    assert_eq!(dns.state.adapter, "dns");
    assert_eq!(dns.state.observed_generation, 2);
    assert_eq!(dns.data.get(), r#"{"n":1}"#);
    assert_eq!(dns.metadata.unwrap().attempt, Some(2));
    assert_eq!(other.state.created_at, other.state.reported_at);
    assert_eq!((other.data.get(), other.metadata), ("{}", None));
}

#[test]
fn a_report_is_refused_alone() {
    let long = "x".repeat(256);
    let twice =
        json!([{"type": "A", "status": "True", "last_transition_time": "2026-01-01T10:00:00Z"}]);
    let twice = json!([twice[0], twice[0]]);
    let cases = [
        ("adapter", json!(""), "the adapter's name has 0 bytes"),
        ("adapter", json!(long), "the adapter's name has 256 bytes"),
        (
            "observed_generation",
            json!(0),
            "observed_generation is impossible: 0",
        ),
        (
            "last_report_time",
            json!("infinity"),
            "last_report_time is impossible",
        ),
        (
            "last_report_time",
            json!(null),
            "last_report_time is impossible: null",
        ),
        (
            "conditions",
            json!([{"type": "A"}]),
            "conditions: missing field",
        ),
        ("conditions", twice, "a condition type is there twice"),
        ("data", json!([1]), "data: invalid type"),
        (
            "metadata",
            json!({"attempt": "x"}),
            "metadata: invalid type",
        ),
    ];
    for (member, value, expected) in cases {
        let row = reported(|report| report[member] = value.clone());
        let imported = translated(row).unwrap();
        assert_eq!(imported.parts(), ImportedParts::Accepted);
        assert_eq!(imported.reports.len(), 1, "{member}: {value}");
        let [(_, reason)] = imported.refused_reports.try_into().unwrap();
        let message = reason.to_string();
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn a_reference_needs_its_rule_and_its_target() {
    let mut configs = built_in();
    configs[0].references = vec![ReferenceConfig {
        ref_type: "wif".to_owned(),
        target_kind: "WifConfig".to_owned(),
        ..ReferenceConfig::default()
    }];
    configs.push(EntityConfig {
        kind: "WifConfig".to_owned(),
        plural: "wifconfigs".to_owned(),
        ..EntityConfig::default()
    });
    let registry = registry(&configs).unwrap();
    let entity = registry.get("Cluster").unwrap();
    let reference = |ref_type: &str, target: &str, kind: &str| SourceReference {
        source_id: CLUSTER.to_owned(),
        ref_type: ref_type.to_owned(),
        target_id: target.to_owned(),
        target_kind: kind.to_owned(),
    };
    let check = |row| {
        check_reference(entity, &row, |target| {
            (target == id(POOL)).then_some("WifConfig")
        })
    };
    assert_eq!(
        check(reference("wif", POOL, "WifConfig")).unwrap().id,
        id(POOL)
    );
    for (row, reason) in [
        (
            reference("other", POOL, "WifConfig"),
            ImportReason::ReferenceType,
        ),
        (
            reference("wif", POOL, "Cluster"),
            ImportReason::ReferenceType,
        ),
        (
            reference("wif", CLUSTER, "WifConfig"),
            ImportReason::ReferenceTarget,
        ),
        (
            reference("wif", "x", "WifConfig"),
            ImportReason::ReferenceTarget,
        ),
    ] {
        assert_eq!(check(row), Err(reason));
    }
}

fn numbered(number: u8) -> ResourceId {
    uuid::Uuid::from_u128(u128::from(number)).into()
}

fn imported(number: u8, kind: Option<&str>, is_complete: bool) -> ImportedKey {
    ImportedKey {
        id: numbered(number),
        is_complete,
        kind: kind.map(str::to_owned),
        generation: kind.map(|_| 3),
    }
}

/// The plan for a source with these resources: number, kind, whether finalizing, whether changed.
fn plan(
    ledger: &mut Ledger,
    source: &[(u8, &str, bool, bool)],
    changed_parts: &[u8],
) -> ImportPlan {
    let registry = kinds();
    let changed: HashSet<_> = changed_parts.iter().map(|n| numbered(*n)).collect();
    let mut planner = ImportPlanner::new(&registry, ledger);
    for &(number, kind, is_finalizing, is_changed) in source {
        let id = numbered(number).to_string();
        let key = SourceKey {
            id: &id,
            kind,
            generation: 3,
            is_finalizing,
            is_changed,
        };
        planner.push(key, |id| changed.contains(&id));
    }
    planner.finish().0
}

#[test]
fn parents_come_first_and_finalizing_resources_leave_their_names() {
    let source = [
        (1, "NodePool", false, true),
        (2, "Cluster", false, true),
        (3, "Cluster", true, true),
        (4, "NodePool", true, true),
        (5, "Unheard", false, true),
    ];
    let plan = plan(&mut Ledger::default(), &source, &[]);
    let expected = [vec![3], vec![2, 5], vec![4], vec![1]];
    let expected = expected.map(|level| level.into_iter().map(numbered).collect::<Vec<_>>());
    assert_eq!(plan.bring, expected);
}

#[test]
fn a_later_run_brings_what_changed_and_what_is_not_whole() {
    let mut ledger = Ledger::of([
        imported(1, Some("Cluster"), true),
        imported(2, Some("Cluster"), true),
        imported(3, Some("Cluster"), true),
        imported(4, Some("Cluster"), false),
        imported(5, None, true),
        imported(6, None, true),
        imported(7, Some("Cluster"), true),
        imported(8, Some("NodePool"), true),
    ]);
    let source = [
        (1, "Cluster", false, false),
        (2, "Cluster", false, true),
        (3, "Cluster", false, false),
        (4, "Cluster", false, false),
        (5, "Cluster", false, false),
        (6, "Cluster", false, true),
        (9, "Cluster", false, false),
    ];
    let plan = plan(&mut ledger, &source, &[3]);
    assert_eq!(plan.bring, [[2, 3, 4, 9].map(numbered).to_vec()]);
    assert_eq!(plan.unchanged, 1);
    // The child goes before the parent.
    assert_eq!(plan.remove, [8, 7].map(numbered));
    let [removed_here] = plan.findings.try_into().unwrap();
    assert_eq!(removed_here.reason, ImportReason::RemovedHere);
    assert_eq!(removed_here.id, numbered(6).to_string());
    assert_eq!(plan.regression, None);
    assert_eq!(ledger.comparable(), [1, 2, 3].map(numbered));
    assert_eq!((ledger.older(), ledger.removed_here()), (1, 2));
    assert_eq!(ledger.kind_of(numbered(5)), None);
}

#[test]
fn lower_generations_than_imported_are_noticed() {
    let registry = kinds();
    let mut ledger = Ledger::of([1, 2, 3].map(|n| imported(n, Some("Cluster"), true)));
    let mut planner = ImportPlanner::new(&registry, &mut ledger);
    for (number, generation) in [(1, 4), (2, 2), (3, 1)] {
        let id = numbered(number).to_string();
        let key = SourceKey {
            id: &id,
            kind: "Cluster",
            generation,
            is_finalizing: false,
            is_changed: true,
        };
        planner.push(key, |_| false);
    }
    let expected = Regression::Generations {
        count: 2,
        first: numbered(2),
    };
    assert_eq!(planner.finish().0.regression, Some(expected));
}

#[test]
fn ids_that_are_no_uuids_are_set_apart() {
    let registry = kinds();
    let mut ledger = Ledger::default();
    let mut planner = ImportPlanner::new(&registry, &mut ledger);
    let key = SourceKey {
        id: "cluster-1",
        kind: "Cluster",
        generation: 1,
        is_finalizing: false,
        is_changed: false,
    };
    planner.push(key, |_| false);
    let (plan, counts) = planner.finish();
    assert_eq!(plan.foreign_ids, ["cluster-1"]);
    assert_eq!(counts["Cluster"], 1);
}

#[test]
fn findings_are_all_counted_and_the_first_ones_of_each_reason_kept() {
    let mut findings = Findings::default();
    let count = Findings::LISTED_MAX + 5;
    for _ in 0..count {
        findings.push(about(ImportReason::Id, "Cluster", numbered(1)));
    }
    let (here, there) = ("/a".to_owned(), "/b".to_owned());
    findings.push(about(
        ImportReason::Href { here, there },
        "Cluster",
        numbered(1),
    ));
    assert_eq!(findings.counts()["id"], count);
    assert_eq!(findings.counts()["href"], 1);
    assert_eq!(findings.refused(), count);
    assert_eq!(findings.listed().len(), Findings::LISTED_MAX + 1);
}
