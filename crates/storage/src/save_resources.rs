//! Saves resources whose desired state, deletion or conditions have changed, with the recorded change and the audit entry
//! of each. This is the only statement that does so, for one resource or several.
//!
//! The part of the statement that reads the table again sees each row as it was before. **The statement waits for no
//! row lock**: it counts as a writer of `changes` from its start, and no later change is dispatched to watchers before
//! that writer has ended. A row that another transaction has locked counts as changed.

use super::batching::{BatchItem, by_place, column};
use super::condition_columns::{ConditionColumns, SentConditions};
use super::measure::SqlOperation::{self, Update};
use super::measure::SqlTable::Resources;
use super::row::links;
use super::{Db, Error};
use hyperfleet_domain::audit::{Action, Change, ChangeOrigin};
use hyperfleet_domain::{Deletion, JsonText, Resource, ResourceState};

/// A resource to be saved. The answer is true if it was saved.
pub(super) struct SaveResource {
    /// The revision that the row must have; unset if the transaction holds its lock.
    revision: Option<i64>,
    /// Whether it is not saved if it has dependents.
    must_have_no_dependents: bool,
    /// As it is to be. Its conditions are sent as `conditions`.
    state: ResourceState,
    /// Unset if it stays the same.
    spec: Option<JsonText>,
    labels: Option<JsonText>,
    updated_by: Option<String>,
    condition_place: Option<String>,
    conditions: JsonText,
    computed: ConditionColumns,
    are_conditions_replaced: bool,
    /// Its references, if they are written after it; unset if they are stored already.
    links: Option<JsonText>,
    /// What the audit trail says of it; unset if nothing.
    audited: Option<Change>,
    origin: ChangeOrigin,
}

impl SaveResource {
    /// A patch, unless the row has changed since `before`. References are replaced separately, after it.
    pub(super) fn patched(before: &Resource, after: &Resource, origin: &ChangeOrigin) -> Self {
        let change = Change::of(Action::Patch, Some(before.state.generation), &after.state);
        Self {
            spec: (before.spec != after.spec).then(|| JsonText::of(&after.spec)),
            labels: (before.labels != after.labels).then(|| JsonText::of(&after.labels)),
            updated_by: Some(after.updated_by.clone()),
            are_conditions_replaced: before.state.conditions != after.state.conditions,
            links: Some(links(&after.references)),
            ..Self::changed(&before.state, &after.state, &change, origin)
        }
    }

    /// A deletion, unless the row has changed since `before` or has dependents.
    ///
    /// The row is locked before dependents are searched: `has_dependents` sees everything that was committed until
    /// then. A transaction that adds a child or a reference holds a lock of this row, if only that of the foreign key,
    /// which lets no `FOR UPDATE` pass.
    pub(super) fn deleted(
        before: &ResourceState,
        after: &ResourceState,
        change: &Change,
        origin: &ChangeOrigin,
    ) -> Self {
        Self {
            must_have_no_dependents: true,
            ..Self::changed(before, after, change, origin)
        }
    }

    fn changed(
        before: &ResourceState,
        after: &ResourceState,
        change: &Change,
        origin: &ChangeOrigin,
    ) -> Self {
        let sent = SentConditions::of(&before.conditions, &after.conditions);
        Self {
            revision: Some(before.revision),
            condition_place: sent.place,
            ..Self::of(after, JsonText::of(&sent.value.0), Some(change), origin)
        }
    }

    /// A state of a row that the transaction has locked.
    pub(super) fn locked(
        state: &ResourceState,
        change: Option<&Change>,
        origin: &ChangeOrigin,
    ) -> Self {
        Self::of(state, JsonText::of(&state.conditions), change, origin)
    }

    /// A state of a row that the transaction has locked, with what is sent of its conditions.
    fn of(
        state: &ResourceState,
        conditions: JsonText,
        change: Option<&Change>,
        origin: &ChangeOrigin,
    ) -> Self {
        Self {
            revision: None,
            must_have_no_dependents: false,
            spec: None,
            labels: None,
            updated_by: None,
            condition_place: None,
            conditions,
            computed: ConditionColumns::of(&state.conditions),
            are_conditions_replaced: true,
            links: None,
            audited: change.cloned(),
            state: state.clone(),
            origin: origin.clone(),
        }
    }

    fn deletion(&self) -> Option<&Deletion> {
        self.state.deletion.as_ref()
    }
}

impl BatchItem for SaveResource {
    type Answer = bool;

    const OPERATION: SqlOperation = Update(Resources);
    const DOING: &'static str = "save a resource";

    fn bytes(&self) -> usize {
        let texts = [
            self.spec.as_ref(),
            self.labels.as_ref(),
            Some(&self.conditions),
        ];
        let texts = texts.into_iter().flatten();
        texts.map(|text| text.as_str().len()).sum()
    }

