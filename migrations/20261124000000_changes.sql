-- Every change of a resource that a watcher is shown, in an order that readers can follow
-- (docs/decisions/0074-watch.md).
--
-- A row has what the change replaced, not what it made: the state after a change is that of the resource now, less
-- everything that later changes replaced. So nothing is stored twice, and retention may remove any number of the
-- oldest rows.
CREATE TABLE changes (
    -- Drawn while the change holds the lock of the resource: changes of one resource are in the order of their commits.
    position         bigint      GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME changes_position) PRIMARY KEY,
    -- Whether a snapshot shows the change.
    transaction      bigint      NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    at               timestamptz NOT NULL,
    resource_id      uuid        NOT NULL,
    kind             text        NOT NULL,
    action           text        NOT NULL CHECK (action IN ('created', 'modified', 'removed')),
    -- Unset for a removed resource.
    generation_after integer,
    -- Unset for a writer other than the service.
    actor            text,
    request_id       text,

    -- The values before. Unset for a new resource.
    revision         bigint,
    -- These five together, or none of them.
    generation       integer,
    updated_at       timestamptz,
    updated_by       text,
    deleted_at       timestamptz,
    deleted_by       text,
    -- These five together, or none of them: of a removed resource, and for a writer other than the service.
    created_at       timestamptz,
    created_by       text,
    name             text,
    owner_id         uuid,
    tenancy          jsonb,
    -- Each alone.
    spec             jsonb,
    labels           jsonb,
    links            jsonb,
    conditions       jsonb
);
CREATE INDEX changes_resource ON changes (resource_id, position);
-- Few changes but reports have these values: a search for one among many reports reads no other row.
CREATE INDEX changes_desired ON changes (resource_id, position) WHERE generation IS NOT NULL;

-- Up to which position retention has removed changes; at most one row.
CREATE TABLE changes_removed (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    upto     bigint  NOT NULL
);

-- What a reader needs in order to know which positions can no longer appear.
--
-- `drawn` is read first, and `writers` after it. A transaction locks the table before it draws a position, and gives the
-- lock back only when its end is visible. So a transaction that draws a position up to `drawn` is in `writers`, or has ended: when
-- all of `writers` have ended, every snapshot shows all changes up to `drawn` that will ever be.
CREATE FUNCTION changes_end(OUT era bigint, OUT drawn bigint, OUT removed bigint, OUT writers text[])
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    drawn := (SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM changes_position s);
    writers := ARRAY(
        SELECT DISTINCT l.virtualtransaction FROM pg_locks l
        WHERE l.locktype = 'relation' AND l.relation = 'changes'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()));
    era := audit_era();
    removed := coalesce((SELECT r.upto FROM changes_removed r), 0);
END $$;

-- Compresses the values as those of resources.
SELECT compress_with_lz4('changes', 'conditions', 'spec');
