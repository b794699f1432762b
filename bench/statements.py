"""pgbench scripts that run what the service runs.

The statements come from .sqlx, where the build keeps every checked statement of
crates/storage/src: they cannot drift from the code. Only the two whose text is built at run
time, a read and a list, are written out here.
"""

import json
import re

from servers import ROOT, Failed

SEEDED_ID = "('01990000-0000-7000-8000-' || lpad(:n::text, 12, '0'))::uuid"
NEW_ID = "('01990001-' || lpad(:run::text, 4, '0') || '-7000-80' || lpad(:client_id::text, 2, '0') || '-' || lpad(:seq::text, 12, '0'))::uuid"
NEW_NAME = "'ceiling-' || :run::text || '-' || :client_id::text || '-' || :seq::text"

TYPES = {"Uuid": "uuid", "Text": "text", "Int4": "int4", "Int8": "int8", "Timestamptz": "timestamptz", "Jsonb": "jsonb", "Bool": "bool"}

LINKS = "(SELECT jsonb_agg(jsonb_build_object('type', ref_type, 'kind', target_kind, 'id', target_id)) FROM resource_references WHERE source_id = r.id) AS links"
# crates/storage/src/reader.rs, one resource.
GET = f"SELECT r.*, {LINKS} FROM unnest(ARRAY[{SEEDED_ID}]) WITH ORDINALITY ids (id, place) JOIN resources r ON r.id = ids.id WHERE r.kind = :kind"

# crates/storage/src/list.rs, page of one kind without filter, newest first.
LIST = """SELECT total.count AS total, r.*, """ + LINKS + """
FROM (SELECT (SELECT coalesce(sum(count), 0)::bigint FROM resource_counts WHERE kind = 'Cluster')
             - (SELECT count(*) FROM resources WHERE deleted_at IS NOT NULL AND kind = 'Cluster') AS count) total
LEFT JOIN (SELECT id FROM resources WHERE true AND kind = 'Cluster' AND deleted_at IS NULL
           ORDER BY created_at DESC, id DESC LIMIT 21 {offset}) page ON true
LEFT JOIN resources r ON r.id = page.id ORDER BY r.created_at DESC, r.id DESC;
"""

# Changes send the one condition that differs, with its place.
FIRST_CONDITION = ["'0'", "((:conditions)::jsonb -> 0)::text"]
# The columns that follow from conditions.
COMPUTED = [":condition_states", ":reconciled_updated_at", ":reconciled_transition_at", ":last_known_generation"]

PICK = "\\set n random(1, :clusters)\n"
COUNT = "\\set seq :seq + 1\n"


def bind(argument, kind):
    """A parameter of this type with this value; an array has it as its only element, as in a change that comes alone."""
    element = kind.removesuffix("Array")
    value = f"ARRAY[({argument})::{TYPES[element]}]" if element != kind and argument != "'{}'" else f"({argument})"
    return f"({value})::{TYPES[element]}{'[]' if element != kind else ''}"


class Statements:
    """The checked statements, by a piece of text that only one of them has."""

    def __init__(self):
        files = sorted((ROOT / ".sqlx").glob("query-*.json"))
        self.queries = [json.loads(file.read_text()) for file in files]

    def find(self, *pieces, arguments):
        """The statement with `arguments` (SQL, pgbench variables allowed) in place of $1, $2, …"""
        fits = lambda query: all(piece in " ".join(query["query"].split()) for piece in pieces)
        found = [query for query in self.queries if fits(query)]
        if len(found) != 1:
            raise Failed(f".sqlx has {len(found)} statements with {pieces}: bring bench/statements.py up to date")
        types = found[0]["describe"]["parameters"]["Left"]
        if len(types) != len(arguments):
            raise Failed(f"the statement with {pieces} has {len(types)} arguments: bring bench/statements.py up to date")
        bound = [bind(argument, kind) for argument, kind in zip(arguments, types)]
        sql = re.sub(r"\$(\d+)", lambda match: bound[int(match[1]) - 1], found[0]["query"])
        # sqlx reads nullability and types from the aliases; pgbench makes variables of them.
        return re.sub(r'AS "(\w+)[!?]?(?:: [^"]*)?"', r"AS \1", sql)

    def scripts(self):
        """Operation → pgbench scripts, each with its weight. `\\gset` keeps what was read, so that
        writes are guarded by the revision as they are in the service."""
        wanted = lambda resource: ["'{}'", "1", "1", SEEDED_ID, ":kind", "NULL", "NULL", resource, resource, resource, "false", "1", "1"]
        read = self.find("SELECT w.place", 'NULL::jsonb AS "spec: _"', arguments=wanted("false"))
        read_resource = self.find("SELECT w.place", 'CASE WHEN w.resource THEN r.spec END', arguments=wanted("true"))
        save_report = self.find("UPDATE resources r SET conditions", "INSERT INTO adapter_reports", "INSERT INTO changes", arguments=[
            SEEDED_ID, ":row_revision", *FIRST_CONDITION, *COMPUTED, "'hypershift'", "1", "now()", "now()",
            ":report_conditions", ":report_data", ":report_metadata", "now()", ":actor", ":request_id"])
        save_resource = self.find("UPDATE resources r SET spec", arguments=[
            SEEDED_ID, ":row_revision", "false", ":row_generation + 1", "now()", ":actor", "NULL", "NULL", ":spec", ":labels",
            *FIRST_CONDITION, *COMPUTED, "true", "NULL", "now()", ":actor", ":request_id", "'patch'", ":row_generation"])
        insert = self.find("INSERT INTO resources (id, owner_id", "WITH wanted", arguments=[
            NEW_ID, "NULL", "NULL", "NULL", ":kind", NEW_NAME, ":spec", ":labels", ":tenancy", ":conditions", "1", "now()",
            ":actor", ":request_id", *COMPUTED, "NULL", "'create'"])
        get = f"{PICK}{GET};\n"
        report = f"{PICK}{read} \\gset row_\n{save_report};\n"
        return {
            "get": [(get, 1)],
            "first": [(LIST.format(offset=""), 1)],
            "page400": [(LIST.format(offset="OFFSET :offset"), 1)],
            "discarded": [(f"{PICK}{read};\n", 1)],
            "accepted": [(report, 1)],
            "mix": [(get, 10), (report, 5)],
            "patch": [(f"{PICK}{read_resource} \\gset row_\n{save_resource};\n", 1)],
            "post": [(f"{COUNT}{insert};\n", 1)],
        }
