use chrono::{DateTime, Utc};
use hyperfleet_domain::aggregation::{AggregationInput, aggregate};
use hyperfleet_domain::entity_config::{EntityConfig, registry};
use hyperfleet_domain::{Condition, EntityRegistry, ReportState, ReportedCondition};
use sqlx::postgres::PgConnection;
use sqlx::types::{Json, Uuid};

/// Invariants of any database without writers, each as a query that finds violations.
const LAWS: [(&str, &str); 16] = [
    (
        "an active child has an active parent",
        "SELECT c.id::text FROM resources c JOIN resources p ON p.id = c.owner_id
         WHERE c.deleted_at IS NULL AND p.deleted_at IS NOT NULL",
    ),
    (
        "a child has its parent, and only children do",
        "SELECT c.id::text FROM resources c LEFT JOIN resources p ON p.id = c.owner_id
         WHERE c.owner_id IS NOT NULL AND p.id IS NULL OR (c.kind IN ('NodePool', 'File')) <> (c.owner_id IS NOT NULL)",
    ),
    (
        "a report has its resource and does not run ahead of it",
        "SELECT e.adapter FROM adapter_reports e LEFT JOIN resources r ON r.id = e.resource_id
         WHERE r.id IS NULL OR e.observed_generation > r.generation",
    ),
    (
        "Reconciled speaks of the current generation",
        "SELECT id::text FROM resources, jsonb_array_elements(conditions) c
         WHERE c->>'type' = 'Reconciled' AND (c->>'observed_generation')::int <> generation",
    ),
    (
        "no condition speaks of a generation to come",
        "SELECT id::text FROM resources, jsonb_array_elements(conditions) c
         WHERE (c->>'observed_generation')::int > generation",
    ),
    (
        "a finalizing resource with children is not reconciled",
        "SELECT id::text FROM resources r, jsonb_array_elements(conditions) c
         WHERE deleted_at IS NOT NULL AND c->>'type' = 'Reconciled' AND c->>'status' = 'True'
           AND EXISTS (SELECT FROM resources WHERE owner_id = r.id)",
    ),
    (
        "totals are what there is",
        "SELECT kind FROM (SELECT kind, sum(count) AS kept FROM resource_counts GROUP BY kind) k
         FULL JOIN (SELECT kind, count(*) AS real FROM resources GROUP BY kind) r USING (kind)
         WHERE coalesce(kept, 0) <> coalesce(real, 0)",
    ),
    (
        "totals of tenants are what there is",
        "SELECT tenancy::text FROM (SELECT tenancy, kind, sum(count) AS kept FROM tenant_resource_counts
                                    GROUP BY tenancy, kind) k
         FULL JOIN (SELECT tenancy, kind, count(*) AS real FROM resources
                    WHERE tenancy <> '{}' GROUP BY tenancy, kind) r USING (tenancy, kind)
         WHERE coalesce(kept, 0) <> coalesce(real, 0)",
    ),
    (
        "the trail says whose a resource is, from its beginning to its end",
        "SELECT id::text FROM (SELECT resource_id AS id, tenancy FROM audit_entries
                               UNION SELECT id, tenancy FROM resources) t
         GROUP BY id HAVING count(*) > 1",
    ),
    (
        "every resource that ever was has been created once",
        "SELECT id::text FROM (SELECT id FROM resources UNION SELECT resource_id FROM audit_entries) ids
         WHERE (SELECT count(*) FROM audit_entries WHERE resource_id = ids.id AND action = 'create') <> 1",
    ),
    (
        "what is gone was removed once, and what was removed is gone",
        "SELECT resource_id::text FROM audit_entries a GROUP BY resource_id
         HAVING count(*) FILTER (WHERE action IN ('hard_delete', 'force_delete'))
             <> (NOT EXISTS (SELECT FROM resources WHERE id = a.resource_id))::int",
    ),
    (
        "what is or was finalizing has been deleted once",
        "SELECT resource_id::text FROM audit_entries a GROUP BY resource_id
         HAVING count(*) FILTER (WHERE action = 'delete') > 1
             OR count(*) FILTER (WHERE action = 'delete')
                <> (SELECT count(*) FROM resources WHERE id = a.resource_id AND deleted_at IS NOT NULL)
               AND EXISTS (SELECT FROM resources WHERE id = a.resource_id)
             OR count(*) FILTER (WHERE action = 'hard_delete') > count(*) FILTER (WHERE action = 'delete')",
    ),
    (
        "the generation counts patches and the deletion",
        "SELECT r.id::text FROM resources r
         WHERE generation <> 1 + (SELECT count(*) FROM audit_entries
                                  WHERE resource_id = r.id AND action IN ('patch', 'delete'))",
    ),
    (
        "each entry of the trail goes on where the one before it ended",
        "SELECT sequence::text FROM (
             SELECT *, lag(generation_after) OVER (PARTITION BY resource_id ORDER BY sequence) AS previous
             FROM audit_entries) a
         WHERE generation_before IS DISTINCT FROM previous
            OR action IN ('patch', 'delete') AND generation_after <> generation_before + 1",
    ),
    (
        "the columns that follow from conditions are what the functions of the schema compute",
        "SELECT id::text FROM resources
         WHERE condition_states <> condition_states(conditions)
            OR (reconciled_updated_at, reconciled_transition_at, last_known_generation)
               IS DISTINCT FROM (condition_member(conditions, 'Reconciled', 'last_updated_time')::timestamptz,
                                 condition_member(conditions, 'Reconciled', 'last_transition_time')::timestamptz,
                                 condition_member(conditions, 'LastKnownReconciled', 'observed_generation')::bigint)",
    ),
    (
        "an active name is there once",
        "SELECT name FROM resources WHERE deleted_at IS NULL
         GROUP BY kind, owner_id, name, CASE WHEN owner_id IS NULL THEN tenancy END HAVING count(*) > 1",
    ),
];

