"""What is measured: each operation through the API, and its SQL alone beside it."""

import json
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property

from processes import cpu_seconds
from servers import ROOT, Failed
from statements import Statements

REQUESTS = ROOT / "bench/requests.lua"


@dataclass(frozen=True)
class Supply:
    """Resources that requests use up: made before each measurement."""

    script: str
    # Of each second of a measurement: more than any server uses up.
    per_second: int


@dataclass(frozen=True)
class Operation:
    """One kind of request."""

    key: str
    title: str
    # What every request must add to, as SQL, and how much requests add at least; None for reads.
    counter: str | None = None
    share: float = 1.0
    supply: Supply | None = None

    @property
    def has_ceiling(self):
        """Whether pgbench has a script for it: none knows which rows are left."""
        return self.supply is None


REVISIONS = "SELECT sum(revision) FROM resources"
DELETED = "SELECT count(deleted_at) FROM resources"
# What each cluster of parents.sql owns.
CHILDREN = 100
OPERATIONS = [
    Operation("get", "GET by id", REVISIONS, 0),
    Operation("first", "list, page 1 of 20"),
    Operation("page400", "list, page 400 of 20"),
    Operation("discarded", "PUT status, discarded", REVISIONS, 0),
    Operation("accepted", "PUT status, accepted", REVISIONS),
    Operation("mix", "10 GET : 5 PUT status", REVISIONS, 1 / 3),
    Operation("patch", "PATCH", "SELECT sum(generation) FROM resources"),
    Operation("post", "POST", "SELECT sum(count) FROM resource_counts"),
    Operation("delete", "DELETE, no children", DELETED, 1, Supply("childless.sql", 6000)),
    Operation("cascade", f"DELETE, {CHILDREN} node pools", DELETED, 1 + CHILDREN, Supply("parents.sql", 200)),
    Operation("finalize", "PUT status that completes a deletion", "SELECT -count(*) FROM resources", 1,
              Supply("finalizing.sql", 4000)),
]


@dataclass
class Measured:
    """One operation at one number of connections, and its ceiling."""

    operation: str
    connections: int
    requests: int
    rate: float
    p50_ms: float
    p99_ms: float
    errors: int
    # CPU time per request, in microseconds: steadier than rates on a machine with other work.
    server_us: float
    database_us: float
    wal_bytes: float
    # None where PostgreSQL has no pg_stat_statements.
    statements: float | None
    ceiling: float | None = None

    @property
    def ratio(self):
        return self.rate / self.ceiling if self.ceiling else None


class Bench:
    """Measures the operations on one fleet."""

    def __init__(self, fleet, seconds):
        self.fleet, self.seconds = fleet, seconds
        self.runs = 0
        self.supplied = 0
        if fleet.postgres.counts_statements:
            fleet.postgres.psql(fleet.database, sql="CREATE EXTENSION IF NOT EXISTS pg_stat_statements")

    @cached_property
    def scripts(self):
        return Statements().scripts()

    @cached_property
    def values(self):
        return self.fleet.template_values()

    def pair(self, operation, connections):
        """The operation, and its ceiling right after it."""
        measured = self.wrk(operation, connections)
        if operation.has_ceiling:
            measured.ceiling = self.pgbench(operation, connections)
        return measured

    def wrk(self, operation, connections):
        """The operation through the API. Besides statuses, the database must show the work."""
        self.runs += 1
        first, last = self.supply(operation.supply) if operation.supply else (0, 0)
        before = self.fleet.count(operation.counter) if operation.counter else 0
        arguments = [operation.key, self.fleet.clusters, self.runs, first, last]
        counted = self.counters()
        result = wrk(self.fleet, connections, self.seconds, arguments)
        wal_bytes, statements = [(after - earlier) / max(result["requests"], 1)
                                 for after, earlier in zip(self.counters(), counted)]
        errors = result["not_2xx"] + result["socket"]
        if operation.counter:
            done = self.fleet.count(operation.counter) - before
            least = int((result["requests"] - 2 * connections) * operation.share)
            most = (result["requests"] + 2 * connections) * max(operation.share, 1) if operation.share else 0
            if not (least <= done or errors) or done > most:
                raise Failed(f"{operation.title}: {result['requests']} requests, but the database shows {done} changes")
        rate = result["requests"] / result["seconds"]
        return Measured(operation.title, connections, result["requests"], rate, result["p50_ms"], result["p99_ms"],
                        errors, result["server_us"], result["database_us"], wal_bytes,
                        statements if self.fleet.postgres.counts_statements else None)

    def supply(self, supply):
        """Makes what the requests of one measurement use up; the numbers of the first and the last."""
        first = self.supplied + 1
        self.supplied += supply.per_second * self.seconds
        variables = {"from": first, "to": self.supplied, "children": CHILDREN}
        settings = [part for name, value in variables.items() for part in ("-v", f"{name}={value}")]
        self.fleet.postgres.psql(self.fleet.database, *settings, "-f", str(ROOT / "bench" / supply.script))
        return first, self.supplied

    def counters(self):
        """Bytes of WAL, and statements, that the database has written and run so far."""
        postgres = self.fleet.postgres
        calls = "(SELECT sum(calls) FROM pg_stat_statements)" if postgres.counts_statements else "0"
        row = postgres.psql(self.fleet.database, sql=f"SELECT pg_current_wal_insert_lsn() - '0/0', {calls}")
        return [int(value) for value in row.split("|")]

    def pgbench(self, operation, connections):
        """The operation's SQL, prepared, on as many connections."""
        self.runs += 1
        postgres = self.fleet.postgres
        folder = postgres.folder / "scripts"
        folder.mkdir(exist_ok=True)
        command = [postgres.bin / "pgbench", "-n", "-M", "prepared", "-h", postgres.socket, "-U", "postgres",
                   "-c", connections, "-j", min(2, connections), "-T", self.seconds,
                   "-D", f"clusters={self.fleet.clusters}", "-D", f"run={self.runs}", "-D", "seq=0", "-D", "offset=7980"]
        for name, value in self.values.items():
            command += ["-D", f"{name}={value}"]
        for number, (script, weight) in enumerate(self.scripts[operation.key]):
            file = folder / f"{operation.key}-{number}.sql"
            file.write_text(script)
            command += ["-f", f"{file}@{weight}"]
        output = run([*command, self.fleet.database])
        rate = re.search(r"^tps = ([\d.]+)", output, re.MULTILINE)
        failed = re.search(r"^number of failed transactions: (\d+)", output, re.MULTILINE)
        if not rate or (failed and int(failed[1])):
            raise Failed(f"pgbench failed:\n{output}")
        return float(rate[1])


def wrk(fleet, connections, seconds, arguments):
    """What requests.lua says at the end, and the processor time of a request on either side."""
    command = ["wrk", "-t", "1", "-c", connections, "-d", f"{seconds}s", "--timeout", "10s", "-s", REQUESTS,
               fleet.api.base, "--", *arguments]
    processes = {"server_us": fleet.api.process.pid, "database_us": fleet.postgres.pid}
    before = {name: cpu_seconds(pid) for name, pid in processes.items()}
    output = run(command)
    used = {name: cpu_seconds(pid) - before[name] for name, pid in processes.items()}
    found = re.search(r"^RESULT (.*)$", output, re.MULTILINE)
    if not found:
        raise Failed(f"wrk did not finish:\n{output}")
    result = json.loads(found[1])
    return result | {name: seconds * 1e6 / max(result["requests"], 1) for name, seconds in used.items()}


def run(command):
    """Runs a program to its end; its output, errors included."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Failed(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout
