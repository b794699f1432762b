-- The trail by its old name, for connections of a program from before tenants. No version that
-- needs it was ever released: the first release has the table alone.
DROP VIEW audit;
