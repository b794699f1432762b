"""Writers that live the lives of clusters."""

import asyncio
import datetime
import random

from client import BASE, Client, Lost, Refused
from records import REQUIRED, Record, Report

# How often a request with an unknown result is sent.
TRIES_MAX = 2


class Told:
    """An answer that can be relied on, or None; and whether the request may have been carried out without one."""

    def __init__(self, answer, is_unsure):
        self.answer, self.is_unsure = answer, is_unsure


class Writer:
    """One of several that write at a time, each for itself."""

    def __init__(self, ledger, number):
        self.ledger, self.name = ledger, f"r{ledger.runs}w{number}"
        self.random = random.Random(f"writer {ledger.seed} {self.name}")
        addresses = list(ledger.addresses)
        self.random.shuffle(addresses)
        self.client = Client(*addresses)
        self.left = ledger.left.setdefault(number, [])
        self.keys = 0

    async def run(self):
        """Lives until the ledger is stopped."""
        earlier, self.left[:] = list(self.left), []
        lives = 0
        while not self.ledger.stopping:
            lives += 1
            # The next life at the next address: every instance has its share at any time.
            self.client.close()
            if lives % 2 and earlier:
                cluster = earlier.pop(0)
                await self._patch(cluster, f"later-{self.ledger.runs}")
                await self._end(cluster)
            cluster = await self._life(f"{self.name}-{lives}")
            if cluster and not cluster.may_be_finalizing():
                self.left.append(cluster)
        self.left += earlier
        self.client.close()

    async def _life(self, name):
        """A cluster with two node pools: created, changed, reported on, and half of them ended. Gives it."""
        cluster = await self._create(Record(name, "Cluster"))
        if cluster is None:
            return None
        for pool in ("a", "b"):
            await self._create(Record(f"{name}-{pool}", "NodePool", cluster))
        for value in ("1", "2", "3"):
            await self._patch(cluster, value)
        await self._patch_another_state(cluster)
        await self._report_on(cluster)
        if self.random.random() < 0.5:
            await self._end(cluster)
        return cluster

    async def _end(self, cluster):
        """Deletes a cluster; of half of them the adapters then say that they are done, in any order."""
        await self._delete(cluster)
        if not cluster.is_deleted or not cluster.is_certain() or self.random.random() < 0.5:
            return
        words = [(record, adapter) for record in (cluster, *cluster.children) for adapter in REQUIRED[record.kind]]
        self.random.shuffle(words)
        for record, adapter in words:
            await self._report(record, self._said(adapter, record.generation, "Finalized"))

    def _safely(self, record=None):
        """The headers of a safe change, as docs/guides/safe-changes.md has them: half of the changes have a key, and
        half of these demand the generation that was answered last, if it is certain."""
        if self.random.random() < 0.5:
            return ()
        self.keys += 1
        headers = [("Idempotency-Key", f"{self.ledger.seed}-{self.name}-{self.keys}")]
        if record and record.is_certain() and self.random.random() < 0.5:
            headers.append(("If-Match", f'"g{record.generation}"'))
        return headers

    async def _send(self, what, method, path, body, expected, after_loss=(), headers=()):
        """Sends a request, and perhaps once more if its result is unknown. Right is what is expected; what
        only an earlier effect of the same request explains (`after_loss`), if there may be one; and an honest 503.
        With a key a request that is sent again is answered as if it were the first, or 409 while that is in progress."""
        has_key = any(name == "Idempotency-Key" for name, _ in headers)
        is_unsure = False
        for _ in range(self.random.randint(1, TRIES_MAX)):
            try:
                answer = await self.client.call(method, BASE + path, body, headers)
            except Refused:
                self.ledger.statuses["refused"] += 1
                await asyncio.sleep(0.05)
                continue
            except Lost:
                self.ledger.statuses["lost"] += 1
                is_unsure = True
                await asyncio.sleep(0.02)
                continue
            self.ledger.statuses[answer.status] += 1
            if "idempotency-replayed" in answer.headers:
                self.ledger.replayed += 1
                if not (has_key and is_unsure):
                    self.ledger.wrong.append(f"{method} {path}: the answer of another request: {answer.body[:200]!r}")
            if has_key and is_unsure and answer.status == 409 and b"CNF-004" in answer.body:
                await asyncio.sleep(0.05)
                continue
            if answer.status in expected or is_unsure and not has_key and answer.status in after_loss:
                if answer.status in (200, 201, 202):
                    self.ledger.acknowledge(what, self.client.address)
                return Told(answer, is_unsure)
            retry_after = answer.headers.get("retry-after", "")
            if answer.status != 503 or not retry_after.isdigit() or int(retry_after) < 1:
                what_of = f", Retry-After {retry_after or 'missing'}" if answer.status == 503 else ""
                self.ledger.wrong.append(
                    f"{method} {path}: {answer.status}{what_of}, expected {sorted(expected)}: {answer.body[:200]!r}")
                return Told(None, True)
            # It was not acknowledged, and may have been carried out all the same (docs/reference/errors.md).
            is_unsure = True
            await asyncio.sleep(0.05)
        return Told(None, is_unsure)

    async def _create(self, record):
        path = "/clusters" if record.owner is None else f"{record.owner.path}/nodepools"
        body = {"kind": record.kind, "name": record.name, "labels": {"n": "0"}, "spec": {"x": 1}}
        self.ledger.records.append(record)
        # The name is nobody else's: a conflict is with the first of two equal requests.
        told = await self._send("create", "POST", path, body, {201}, after_loss={409}, headers=self._safely())
        record.exists, record.maybe_exists = told.answer is not None, told.is_unsure
        if told.answer is None or told.answer.status != 201:
            return None
        record.id = told.answer.json()["id"]
        return record

    async def _patch(self, record, value):
        headers = self._safely(record)
        told = await self._send("patch", "PATCH", record.path, {"labels": {"n": value}}, {200}, headers=headers)
        if told.answer:
            record.value, record.maybe = value, set()
            record.patches += 1
            record.generation = told.answer.json()["generation"]
        elif told.is_unsure:
            record.maybe.add(value)
            record.patches_maybe += 1

    async def _patch_another_state(self, record):
        """A patch that must be refused, whatever happened: the generation that it demands is not there yet."""
        headers = [("If-Match", f'"g{record.generation + 1000}"')]
        await self._send("patch", "PATCH", record.path, {"labels": {"n": "refused"}}, {412}, headers=headers)

    async def _delete(self, record):
        told = await self._send("delete", "DELETE", record.path, None, {202}, headers=self._safely(record))
        if told.answer:
            record.is_deleted = True
            record.generation = told.answer.json()["generation"]
            for child in record.children:
                child.generation += 1
        elif told.is_unsure:
            record.maybe_deleted = True

    async def _report_on(self, cluster):
        """Reports that must be taken, and some that must be discarded."""
        at = cluster.generation
        await self._report(cluster, self._said("dns", 1))
        if at > 1:
            await self._report(cluster, self._said("dns", at))
            await self._report(cluster, self._said("dns", 1))
        await self._report(cluster, self._said("dns", at + 1000))
        if self.ledger.clocks_differ:
            here = self._said("dns", at)
            here.at = datetime.datetime.now(datetime.UTC)
            await self._report(cluster, here, expected={400})

    def _said(self, adapter, generation, *more):
        """A report that is like no other."""
        kinds = ("Applied", "Available", "Health", *more)
        mark = f"R{self.random.getrandbits(48):x}"
        conditions = [{"type": kind, "status": "True", "reason": mark} for kind in kinds]
        at = None if self.ledger.clocks_differ else datetime.datetime.now(datetime.UTC)
        return Report(adapter, generation, at, conditions)

    async def _report(self, record, report, expected=None):
        said = record.of(report.adapter)
        expected = expected or self._expected(record, said, report)
        # The report that completes a deletion takes with it what it was about.
        before = record.may_be_gone()
        said.maybe.append(report)
        after_loss = {404} if record.may_be_gone() else set()
        expected = expected | ({404} if before else set())
        path = f"{record.path}/statuses"
        told = await self._send("report", "PUT", path, report.body(), expected, after_loss)
        if told.answer and told.answer.status == 404:
            record.is_gone = True
        if told.answer is None and told.is_unsure or record.is_gone:
            return
        said.maybe.remove(report)
        if told.answer and told.answer.status == 201:
            said.accept(report)
            body = told.answer.json()
            is_told = report.is_told_by(body["observed_generation"], body["conditions"])
            if body["adapter"] != report.adapter or not is_told:
                self.ledger.wrong.append(f"PUT {path}: 201 for another report: {told.answer.body[:300]!r}")

    @staticmethod
    def _expected(record, said, report):
        """201 or 204, or both where it depends on an unknown result (docs/reference/api.md, "Reports")."""
        if report.generation > record.generation + len(record.maybe) + record.maybe_deleted:
            return {204}
        others = [other.generation if other else 0 for other in said.may_be()]
        is_taken = {report.generation >= other for other in others}
        return {201 if taken else 204 for taken in is_taken}
