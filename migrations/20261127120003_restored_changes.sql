-- As before, but not for the rows of a data-only restore, whose changes are restored as rows: their positions would clash with
-- those of changes that are recorded again. pg_dump and pg_restore empty the search_path of their session.
CREATE OR REPLACE TRIGGER resources_added_by_others AFTER INSERT ON resources
    REFERENCING NEW TABLE AS touched FOR EACH STATEMENT
    WHEN (current_setting('search_path') <> '') EXECUTE FUNCTION record_added();
