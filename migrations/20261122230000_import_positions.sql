-- The latest state of the source of which anything is here, even of an interrupted import: an older state lacks some of
-- it, which does not mean that the source has removed it. NULL if an earlier version has imported.
ALTER TABLE imports
    -- The number of the source's table of resources.
    ADD COLUMN latest_table       bigint,
    ADD COLUMN latest_transaction bigint,
    ADD COLUMN latest_timeline    integer,
    -- Bytes of the source's write-ahead log.
    ADD COLUMN latest_wal_bytes   bigint;
