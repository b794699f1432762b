-- Indexes for searches and metrics, which otherwise read every resource of a kind.
CREATE INDEX resources_reconciled_updated ON resources (kind, reconciled_updated_at);
CREATE INDEX resources_reconciled_transition ON resources (kind, reconciled_transition_at);
CREATE INDEX resources_last_known_generation ON resources (kind, last_known_generation);
-- For equality and for `like 'prefix%'`, whatever the collation of the database.
CREATE INDEX resources_name ON resources (kind, name text_pattern_ops);
-- Labels and condition states share one index, because a poller searches for both (`Reconciled` is False, shard
-- is 3). With an index each, PostgreSQL collects all rows of the shard before it intersects them with the few
-- that are not reconciled; within one index it skips from one match to the next. It also makes reports cheaper.
-- Every search reads the entire pending list of the index, so the list is limited to 256 kB instead of 4 MB (figures:
-- docs/internals/performance.md).
CREATE INDEX resources_labels_and_states ON resources
    USING gin (labels jsonb_path_ops, condition_states) WITH (gin_pending_list_limit = 256);
-- Resources that are not reconciled, and since when: metrics count them every few seconds with an index-only scan.
-- A report on a reconciled resource does not change it, and it has no column that is not in another index: an
-- update that changed no index without it (HOT) changes none with it.
CREATE INDEX resources_unreconciled ON resources (kind, reconciled_transition_at) INCLUDE (deleted_at)
    WHERE condition_states @> ARRAY['Reconciled=False'];
