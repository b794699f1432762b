-- Large values are compressed with lz4 where the server has it, which takes less of its processor than pglz, its default
-- (docs/performance.md, "What a write costs"). Rows that are there stay as they are until they are written again.
CREATE FUNCTION compress_with_lz4(target regclass, VARIADIC columns name[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE (SELECT format('ALTER TABLE %s ', target)
                    || string_agg(format('ALTER COLUMN %I SET COMPRESSION lz4', c), ', ') FROM unnest(columns) c);
EXCEPTION WHEN feature_not_supported THEN
    NULL; -- a server that was built without it
END $$;
SELECT compress_with_lz4('resources', 'conditions', 'spec');
