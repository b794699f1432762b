-- Before the columns become plain, so that none is ever left empty. Until then PostgreSQL overwrites what it gives.
CREATE TRIGGER resources_made_without_columns BEFORE INSERT ON resources
    FOR EACH ROW WHEN (NEW.computed_revision = 0) EXECUTE FUNCTION compute_condition_columns();
