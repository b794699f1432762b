use serde_json::{Value, json};

use super::plan::{ImportPlan, SourceKey};
use super::row::{ReferenceRow, ResourceRow};
use super::translate::{ImportedResource, check_reference, translate};
use super::*;
use hyperfleet_domain::entity_config::{EntityConfig, ReferenceConfig, built_in, registry};
use hyperfleet_domain::json_limits::DOCUMENT_BYTES_MAX;
use hyperfleet_domain::{EntityRegistry, ResourceId};

const CLUSTER: &str = "0190a6f0-1c2b-7def-8123-456789abcdef";
const POOL: &str = "0190a6f0-1c2b-7def-8123-456789abcde0";

fn kinds() -> EntityRegistry {
    registry(&built_in()).unwrap()
}

fn id(text: &str) -> ResourceId {
    ResourceId::parse(text).unwrap()
}

fn cluster() -> Value {
    json!({
        "id": CLUSTER, "kind": "Cluster", "name": "first", "href": format!("/api/hyperfleet/v1/clusters/{CLUSTER}"),
        "owner_id": null, "generation": 3, "created_time": "2026-01-01T10:00:00.123456+00:00",
        "updated_time": "2026-01-01T12:00:00+00:00", "deleted_time": null, "created_by": "maker@example.com",
        "updated_by": "author@example.com", "deleted_by": null, "spec": {"a": 1}, "tenancy": {"org": "acme"},
        "labels": {"env": "prod"}, "conditions": [], "reports": [], "has_references": false,
        "owner_kind": "a column that is not read",
    })
}

fn pool() -> Value {
    with(
        cluster(),
        json!({"id": POOL, "kind": "NodePool", "href": null, "owner_id": CLUSTER}),
    )
}

fn with(mut row: Value, members: Value) -> Value {
    let Value::Object(members) = members else {
        panic!()
    };
    row.as_object_mut().unwrap().extend(members);
    row
}

/// The row, with the cluster imported before.
fn translated(row: &Value) -> Result<ImportedResource, Box<ImportFinding>> {
    let row: ResourceRow = serde_json::from_str(&row.to_string()).unwrap();
    let (kind, id_text, name) = (row.kind.clone(), row.id.clone(), row.name.clone());
    let kind_of = |owner| (owner == id(CLUSTER)).then_some("Cluster");
    translate(&kinds(), row, kind_of)
        .map_err(|refusal| Box::new(refusal.of(&kind, &id_text, &name)))
}

/// What the import writes of a row.
fn written(row: &Value) -> Value {
    serde_json::to_value(translated(row).unwrap().row).unwrap()
}

fn condition(kind: &str, status: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": null, "message": "", "observed_generation": 2,
        "created_time": "2026-01-01T10:00:00+00:00", "last_updated_time": "2026-01-01T10:00:01.5+00:00",
        "last_transition_time": "2026-01-01T10:00:02+00:00",
    })
}