/// Checks every invariant of a database when nothing is in progress.
pub(crate) async fn assert_sound(connection: &mut PgConnection, entities: &[EntityConfig]) {
    for (law, breaches) in LAWS {
        let query = sqlx::query_scalar::<_, String>(breaches);
        let found = query.fetch_all(&mut *connection).await.unwrap();
        assert!(found.is_empty(), "{law}: not for {found:?}");
    }
    let registry = registry(entities).unwrap();
    for resource in resources(connection).await {
        resource.assert_sound(&registry);
    }
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    kind: String,
    generation: i32,
    updated_at: DateTime<Utc>,
    is_deleting: bool,
    has_children: bool,
    conditions: Json<Vec<Condition>>,
    #[sqlx(skip)]
    reports: Vec<ReportState>,
}

#[derive(sqlx::FromRow)]
struct ReportRow {
    adapter: String,
    observed_generation: i32,
    created_at: DateTime<Utc>,
    reported_at: DateTime<Utc>,
    conditions: Json<Vec<ReportedCondition>>,
}

async fn resources(connection: &mut PgConnection) -> Vec<Row> {
    let query = "SELECT id, kind, generation, updated_at, deleted_at IS NOT NULL AS is_deleting, conditions,
                     EXISTS (SELECT FROM resources c WHERE c.owner_id = r.id) AS has_children
                 FROM resources r";
    let mut rows: Vec<Row> = sqlx::query_as(query)
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    for row in &mut rows {
        let reports: Vec<ReportRow> = sqlx::query_as(
            "SELECT adapter, observed_generation, created_at, reported_at, conditions
             FROM adapter_reports WHERE resource_id = $1",
        )
        .bind(row.id)
        .fetch_all(&mut *connection)
        .await
        .unwrap();
        row.reports = reports.into_iter().map(ReportRow::state).collect();
    }
    rows
}

impl ReportRow {
    fn state(self) -> ReportState {
        ReportState {
            adapter: self.adapter,
            observed_generation: self.observed_generation,
            created_at: self.created_at,
            reported_at: self.reported_at,
            conditions: self.conditions.0,
        }
    }
}

impl Row {
    fn assert_sound(&self, registry: &EntityRegistry) {
        let entity = registry.get(&self.kind);
        let required = entity.map_or(&[][..], |e| &e.required_adapters);
        // Conditions that rules add have tests of their own.
        if required.is_empty() || entity.is_some_and(|e| e.rules.is_some()) {
            return;
        }
        // Aggregation is idempotent: the stored conditions follow from the stored reports, of which none is missing.
        let again = aggregate(&AggregationInput {
            generation: self.generation,
            updated_at: self.updated_at,
            is_deleting: self.is_deleting,
            has_children: self.has_children,
            required,
            reports: &self.reports,
            previous: &self.conditions.0,
        });
        assert_eq!(again, self.conditions.0, "conditions of {}", self.id);
        let is_finalized = |adapter: &String| {
            let mut reports = self.reports.iter();
            reports.any(|r| {
                r.adapter == *adapter
                    && r.observed_generation == self.generation
                    && r.is_finalized()
            })
        };
        assert!(
            !self.is_deleting || self.has_children || !required.iter().all(is_finalized),
            "{} is done and was left behind",
            self.id
        );
    }
}
