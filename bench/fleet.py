"""Clusters to measure with: one made through the API, and many more like it."""

import json
import os
from concurrent.futures import ThreadPoolExecutor, as_completed

from progress import Progress
from servers import ROOT, Failed

BASE = "/api/hyperfleet/v1/clusters"
ADAPTERS = ["validation", "dns", "pullsecret", "hypershift"]
# Clusters of one transaction of the seed: large enough to be quick, small enough to show progress.
BATCH_ROWS = 5000


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
    """One database full of clusters, with the API on it. :attr:`rows` counts the template, too."""

    def __init__(self, api, clusters, has_reports=True):
        self.api, self.clusters, self.has_reports = api, clusters, has_reports
        self.postgres, self.database = api.postgres, api.database
        self.rows = clusters + 1

    def seed(self):
        """Makes one cluster with all its reports through the API, and the rest of it in SQL."""
        self._create_template()
        self.multiply()
        self.postgres.psql(self.database, sql="VACUUM ANALYZE; CHECKPOINT;")

    def _create_template(self):
        status, made = self.api.call("POST", BASE, template())
        if status != 201:
            raise Failed(f"the template was answered with {status}")
        for adapter in ADAPTERS:
            status, _ = self.api.call("PUT", f"{BASE}/{made['id']}/statuses", report(adapter))
            if status != 201:
                raise Failed(f"the template's report was answered with {status}")

    def multiply(self):
        """Batch by batch, several at once: each a transaction of its own, with every index in place."""
        progress = Progress(f"Seeding {self.clusters:,} clusters", self.clusters)
        starts = range(1, self.clusters + 1, BATCH_ROWS)
        done = 0
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            try:
                for batch in as_completed([workers.submit(self._batch, start) for start in starts]):
                    done += batch.result()
                    progress.update(done)
            except BaseException:
                # After a failure, work that has not begun is cancelled.
                workers.shutdown(wait=False, cancel_futures=True)
                raise

    def _batch(self, start):
        end = min(start + BATCH_ROWS - 1, self.clusters)
        variables = {"from": start, "to": end, "clusters": self.clusters, "reports": str(self.has_reports).lower()}
        settings = [part for name, value in variables.items() for part in ("-v", f"{name}={value}")]
        self.postgres.psql(self.database, *settings, "-f", str(ROOT / "bench/seed.sql"))
        return end - start + 1

    def template_values(self):
        """What pgbench writes: the template's own columns."""
        row = self.postgres.psql(self.database, sql="""
            SELECT json_build_object('kind', r.kind, 'actor', r.created_by,
                'spec', r.spec::text, 'labels', r.labels::text, 'tenancy', r.tenancy::text, 'conditions', r.conditions::text,
                'report_conditions', a.conditions::text, 'report_data', a.data::text, 'report_metadata', a.metadata::text,
                'condition_states', r.condition_states::text, 'reconciled_updated_at', r.reconciled_updated_at,
                'reconciled_transition_at', r.reconciled_transition_at, 'last_known_generation', r.last_known_generation,
                'request_id', t.request_id)
            FROM resources r JOIN adapter_reports a ON a.resource_id = r.id AND a.adapter = 'hypershift'
            JOIN audit_entries t ON t.resource_id = r.id WHERE r.name = 'bench-template'""")
        return json.loads(row)

    def count(self, sql):
        return int(self.postgres.psql(self.database, sql=sql))
