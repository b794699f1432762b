"""What is measured: each operation through the API, and its SQL alone beside it."""

import json
import re
import subprocess
from dataclasses import dataclass

from servers import ROOT, Failed, cpu_seconds
from statements import Statements

REQUESTS = ROOT / "bench/requests.lua"
BASE = "/api/hyperfleet/v1/clusters"
ADAPTERS = ["validation", "dns", "pullsecret", "hypershift"]


@dataclass(frozen=True)
class Operation:
    """One kind of request."""

    key: str
    title: str
    # What every request must add to, as SQL, and how much requests add at least; None for reads.
    counter: str | None = None
    share: float = 1.0


REVISIONS = "SELECT sum(revision) FROM resources"
OPERATIONS = [
    Operation("get", "GET by id", REVISIONS, 0),
    Operation("first", "list, page 1 of 20"),
    Operation("page400", "list, page 400 of 20"),
    Operation("discarded", "PUT status, discarded", REVISIONS, 0),
    Operation("accepted", "PUT status, accepted", REVISIONS),
    Operation("mix", "10 GET : 5 PUT status", REVISIONS, 1 / 3),
    Operation("patch", "PATCH", "SELECT sum(generation) FROM resources"),
    Operation("post", "POST", "SELECT sum(count) FROM resource_counts"),
]


@dataclass
class Measured:
    """One operation at one number of connections, and its ceiling."""

    operation: str
    connections: int
    rate: float
    p50_ms: float
    p99_ms: float
    errors: int
    # CPU time per request, in microseconds: steadier than rates on a machine with other work.
    server_us: float
    database_us: float
    ceiling: float | None = None

    @property
    def ratio(self):
        return self.rate / self.ceiling if self.ceiling else None


def template():
    """A cluster such as a client would create, about 1 KB once its conditions are there."""
    spec = {
        "platform": {"type": "gcp", "gcp": {"project": "bench-project-0001", "region": "europe-west4",
                                            "network": "bench-network", "subnet": "bench-subnet"}},
        "release": {"channel": "stable", "version": "4.20.3", "image": "quay.io/bench/release:0"},
        "networking": {"pod_cidr": "10.128.0.0/14", "service_cidr": "172.30.0.0/16", "host_prefix": 23},
        "dns": {"base_domain": "bench.example.com"},
        "replicas": 3,
    }
    return {"kind": "Cluster", "name": "bench-template", "labels": {"environment": "bench", "owner": "team-a"}, "spec": spec}


def report(adapter):
    condition = lambda kind, reason, message: {"type": kind, "status": "True", "reason": reason, "message": message}
    return {
        "adapter": adapter,
        "observed_generation": 1,
        "conditions": [
            condition("Available", "Ready", "Everything asked for is there and answers"),
            condition("Applied", "Applied", "All manifests are applied"),
            condition("Health", "Healthy", "The adapter is well"),
        ],
        "data": {"namespace": "clusters-bench", "manifests": 12, "console": "https://console.bench.example.com"},
        "metadata": {"attempt": 1, "job_name": "adapter-job", "job_namespace": "adapters", "duration": "4s"},
    }


class Fleet:
    """One database full of clusters, with the API on it."""

    def __init__(self, api, clusters, has_reports=True):
        self.api, self.clusters, self.has_reports = api, clusters, has_reports
        self.postgres, self.database = api.postgres, api.database

    def seed(self):
        """Makes one cluster through the API, and the rest of it in SQL."""
        status, made = self.api.call("POST", BASE, template())
        if status != 201:
            raise Failed(f"the template was answered with {status}")
        for adapter in ADAPTERS:
            status, _ = self.api.call("PUT", f"{BASE}/{made['id']}/statuses", report(adapter))
            if status != 201:
                raise Failed(f"the template's report was answered with {status}")
        arguments = ["-v", "from=1", "-v", f"to={self.clusters}", "-v", f"reports={self.has_reports}".lower(),
                     "-f", str(ROOT / "bench/seed.sql")]
        self.postgres.psql(self.database, *arguments)

    def template_values(self):
        """What pgbench writes: the template's own columns."""
        row = self.postgres.psql(self.database, sql="""
            SELECT json_build_object('kind', r.kind, 'actor', r.created_by,
                'spec', r.spec::text, 'labels', r.labels::text, 'tenancy', r.tenancy::text, 'conditions', r.conditions::text,
                'report_conditions', a.conditions::text, 'report_data', a.data::text, 'report_metadata', a.metadata::text,
                'request_id', t.request_id)
            FROM resources r JOIN adapter_reports a ON a.resource_id = r.id AND a.adapter = 'hypershift'
            JOIN audit t ON t.resource_id = r.id WHERE r.name = 'bench-template'""")
        return json.loads(row)

    def count(self, sql):
        return int(self.postgres.psql(self.database, sql=sql))


class Bench:
    """Measures the operations on one fleet."""

    def __init__(self, fleet, seconds):
        self.fleet, self.seconds = fleet, seconds
        self.scripts = Statements().scripts()
        self.values = fleet.template_values()
        self.runs = 0

    def pair(self, operation, connections):
        """The operation, and its ceiling right after it."""
        measured = self.wrk(operation, connections)
        measured.ceiling = self.pgbench(operation, connections)
        return measured

    def wrk(self, operation, connections):
        """The operation through the API. Besides statuses, the database must show the work."""
        self.runs += 1
        before = self.fleet.count(operation.counter) if operation.counter else 0
        command = ["wrk", "-t", "1", "-c", connections, "-d", f"{self.seconds}s", "--timeout", "10s", "-s", REQUESTS,
                   self.fleet.api.base, "--", operation.key, self.fleet.clusters, self.runs]
        processes = [self.fleet.api.process, self.fleet.postgres.process]
        used = [cpu_seconds(process) for process in processes]
        output = run(command)
        used = [cpu_seconds(process) - start for process, start in zip(processes, used)]
        found = re.search(r"^RESULT (.*)$", output, re.MULTILINE)
        if not found:
            raise Failed(f"wrk did not finish:\n{output}")
        result = json.loads(found[1])
        errors = result["not_2xx"] + result["socket"]
        if operation.counter:
            done = self.fleet.count(operation.counter) - before
            least = int(result["requests"] * operation.share) - 2 * connections
            most = (result["requests"] + 2 * connections) if operation.share else 0
            if not (least <= done or errors) or done > most:
                raise Failed(f"{operation.title}: {result['requests']} requests, but the database shows {done} changes")
        server_us, database_us = (seconds * 1e6 / max(result["requests"], 1) for seconds in used)
        return Measured(operation.title, connections, result["requests"] / result["seconds"],
                        result["p50_ms"], result["p99_ms"], errors, server_us, database_us)

    def pgbench(self, operation, connections):
        """The operation's SQL, prepared, on as many connections."""
        self.runs += 1
        postgres = self.fleet.postgres
        folder = postgres.folder / "scripts"
        folder.mkdir(exist_ok=True)
        command = [postgres.bin / "pgbench", "-n", "-M", "prepared", "-h", postgres.folder, "-U", "postgres",
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


def run(command):
    """Runs a program to its end; its output, errors included."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Failed(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout
