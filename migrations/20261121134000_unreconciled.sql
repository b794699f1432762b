-- What is not reconciled, and since when: counted every few seconds for the metrics, from this index
-- alone. It holds the rows that wait for something, which are few.
--
-- A report on a row that is not reconciled adds an entry here, as it does to the other indexes: an eighth
-- more to write (WAL). One on a row that is reconciled adds nothing. No column is indexed that was not before,
-- so whatever changed no index (HOT) still changes none.
CREATE INDEX resources_unreconciled ON resources (kind, reconciled_transition_at) INCLUDE (deleted_at)
    WHERE condition_states @> ARRAY['Reconciled=False'];
