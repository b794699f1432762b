-- A tenant's trail, newest first. By itself, because it reads the whole trail: meanwhile it can be read,
-- too, though nothing can be added.
CREATE INDEX audit_tenant ON audit_entries (tenancy, sequence DESC) WHERE tenancy <> '{}';
