-- Positions in the audit trail: the order (era, commit_order, sequence), in which no entry ever appears before an
-- existing one (docs/internals/database.md, "The order of the audit trail").

-- The era of new entries: 0, or the time (Unix) of the last restore. Transaction numbers of the state before it mean nothing.
-- A function, so that both the default of the column and the statements of readers have it as a constant in their plans.
CREATE FUNCTION audit_era() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT 0::bigint';

-- For an operator who has restored the database: later entries come after every entry that a reader may have seen. Waits
-- for writers, because no entry of the earlier era may appear any more.
CREATE FUNCTION begin_audit_era() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    begun bigint;
BEGIN
    LOCK TABLE audit_entries IN SHARE ROW EXCLUSIVE MODE;
    begun := greatest(audit_era() + 1, extract(epoch FROM clock_timestamp())::bigint);
    EXECUTE format('CREATE OR REPLACE FUNCTION audit_era() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS %L',
                   format('SELECT %s::bigint', begun));
    RETURN begun;
END $$;

-- Existing entries get 0 without being written again, and so come first, by their sequence. Every INSERT evaluates the
-- new defaults, even those of the previous release, which does not name the columns.
--
-- `commit_order` is the number of the entry's transaction, or of the latest transaction that had ended when the
-- statement began, whichever is higher: the first may be lower than that of an earlier change of the same resource,
-- because a transaction has its number before it waits for locks.
ALTER TABLE audit_entries
    ADD COLUMN era          bigint NOT NULL DEFAULT 0,
    ADD COLUMN commit_order bigint NOT NULL DEFAULT 0,
    ALTER COLUMN era          SET DEFAULT audit_era(),
    ALTER COLUMN commit_order SET DEFAULT greatest(pg_current_xact_id()::text::bigint,
                                                   pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1);
