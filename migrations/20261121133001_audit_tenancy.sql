-- Whose resource an entry of the trail is about, which it outlives.
--
-- Connections of the program before this one may have prepared `SELECT * FROM audit`, which must not get
-- another column under their hands: for them, until a later migration, `audit` is a view of what they
-- know. What they write belongs to nobody.
--
-- Reads no row, and so keeps nobody waiting: existing rows pass the check, their tenancy is `{}`.
ALTER TABLE audit RENAME TO audit_entries;
ALTER TABLE audit_entries ADD tenancy jsonb NOT NULL DEFAULT '{}';
ALTER TABLE audit_entries ADD CONSTRAINT audit_tenancy_is_object CHECK (jsonb_typeof(tenancy) = 'object') NOT VALID;
CREATE VIEW audit AS
    SELECT sequence, at, resource_id, generation_before, generation_after, action, actor, request_id, kind,
           name, reason
    FROM audit_entries;
