"""Writers that write down what was acknowledged, and the check that all of it is there afterwards.

What was not acknowledged may be there or not; what nobody asked for must not be.
"""

import asyncio
import datetime
import random
from collections import Counter

from client import Client, Lost, Refused

BASE = "/api/hyperfleet/v1"


class Record:
    """What is known of one resource. A value in `maybe` was sent, and nobody knows what became of it."""

    def __init__(self, name, kind, owner=None):
        self.name, self.kind, self.owner = name, kind, owner
        self.id = None
        self.value, self.maybe = "0", set()
        self.is_deleted = self.maybe_deleted = False


class Ledger:
    def __init__(self, addresses, seed=1):
        self.addresses, self.random = addresses, random.Random(seed)
        self.records = []
        self.acknowledged = Counter()
        self.statuses = Counter()
        self.wrong = []
        self.stopping = False
        # Names of one run are not those of another.
        self.runs = 0
        # What each writer left behind, to be changed in a later run: nobody else changes it.
        self.left = {}
        # Whether adapters' clocks may differ from the service's by more than it takes.
        self.clocks_differ = False

    async def run(self, writers=8, acknowledged_max=None):
        """Writes until stopped, or until so many writes are acknowledged."""
        self.acknowledged_max, self.stopping = acknowledged_max, False
        self.runs += 1
        await asyncio.gather(*(self._writer(number) for number in range(writers)))

    @property
    def count(self):
        return sum(self.acknowledged.values())

    def _is_over(self):
        enough = self.acknowledged_max is not None and self.count >= self.acknowledged_max
        return self.stopping or enough

    async def _writer(self, number):
        shuffled = list(self.addresses)
        self.random.shuffle(shuffled)
        client = Client(*shuffled)
        round_ = 0
        while not self._is_over():
            round_ += 1
            # The next life at the next address: every instance has its share at any time.
            client.close()
            left = self.left.setdefault(number, [])
            if round_ % 2 and left and not left[0].name.startswith(f"r{self.runs}w"):
                cluster = left.pop(0)
                await self._patch(client, f"{BASE}/clusters/{cluster.id}", cluster, f"later-{self.runs}")
                await self._delete(client, f"{BASE}/clusters/{cluster.id}", cluster)
            cluster = await self._life(client, f"r{self.runs}w{number}-{round_}")
            if cluster and not (cluster.is_deleted or cluster.maybe_deleted):
                left.append(cluster)
        client.close()

    async def _life(self, client, name):
        """A cluster with two node pools: created, changed, reported on, and half of them deleted. Gives it."""
        cluster = await self._create(client, Record(name, "Cluster"))
        if cluster is None:
            return None
        path = f"{BASE}/clusters/{cluster.id}"
        for pool in ("a", "b"):
            await self._create(client, Record(f"{name}-{pool}", "NodePool", cluster))
        for value in ("1", "2", "3"):
            await self._patch(client, path, cluster, value)
        await self._report(client, path)
        if self.random.random() < 0.5:
            await self._delete(client, path, cluster)
        return cluster

    async def _send(self, client, what, expected, method, path, body=None):
        """An answer, or None where there is none to rely on. Anything but success and an honest 503 is wrong."""
        try:
            answer = await client.call(method, path, body)
        except Refused:
            self.statuses["refused"] += 1
            await asyncio.sleep(0.05)
            return False
        except Lost:
            self.statuses["lost"] += 1
            await asyncio.sleep(0.02)
            return None
        self.statuses[answer.status] += 1
        if answer.status == expected:
            self.acknowledged[what] += 1
            return answer
        if answer.status == 503 and int(answer.headers.get("retry-after", 0)) > 0:
            await asyncio.sleep(0.05)
            return None
        # After an answer that was lost the same request may meet its own effect.
        if answer.status in (404, 409):
            return None
        self.wrong.append(f"{method} {path}: {answer.status} {answer.body[:200]!r}")
        return None

    async def _create(self, client, record):
        path = f"{BASE}/clusters" if record.owner is None else f"{BASE}/clusters/{record.owner.id}/nodepools"
        body = {"kind": record.kind, "name": record.name, "labels": {"n": "0"}, "spec": {"x": 1}}
        self.records.append(record)
        answer = await self._send(client, "create", 201, "POST", path, body)
        if not answer:
            return None
        record.id = answer.json()["id"]
        return record

    async def _patch(self, client, path, record, value):
        answer = await self._send(client, "patch", 200, "PATCH", path, {"labels": {"n": value}})
        if answer:
            record.value, record.maybe = value, set()
        else:
            record.maybe.add(value)

    async def _report(self, client, path):
        conditions = [{"type": kind, "status": "True"} for kind in ("Applied", "Available", "Health")]
        now = datetime.datetime.now(datetime.UTC).isoformat()
        report = {"adapter": "dns", "observed_generation": 1, "observed_time": now, "conditions": conditions}
        try:
            answer = await client.call("PUT", path + "/statuses", report)
        except Lost:
            self.statuses["lost"] += 1
            return
        self.statuses[answer.status] += 1
        if answer.status == 201:
            self.acknowledged["report"] += 1
        elif answer.status not in (204, 404, 503) and not (answer.status == 400 and self.clocks_differ):
            self.wrong.append(f"PUT {path}/statuses: {answer.status} {answer.body[:200]!r}")

    async def _delete(self, client, path, record):
        answer = await self._send(client, "delete", 202, "DELETE", path)
        if answer:
            record.is_deleted = True
        else:
            record.maybe_deleted = True

    def check(self, postgres, database):
        """Every fault that the database shows against the ledger."""
        faults = list(self.wrong)
        rows = postgres.psql(database, sql="""
            SELECT name, kind, id, labels ->> 'n', deleted_at IS NOT NULL FROM resources""")
        stored = {}
        for row in rows.splitlines():
            name, kind, id_, value, deleted = row.split("|")
            if (kind, name) in stored:
                faults.append(f"{kind} {name} is there twice")
            stored[kind, name] = (id_, value, deleted == "t")
        for record in self.records:
            found = stored.pop((record.kind, record.name), None)
            faults += self._faults_of(record, found)
        faults += [f"{kind} {name} was invented" for kind, name in stored]
        halves = postgres.psql(database, sql="""
            SELECT count(*) FROM resources c JOIN resources p ON p.id = c.owner_id
            WHERE p.deleted_at IS NOT NULL AND c.deleted_at IS NULL""")
        if halves != "0":
            faults.append(f"{halves} children of deleted clusters are active: half a cascade")
        orphans = postgres.psql(database, sql="""
            SELECT count(*) FROM resources c WHERE owner_id IS NOT NULL
            AND NOT EXISTS (SELECT FROM resources p WHERE p.id = c.owner_id)""")
        if orphans != "0":
            faults.append(f"{orphans} resources have lost their owner")
        unaudited = postgres.psql(database, sql="""
            SELECT count(*) FROM resources r
            WHERE (SELECT count(*) FROM audit_entries a WHERE a.resource_id = r.id AND a.action = 'create') <> 1""")
        if unaudited != "0":
            faults.append(f"{unaudited} resources have not just one audit entry of their creation")
        return faults

    @staticmethod
    def _faults_of(record, found):
        what = f"{record.kind} {record.name}"
        owner = record.owner
        may_be_gone = record.is_deleted or record.maybe_deleted or (
            owner is not None and (owner.is_deleted or owner.maybe_deleted))
        if found is None:
            return [] if record.id is None or may_be_gone else [f"{what} was acknowledged and is lost"]
        id_, value, deleted = found
        faults = []
        if record.id is not None and id_ != record.id:
            faults.append(f"{what} has another id than was acknowledged")
        if record.id is not None and value not in {record.value, *record.maybe}:
            faults.append(f"{what} has n={value}, acknowledged was {record.value}, possible {record.maybe}")
        if record.is_deleted and not deleted:
            faults.append(f"{what} was deleted, and is active")
        if deleted and not may_be_gone:
            faults.append(f"{what} is deleted, and nobody asked for it")
        return faults
