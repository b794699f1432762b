-- One index for labels and states of conditions, instead of one for each: a poller's question is for
-- both (`Reconciled` is False, shard is 3). With two indexes all rows of the shard were noted before
-- those that are not reconciled could be picked from them, which takes longer the larger the fleet
-- is; within one index PostgreSQL skips from one of the few to the next. It also costs a report less.
--
-- New entries wait in a list that every search reads from end to end: 256 kB of it, not 4 MB, cost a
-- search a fraction of a millisecond and a report next to nothing (docs/performance.md).
--
-- What it replaces goes in the next migration: making one index and dropping another asks for two
-- locks one after the other, and would wait for writers that wait for the first.
CREATE INDEX resources_labels_and_states ON resources
    USING gin (labels jsonb_path_ops, condition_states) WITH (gin_pending_list_limit = 256);
