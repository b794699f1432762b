-- For reading the trail after a position. Writers wait while it is built (docs/operations/upgrades.md).
CREATE INDEX audit_order ON audit_entries (era, commit_order, sequence);
