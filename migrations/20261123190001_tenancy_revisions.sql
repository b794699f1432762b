-- Answers show the tenancy of a resource, and their tag its revision: an operator who assigns resources to another tenant
-- by hand raises both. No program updates `tenancy`, so the trigger costs requests nothing; `import` raises the revision
-- itself.
CREATE FUNCTION raise_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.revision := greatest(NEW.revision, OLD.revision + 1);
    RETURN NEW;
END $$;
CREATE TRIGGER resources_given_revision BEFORE UPDATE OF tenancy ON resources
    FOR EACH ROW WHEN (OLD.tenancy <> NEW.tenancy) EXECUTE FUNCTION raise_revision();
