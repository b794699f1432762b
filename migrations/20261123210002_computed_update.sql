-- The same for changes. The condition is short, because PostgreSQL reads it again for every statement.
CREATE TRIGGER resources_changed_without_columns BEFORE UPDATE ON resources
    FOR EACH ROW WHEN (NEW.computed_revision = OLD.computed_revision) EXECUTE FUNCTION compute_condition_columns();
