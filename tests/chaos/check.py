"""Compares the database with a ledger: what was acknowledged is there, as a whole, and nothing else is."""

import datetime
import json
from collections import defaultdict

# Each row as one line of JSON.
ROWS = """
    SELECT row_to_json(r) FROM (
        SELECT id, kind, name, generation, labels ->> 'n' AS value, deleted_at IS NOT NULL AS is_deleted,
               conditions FROM resources) r"""
REPORTS = """
    SELECT row_to_json(r) FROM (
        SELECT resource_id, adapter, observed_generation, reported_at, conditions FROM adapter_reports) r"""
AUDIT = """
    SELECT row_to_json(a) FROM (
        SELECT resource_id, action, count(*) AS entries FROM audit_entries GROUP BY resource_id, action) a"""

# What must be nought, and what it is if not.
NOUGHT = (
    ("children of deleted clusters are active: half a cascade", """
        SELECT count(*) FROM resources c JOIN resources p ON p.id = c.owner_id
        WHERE p.deleted_at IS NOT NULL AND c.deleted_at IS NULL"""),
    ("resources have lost their owner", """
        SELECT count(*) FROM resources c WHERE owner_id IS NOT NULL
        AND NOT EXISTS (SELECT FROM resources p WHERE p.id = c.owner_id)"""),
    ("reports are on resources that are not there", """
        SELECT count(*) FROM adapter_reports a
        WHERE NOT EXISTS (SELECT FROM resources r WHERE r.id = a.resource_id)"""),
    ("kinds have another total than rows", """
        SELECT count(*) FROM (SELECT kind, count(*) AS n FROM resources GROUP BY kind) r
        FULL JOIN (SELECT kind, sum(count) AS n FROM resource_counts GROUP BY kind) c USING (kind)
        WHERE coalesce(r.n, 0) <> coalesce(c.n, 0)"""),
)


class Stored:
    """What the database holds."""

    def __init__(self, postgres, database):
        read = lambda sql: [json.loads(line) for line in postgres.psql(database, sql=sql).splitlines()]
        self.rows = read(ROWS)
        self.reports, self.audit = defaultdict(dict), defaultdict(lambda: defaultdict(int))
        for report in read(REPORTS):
            self.reports[report["resource_id"]][report["adapter"]] = report
        for entry in read(AUDIT):
            self.audit[entry["resource_id"]][entry["action"]] = entry["entries"]
        self.broken = [f"{count} {what}" for what, sql in NOUGHT if (count := postgres.psql(database, sql=sql)) != "0"]


def faults(ledger, postgres, database):
    """Everything that the database shows against the ledger, a line each."""
    stored = Stored(postgres, database)
    found = list(ledger.wrong) + stored.broken
    rows = {}
    for row in stored.rows:
        if (row["kind"], row["name"]) in rows:
            found.append(f"{row['kind']} {row['name']} is there twice")
        rows[row["kind"], row["name"]] = row
    for record in ledger.records:
        row = rows.pop((record.kind, record.name), None)
        faults_of = _of_missing(record, stored) if row is None else _of_row(record, row, stored)
        found += [f"{record.kind} {record.name} {fault}" for fault in faults_of]
    return found + [f"{kind} {name} was invented" for kind, name in rows]


def _of_missing(record, stored):
    if not record.exists:
        return
    if not record.may_be_gone():
        yield "was acknowledged and is lost"
        return
    entries = stored.audit[record.id]
    if (entries["create"], entries["delete"], entries["hard_delete"]) != (1, 1, 1):
        yield f"is gone as it should be, and the audit trail says {dict(entries)}"


def _of_row(record, row, stored):
    if not record.exists and not record.maybe_exists:
        yield "was never asked for, and is there"
    if record.id is not None and row["id"] != record.id:
        yield "has another id than was acknowledged"
    if record.must_be_gone():
        yield "is still there, though nothing kept it"
    if row["value"] not in {record.value, *record.maybe}:
        yield f"has n={row['value']}, acknowledged was {record.value}, possible {sorted(record.maybe)}"
    if record.must_be_finalizing() and not row["is_deleted"]:
        yield "was deleted, and is active"
    if row["is_deleted"] and not record.may_be_finalizing():
        yield "is deleted, and nobody asked for it"
    yield from _of_audit(record, row, stored.audit[row["id"]])
    yield from _of_reports(record, row, stored.reports[row["id"]])


def _of_audit(record, row, entries):
    """One entry for each change, and a generation for each but the creation."""
    if (entries["create"], entries["delete"], entries["hard_delete"]) != (1, int(row["is_deleted"]), 0):
        yield f"has the audit entries {dict(entries)}, deleted: {row['is_deleted']}"
    if not record.patches <= entries["patch"] <= record.patches + record.patches_maybe:
        yield (f"has {entries['patch']} audit entries of patches, acknowledged were {record.patches}, "
               f"possible {record.patches_maybe} more")
    if row["generation"] != 1 + entries["patch"] + entries["delete"]:
        yield f"is at generation {row['generation']} after the changes {dict(entries)}"


def _of_reports(record, row, reports):
    for adapter, said in record.said.items():
        report = reports.get(adapter)
        if report is None:
            if said.accepted:
                yield f"has lost the report of {adapter} that was acknowledged"
        elif not any(_is_stored_as(other, report) for other in said.may_be() if other):
            yield (f"has a report of {adapter} on generation {report['observed_generation']} that was neither "
                   f"acknowledged last nor possible: {report['conditions']}")
    for adapter, report in reports.items():
        if adapter not in record.said:
            yield f"has a report of {adapter} that nobody sent"
        # Report and conditions are written together (docs/reference/api.md, "Conditions").
        shown = [c for c in row["conditions"] if c["type"] == f"{adapter.capitalize()}Successful"]
        if [c["observed_generation"] for c in shown] != [report["observed_generation"]]:
            yield f"shows {shown} for the report of {adapter} on generation {report['observed_generation']}"


def _is_stored_as(report, stored):
    at = datetime.datetime.fromisoformat(stored["reported_at"])
    return report.is_told_by(stored["observed_generation"], stored["conditions"]) and report.at in (None, at)
