-- What is not reconciled, and since when: counted every few seconds for the metrics, from this index
-- alone. It holds the rows that wait for something, which are few. It costs other writes nothing: a
-- report that leaves its row out of every index (HOT) still does, because all columns here are in
-- other indexes, too; one that moves a row adds an entry only while the row is not reconciled.
CREATE INDEX resources_unreconciled ON resources (kind, reconciled_transition_at) INCLUDE (deleted_at)
    WHERE condition_states @> ARRAY['Reconciled=False'];