#[test]
fn a_row_is_copied_exactly() {
    let found = written(&cluster());
    let expected = cluster();
    for (here, there) in [
        ("created_at", "created_time"),
        ("updated_at", "updated_time"),
        ("deleted_at", "deleted_time"),
        ("created_by", "created_by"),
        ("updated_by", "updated_by"),
        ("deleted_by", "deleted_by"),
        ("generation", "generation"),
        ("labels", "labels"),
        ("tenancy", "tenancy"),
    ] {
        assert_eq!(found[here], expected[there], "{here}");
    }
    let exact = r#"{"a": 1.50, "big": 123456789012345678901234567890}"#;
    let text = cluster().to_string().replace(r#"{"a":1}"#, exact);
    let row = translate(&kinds(), serde_json::from_str(&text).unwrap(), |_| None).unwrap();
    assert_eq!(row.row.spec.get(), exact);
    assert_eq!(row.href, None);
}

#[test]
fn a_deletion_without_an_author_gets_the_older_service_s_own() {
    let deleted = |by: Value| {
        with(
            cluster(),
            json!({"deleted_time": "2026-01-02T00:00:00+00:00", "deleted_by": by}),
        )
    };
    assert_eq!(written(&deleted(json!("remover")))["deleted_by"], "remover");
    assert_eq!(
        written(&deleted(json!(null)))["deleted_by"],
        "system@hyperfleet.local"
    );
    let active = with(cluster(), json!({"deleted_by": "remover"}));
    assert_eq!(written(&active)["deleted_by"], json!(null));
}

#[test]
fn conditions_stand_in_the_order_of_aggregation() {
    let kinds = [
        "Zeta",
        "DnsSuccessful",
        "LastKnownReconciled",
        "Alpha",
        "ValidationSuccessful",
        "Reconciled",
    ];
    let conditions = kinds.map(|kind| condition(kind, "True"));
    let found = written(&with(cluster(), json!({"conditions": conditions})));
    let kinds: Vec<_> = found["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["type"].as_str().unwrap())
        .collect();
    let expected = [
        "Reconciled",
        "LastKnownReconciled",
        "ValidationSuccessful",
        "DnsSuccessful",
        "Alpha",
        "Zeta",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(found["conditions"][0].get("reason"), None);
    assert_eq!(found["conditions"][0]["message"], "");
}

#[test]
fn each_broken_rule_has_its_reason() {
    let long = "x".repeat(DOCUMENT_BYTES_MAX);
    let nested = |depth| (0..depth).fold(json!([]), |inner, _| json!([inner]));
    let many = vec![json!([]); 20_001];
    #[rustfmt::skip]
    let cases = [
        (cluster(), json!({"id": "cluster-1"}), "id | the id is not a UUID"),
        (cluster(), json!({"id": CLUSTER.to_uppercase()}), "id |"),
        (cluster(), json!({"kind": "Channel"}), "unknown_kind |"),
        (cluster(), json!({"kind": "NodePool", "owner_id": CLUSTER}), "kind_changed | the kind is another one than when the resource was imported: Cluster"),
        (cluster(), json!({"name": "First"}), "name | name must start and end"),
        (cluster(), json!({"name": "ab"}), "name | name must be at least 3"),
        (cluster(), json!({"owner_id": POOL}), "parent | the kind and its parent do not fit"),
        (pool(), json!({"owner_id": null}), "parent |"),
        (pool(), json!({"owner_id": POOL}), "no_parent |"),
        (pool(), json!({"owner_id": "x"}), "no_parent |"),
        (cluster(), json!({"spec": []}), "spec | spec: invalid type"),
        (cluster(), json!({"spec": {"a": long}}), "spec | spec: it has 1048584 bytes"),
        (cluster(), json!({"spec": {"a": nested(64)}}), "spec | spec: it is nested deeper than 63 levels"),
        (cluster(), json!({"spec": {"a": many}}), "spec | spec: it has 20003 arrays and objects"),
        (cluster(), json!({"labels": {"-": "x"}}), "labels | labels: label key"),
        (cluster(), json!({"labels": {"a": null}}), "labels |"),
        (cluster(), json!({"tenancy": {"org": 1}}), "tenancy |"),
        (cluster(), json!({"tenancy": {"org": "a b"}}), "tenancy | tenancy: \"org\": \"a b\""),
        (cluster(), json!({"conditions": [condition("A", "true")]}), "conditions |"),
        (cluster(), json!({"generation": 0}), "column | impossible value: generation is 0"),
        (cluster(), json!({"generation": 1_u64 << 40}), "column |"),
        (cluster(), json!({"created_time": "infinity"}), "column | impossible value: a time is infinity"),
        (cluster(), json!({"updated_time": "0044-03-15T00:00:00+00:00 BC"}), "column |"),
        (cluster(), json!({"deleted_time": "-infinity"}), "column |"),
    ];
    for (row, members, expected) in cases {
        let finding = translated(&with(row, members)).unwrap_err();
        assert!(finding.refused && !finding.advice.is_empty(), "{expected}");
        let found = format!("{} | {}", finding.reason.code(), finding.message);
        assert!(found.starts_with(expected), "{expected}: {found}");
    }
    let text = cluster()
        .to_string()
        .replace(r#"{"a":1}"#, r#"{"a":1e400}"#);
    let huge = translate(&kinds(), serde_json::from_str(&text).unwrap(), |_| None).unwrap_err();
    assert!(
        huge.of("", &"", "")
            .message
            .starts_with("spec: number out of range")
    );
}

#[test]
fn limits_of_a_spec_are_those_of_a_request() {
    let nested = (0..61).fold(json!([]), |inner, _| json!([inner]));
    let large = json!({"a": "x".repeat(DOCUMENT_BYTES_MAX - 8)});
    // The database prints a blank after each colon and comma.
    let spread = with(cluster(), json!({"spec": large})).to_string();
    let spread = spread.replace(r#""spec":{"a":"#, r#""spec":{"a":                "#);
    let row = serde_json::from_str(&spread).unwrap();
    assert!(translate(&kinds(), row, |_| None).is_ok());
    for spec in [json!({"a": nested}), large] {
        assert!(translated(&with(cluster(), json!({"spec": spec}))).is_ok());
    }
}

#[test]
fn a_child_belongs_to_an_imported_parent_of_the_right_kind() {
    assert_eq!(written(&pool())["owner_id"], CLUSTER);
    let row = serde_json::from_str(&pool().to_string()).unwrap();
    let wrong = translate(&kinds(), row, |_| Some("NodePool")).unwrap_err();
    assert_eq!(wrong.of("", &"", "").reason, ImportReason::Parent);
}

#[test]
fn a_changed_path_is_reported_and_changes_nothing_else() {
    let there = format!("/api/hyperfleet/v1/a/{POOL}/nodepools/{POOL}");
    let row = translated(&with(pool(), json!({"href": there}))).unwrap();
    let finding = row.href.unwrap().of("NodePool", &POOL, "first");
    let here = format!("/api/hyperfleet/v1/clusters/{CLUSTER}/nodepools/{POOL}");
    assert!(!finding.refused);
    assert_eq!(
        finding.message,
        format!("its path is {here} here, and was {there}")
    );
}

fn reported(members: Value) -> Value {
    let report = json!({
        "adapter": "dns", "observed_generation": 2, "created_time": "2026-01-01T10:00:00+00:00",
        "last_report_time": "2026-01-01T11:00:00+00:00", "data": {"n": 1},
        "conditions": [{"type": "Available", "status": "True", "last_transition_time": "2026-01-01T10:00:00.123456789Z"}],
        "metadata": {"attempt": 2, "other": true},
    });
    let other = json!({
        "adapter": "other", "observed_generation": 1, "created_time": null,
        "last_report_time": "2026-01-01T11:00:00+00:00", "data": null, "conditions": [], "metadata": null,
    });
    with(
        cluster(),
        json!({"reports": [with(report, members), other]}),
    )
}

#[test]
fn a_report_is_copied_except_for_what_this_service_cannot_store() {
    let reports = written(&reported(json!({})))["reports"].clone();
    let [dns, other] = [&reports[0], &reports[1]];
    assert_eq!(
        (&dns["adapter"], &dns["observed_generation"]),
        (&json!("dns"), &json!(2))
    );
    assert_eq!(dns["created_at"], "2026-01-01T10:00:00+00:00");
    assert_eq!(dns["data"], json!({"n": 1}));
    assert_eq!(dns["metadata"], json!({"attempt": 2}));
    assert_eq!(
        dns["conditions"][0]["last_transition_time"],
        "2026-01-01T10:00:00.123456Z"
    );
    assert_eq!(other["created_at"], other["reported_at"]);
    assert_eq!(
        (&other["data"], &other["metadata"]),
        (&json!({}), &json!(null))
    );
}

#[test]
fn a_refused_report_does_not_refuse_its_resource() {
    let condition =
        json!({"type": "A", "status": "True", "last_transition_time": "2026-01-01T10:00:00Z"});
    let long = "x".repeat(256);
    #[rustfmt::skip]
    let cases = [
        (json!({"adapter": ""}), "the adapter has no name"),
        (json!({"adapter": long}), "it has 256 bytes of the adapter's name, more than 255"),
        (json!({"observed_generation": 0}), "observed_generation is 0"),
        (json!({"last_report_time": "infinity"}), "a time is infinity"),
        (json!({"last_report_time": null}), "a time is null"),
        (json!({"conditions": [{"type": "A"}]}), "conditions: missing field"),
        (json!({"conditions": [condition, condition]}), "a condition type occurs twice"),
        (json!({"conditions": vec![condition; 101]}), "it has 101 conditions, more than 100"),
        (json!({"data": [1]}), "data: invalid type"),
        (json!({"metadata": {"attempt": "x"}}), "metadata: invalid type"),
    ];
    for (members, expected) in cases {
        let imported = translated(&reported(members)).unwrap();
        assert_eq!(imported.row.reports.len(), 1, "{expected}");
        let [(_, why)] = imported.refused_reports.try_into().unwrap();
        assert!(why.contains(expected), "{expected}: {why}");
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
    for (ref_type, target, kind, expected) in [
        ("wif", POOL, "WifConfig", Ok(())),
        ("other", POOL, "WifConfig", Err(ImportReason::ReferenceType)),
        ("wif", POOL, "Cluster", Err(ImportReason::ReferenceType)),
        (
            "wif",
            CLUSTER,
            "WifConfig",
            Err(ImportReason::ReferenceTarget),
        ),
        ("wif", "x", "WifConfig", Err(ImportReason::ReferenceTarget)),
    ] {
        let row = ReferenceRow {
            source_id: id(CLUSTER).as_uuid(),
            ref_type: ref_type.to_owned(),
            target_id: target.to_owned(),
            target_kind: kind.to_owned(),
        };
        let kind_of = |target| (target == id(POOL)).then_some("WifConfig");
        assert_eq!(
            check_reference(&registry, "Cluster", &row, kind_of),
            expected,
            "{row:?}"
        );
    }
}

fn numbered(number: u8) -> ResourceId {
    uuid::Uuid::from_u128(u128::from(number)).into()
}

fn push(
    plan: &mut ImportPlan<'_>,
    number: u8,
    kind: &str,
    is_finalizing: bool,
) -> Option<ImportReason> {
    let id = numbered(number).to_string();
    let key = SourceKey {
        id: &id,
        kind,
        is_finalizing,
    };
    let refusal = plan.push(key).err()?;
    Some(refusal.of(kind, &id, "").reason)
}

#[test]
fn parents_come_first_and_finalizing_resources_free_names() {
    let registry = kinds();
    let mut plan = ImportPlan::new(&registry);
    for (number, kind, is_finalizing) in [
        (1, "NodePool", false),
        (5, "Unheard", false),
        (2, "Cluster", false),
        (3, "Cluster", true),
        (4, "NodePool", true),
    ] {
        assert_eq!(push(&mut plan, number, kind, is_finalizing), None);
    }
    let expected = [vec![3], vec![2, 5], vec![4], vec![1]];
    let expected = expected.map(|level| level.into_iter().map(numbered).collect::<Vec<_>>());
    assert_eq!(plan.take_batches(2), expected);
    let key = SourceKey {
        id: "cluster-1",
        kind: "Cluster",
        is_finalizing: false,
    };
    assert_eq!(
        plan.push(key).unwrap_err().of("", &"", "").reason,
        ImportReason::Id
    );
}

#[test]
fn vanished_resources_are_listed_children_first() {
    let registry = kinds();
    let mut plan = ImportPlan::new(&registry);
    for (number, kind) in [
        (1, Some("Cluster")),
        (2, Some("NodePool")),
        (3, Some("Cluster")),
        (4, None),
        (5, None),
    ] {
        plan.add(numbered(number), kind, false);
    }
    assert!(!plan.fits_source());
    assert_eq!(push(&mut plan, 3, "Cluster", false), None);
    assert_eq!(
        push(&mut plan, 4, "Cluster", false),
        Some(ImportReason::RemovedHere)
    );
    assert!(plan.fits_source());
    assert_eq!(
        plan.vanished(10),
        [[2], [1]].map(|level| level.map(numbered).to_vec())
    );
    assert_eq!(plan.take_batches(10), [[numbered(3)]]);
    assert_eq!(plan.kind_of(numbered(4)), None);
    assert_eq!(plan.counts(), [("Cluster", 2), ("NodePool", 1)].into());
}

#[test]
fn all_findings_are_counted_and_the_first_are_listed() {
    let mut report = ImportReport::default();
    let count = ImportReport::LISTED_MAX + 5;
    for _ in 0..count {
        report.refuse(ImportReason::Id.of("Cluster", &"x", ""));
    }
    report.push(ImportReason::Href.of("Cluster", &"x", ""));
    assert_eq!((report.findings["id"], report.findings["href"]), (count, 1));
    assert_eq!(
        (report.refused, report.kinds["Cluster"].refused),
        (count, count)
    );
    assert_eq!(report.listed.len(), ImportReport::LISTED_MAX + 1);
    assert_eq!(report.exit_code(), 3);
    let text = report.to_string();
    let (refused, notice) = (
        text.find("Refused: 1005 (id)"),
        text.find("Imported with a difference: 1 (href)"),
    );
    assert!(refused.is_some() && refused < notice, "{text}");
    assert!(
        text.contains("  and 985 more; -o json lists the first 1000"),
        "{text}"
    );
}