    async fn answer(db: &mut Db<'_>, items: &[Self]) -> Result<Vec<bool>, Error> {
        let result = sqlx::query_scalar!(
            r#"WITH locked AS (
                   SELECT ids.id, ids.place
                   FROM unnest($1::uuid[]) WITH ORDINALITY ids (id, place)
                   JOIN resources r ON r.id = ids.id AND r.revision = coalesce(($2::bigint[])[ids.place], r.revision)
                   FOR UPDATE OF r SKIP LOCKED
               ), changed AS (
                   UPDATE resources r
                   SET spec = coalesce(($9::text[])[place]::jsonb, r.spec),
                       labels = coalesce(($10::text[])[place]::jsonb, r.labels),
                       generation = ($4::int[])[place], updated_at = ($5::timestamptz[])[place],
                       updated_by = coalesce(($6::text[])[place], r.updated_by),
                       deleted_at = ($7::timestamptz[])[place], deleted_by = ($8::text[])[place],
                       conditions = CASE WHEN ($11::text[])[place] IS NULL THEN ($12::text[])[place]::jsonb
                                         ELSE jsonb_set(r.conditions, ARRAY[($11::text[])[place]],
                                                        ($12::text[])[place]::jsonb) END,
                       condition_states = ($13::text[])[place]::text[],
                       reconciled_updated_at = ($14::timestamptz[])[place],
                       reconciled_transition_at = ($15::timestamptz[])[place],
                       last_known_generation = ($16::bigint[])[place],
                       computed_revision = r.revision + 1, revision = r.revision + 1
                   FROM locked w
                   WHERE r.id = w.id AND r.revision = coalesce(($2::bigint[])[place], r.revision)
                     AND CASE WHEN ($3::bool[])[place] THEN NOT has_dependents(w.id) ELSE true END
                   RETURNING r.*, w.place
               ), recorded AS (
                   INSERT INTO changes (at, resource_id, revision, generation, kind, action, actor, request_id,
                                        conditions, owner_id, created_at, updated_at, deleted_at, name, created_by,
                                        updated_by, deleted_by, tenancy, labels, links, spec)
                   SELECT ($19::timestamptz[])[place], id, revision, generation, kind, 'modified', ($20::text[])[place],
                          ($21::text[])[place], CASE WHEN ($17::bool[])[place] THEN conditions END, owner_id, created_at,
                          updated_at, deleted_at, name, created_by, updated_by, deleted_by, tenancy, labels,
                          coalesce(($18::text[])[place]::jsonb, links_of(id)),
                          CASE WHEN ($9::text[])[place] IS NOT NULL THEN spec END
                   FROM changed
               ), logged AS (
                   INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name,
                                              generation_before, generation_after, tenancy)
                   SELECT ($19::timestamptz[])[place], ($20::text[])[place], ($21::text[])[place], ($22::text[])[place],
                          kind, id, name, ($23::int[])[place], generation, tenancy
                   FROM changed
                   WHERE ($22::text[])[place] IS NOT NULL ORDER BY place
               )
               SELECT place AS "place!" FROM changed"#,
            &column(items, |i| i.state.id.as_uuid()),
            &column(items, |i| i.revision) as _,
            &column(items, |i| i.must_have_no_dependents),
            &column(items, |i| i.state.generation),
            &column(items, |i| i.state.updated_at),
            &column(items, |i| i.updated_by.as_deref()) as _,
            &column(items, |i| Some(i.deletion()?.at)) as _,
            &column(items, |i| Some(i.deletion()?.by.as_str())) as _,
            &column(items, |i| i.spec.as_ref().map(JsonText::as_str)) as _,
            &column(items, |i| i.labels.as_ref().map(JsonText::as_str)) as _,
            &column(items, |i| i.condition_place.as_deref()) as _,
            &column(items, |i| i.conditions.as_str()) as _,
            &column(items, |i| i.computed.states_literal()),
            &column(items, |i| i.computed.reconciled_updated_at) as _,
            &column(items, |i| i.computed.reconciled_transition_at) as _,
            &column(items, |i| i.computed.last_known_generation) as _,
            &column(items, |i| i.are_conditions_replaced),
            &column(items, |i| i.links.as_ref().map(JsonText::as_str)) as _,
            &column(items, |i| i.origin.at),
            &column(items, |i| i.origin.actor.as_str()) as _,
            &column(items, |i| i.origin.request_id.as_str()) as _,
            &column(items, |i| Some(i.audited.as_ref()?.action.into_str())) as _,
            &column(items, |i| i.audited.as_ref()?.generation_before) as _,
        )
        .fetch_all(db.connection())
        .await;
        let places = db.complete(result, Self::OPERATION, Self::DOING)?;
        let saved = by_place(items.len(), places.into_iter().map(|place| (place, ())));
        Ok(saved.iter().map(Option::is_some).collect())
    }
}
