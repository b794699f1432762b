-- The trail from a position on. Writers wait while it is built (docs/deployment.md).
CREATE INDEX audit_order ON audit_entries (era, commit_order, sequence);
