"""Searches and deep pages: each in few and in many clusters by turns, so that both meet the same noise."""

import time
from dataclasses import dataclass
from functools import cache
from typing import Callable
from urllib.error import HTTPError
from urllib.parse import quote

from fleet import BASE, Fleet
from operations import wrk
from report import aligned
from servers import Api, Failed

# What the larger fleet is compared with; also the fewest clusters that seed.sql spreads its marks over.
FEW_CLUSTERS = 10000
PAGE_ROWS = 20
# Most that the median may take in the larger fleet, as a multiple of that in the smaller one.
AIM = 3.0
# Rounds of each pair: the one with the middle ratio is shown.
ROUNDS_MIN = 3
CONNECTIONS_MAX = 16


@dataclass(frozen=True)
class Search:
    """A page that clients ask for. What it finds must be as much in each fleet (see seed.sql)."""

    key: str
    title: str
    # The query string; it may depend on the fleet.
    query: Callable[[Fleet], str]
    # The total that every answer has.
    total: Callable[[Fleet], int]
    has_aim: bool = True


def found(key, text, count):
    return Search(key, f"{key}: `{text}`", lambda _: f"search={quote(text)}", lambda _: count)


@cache
def before_last(fleet):
    """The query that goes on where the last whole page but one ends."""
    _, body = fleet.api.call("GET", f"{BASE}?pageSize={PAGE_ROWS}&page={fleet.rows // PAGE_ROWS - 1}")
    return f"continue={body['continue']}"


all_rows = lambda fleet: fleet.rows
SEARCHES = [
    Search("first-page", "page 1, no search", lambda _: "page=1", all_rows),
    found("poller", "status.conditions.Reconciled='False' and labels.shard='3'", 100),
    found("stale", "status.conditions.Reconciled.last_updated_time < '2021-01-01T00:00:00Z'", 100),
    found("label", "labels.cohort='early'", 100),
    found("prefix", "name like 'rare-%'", 100),
    found("name", "name='bench-1'", 1),
    Search("last-page", "last whole page, by its number", lambda fleet: f"page={fleet.rows // PAGE_ROWS}", all_rows, has_aim=False),
    Search("continued", "the same page, by `continue`", before_last, all_rows),
]
# How the deepest page may compare with the first one of the same fleet.
AIM_CONTINUED = 1.5


@dataclass
class Compared:
    """One search at one number of connections: what wrk measured in each fleet, few clusters first."""

    search: Search
    connections: int
    totals: list[int]
    measured: list[dict]
    errors: int
    indexes: list[str]

    @property
    def ratio(self):
        """How the medians compare; None where there is one fleet only."""
        return self.measured[-1]["p50_ms"] / self.measured[0]["p50_ms"] if len(self.measured) > 1 else None


def compare(search, fleets, connections, seconds, rounds):
    """The round with the middle ratio; errors of all."""
    indexes = sorted({index for fleet in fleets for index in indexes_used(search, fleet)})
    runs = []
    for _ in range(rounds):
        measured = [measure(search, fleet, connections, seconds) for fleet in fleets]
        totals = [search.total(fleet) for fleet in fleets]
        runs.append(Compared(search, connections, totals, measured, 0, indexes))
    runs.sort(key=lambda run: run.ratio or run.measured[0]["p50_ms"])
    middle = runs[(len(runs) - 1) // 2]
    middle.errors = sum(one["errors"] for run in runs for one in run.measured)
    return middle


def measure(search, fleet, connections, seconds):
    """What wrk says of one search. An answer with another total, or with less than a page, is an error."""
    total = search.total(fleet)
    arguments = ["page", fleet.clusters, 0, path(search, fleet), total, min(PAGE_ROWS, total)]
    result = wrk(fleet, connections, seconds, arguments)
    return result | {"errors": result["not_2xx"] + result["socket"] + result["wrong"]}


def path(search, fleet):
    return f"{BASE}?pageSize={PAGE_ROWS}&{search.query(fleet)}"


@cache
def indexes_used(search, fleet):
    """The indexes that answer a search, by PostgreSQL's own count. Fails where the table is read whole.

    A server of its own asks, and is ended: only then does PostgreSQL surely tell all of its scans.
    """
    before = scans(fleet)
    api = Api(fleet.postgres, fleet.database, fleet.api.binary, fleet.api.arguments)
    try:
        api.serve()
        _, body = api.call("GET", path(search, fleet))
    except HTTPError as answer:
        raise Failed(f"{search.title} was answered with {answer.code}:\n{answer.read().decode()}") from answer
    finally:
        api.stop()
    if body["total"] != search.total(fleet):
        raise Failed(f"{search.title} finds {body['total']} clusters; it should be {search.total(fleet)}")
    deadline = time.monotonic() + 10
    while (after := scans(fleet)) == before:
        if time.monotonic() > deadline:
            raise Failed(f"{search.title}: PostgreSQL counts no scan of it")
        time.sleep(0.1)
    if after["resources"] != before["resources"]:
        raise Failed(f"{search.title} reads the table of {fleet.clusters:,} clusters whole")
    used = {name for name in after if after[name] != before.get(name)}
    # The rows of the page are read by their ids, whatever found them.
    return used - {"resources_pkey"}


def scans(fleet):
    """How often the table was read whole, under its own name, and how often each of its indexes."""
    rows = fleet.postgres.psql(fleet.database, sql="""
        SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = 'resources'
        UNION ALL SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE relname = 'resources'""")
    return {name: int(count) for name, count in (row.split("|") for row in rows.splitlines())}


def table(results, clusters):
    """Aligned, and a Markdown table as it is."""
    head = ["operation", "connections", "total"]
    head += [f"p50 ms of {count:,}" for count in clusters] + [f"p99 ms of {count:,}" for count in clusters]
    head += ["p50 ratio"] * (len(clusters) > 1) + ["errors", "index"]
    rows = [head]
    for r in results:
        totals = dict.fromkeys(f"{total:,}" for total in r.totals)
        row = [r.search.title, str(r.connections), ", ".join(totals)]
        row += [f"{one[figure]:.2f}" for figure in ("p50_ms", "p99_ms") for one in r.measured]
        row += [f"{r.ratio:.2f}"] if r.ratio else []
        rows.append([*row, str(r.errors), ", ".join(r.indexes)])
    return aligned(rows)


def verdicts(results, clusters):
    """Each search that has an aim, and whether this run reached it."""
    lines = []
    for r in results:
        if r.ratio and r.search.has_aim:
            word = "reached" if r.ratio <= AIM else "missed"
            lines.append(f"{r.search.key} at {r.connections} connections: p50 {r.ratio:.2f} times that of "
                         f"{clusters[0]:,} clusters; the aim is {AIM:.0f} at most: {word}")
    medians = {(r.search.key, r.connections): r.measured[-1]["p50_ms"] for r in results}
    for (key, connections), median in medians.items():
        if key == "continued" and (first := medians.get(("first-page", connections))):
            word = "reached" if median / first <= AIM_CONTINUED else "missed"
            lines.append(f"the last page by `continue` of {clusters[-1]:,} clusters at {connections} connections: p50 "
                         f"{median / first:.2f} times that of page 1; the aim is {AIM_CONTINUED} at most: {word}")
    return lines


def figures(results, clusters):
    """As JSON has it."""
    return [{"operation": r.search.key, "connections": r.connections, "indexes": r.indexes, "p50_ratio": r.ratio,
             "fleets": [{"clusters": count, "total": total, **one}
                        for count, total, one in zip(clusters, r.totals, r.measured)]} for r in results]
