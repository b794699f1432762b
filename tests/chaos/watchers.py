"""Watchers beside the load: each writes down every event that it is sent. `watched.py` compares them afterwards."""

import asyncio
import json
import random
import time
from collections import Counter
from urllib.parse import quote

import watched
from client import BASE, Client, Lost
from outcome import statuses

# A watch is never silent for longer: a bookmark comes after 15 s without a change (docs/guides/watch.md).
SILENCE_SECONDS_MAX = 30
# How long a watcher may take until it has what was acknowledged last.
END_SECONDS_MAX = 30
# Between two times that a watcher breaks off on its own.
BREAKS_SECONDS = (0.1, 1.5)
# The last cluster of all, and its node pool: a watcher that was sent one has everything before it.
LAST = "watched-last"
SEARCH = quote("labels.n = '2'")
SPARSE = "kind,name,generation,labels,deleted_time,status.conditions"


class Gone(Exception):
    """The service has said that changes after the position are not stored any more."""


class Watcher:
    """One watch, continued wherever its connection ends. `shows` says of an object whether the watched list has it."""

    def __init__(self, name, query, shows, chance, *addresses, **options):
        self.name, self.query, self.shows, self.chance = name, query, shows, chance
        self.addresses, self.turn = addresses, chance.randrange(len(addresses))
        self.breaks = options.get("breaks", False)
        self.is_stream = options.get("is_stream", False)
        # Begins with the list.
        self.has_list = options.get("has_list", False)
        # Of the list, and up to its end: these events have no position.
        self.listed = []
        self.events = []
        # Where the list was complete.
        self.complete = None
        self.position = None
        self.ended = Counter()
        self.wrong = []
        self.transport, self.broke_off = None, False
        self.began, self.done = asyncio.Event(), asyncio.Event()

    async def run(self):
        """Watches until the last cluster is there."""
        breaking = asyncio.create_task(self._break_off()) if self.breaks else None
        try:
            while not self.done.is_set():
                await self._watch_once()
        except Gone as gone:
            self.wrong.append(f"was refused its position {self.position}: {gone}")
        finally:
            if breaking:
                breaking.cancel()

    async def _break_off(self):
        """Breaks off at any moment, also within an event."""
        await self.began.wait()
        while True:
            await asyncio.sleep(self.chance.uniform(*BREAKS_SECONDS))
            if self.transport:
                self.broke_off = True
                self.transport.abort()

    async def _watch_once(self):
        """One connection, to its end."""
        try:
            reader, writer = await asyncio.open_connection(*self._address(), limit=1 << 24)
        except OSError:
            self.ended["refused"] += 1
            await asyncio.sleep(0.05)
            return
        self.transport, self.broke_off = writer.transport, False
        try:
            await self._watch(reader, writer)
        except TimeoutError:
            self.wrong.append(f"was sent nothing for {SILENCE_SECONDS_MAX} s after {self.position}")
        except (OSError, EOFError) as error:
            self.ended["broke off" if self.broke_off else type(error).__name__] += 1
        finally:
            self.transport = None
            writer.transport.abort()

    def _address(self):
        self.turn += 1
        return self.addresses[self.turn % len(self.addresses)]

    async def _watch(self, reader, writer):
        writer.write(self._request().encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SILENCE_SECONDS_MAX)
        status = int(head.split(b" ", 2)[1])
        if status == 410:
            raise Gone(head.decode("latin-1").splitlines()[0])
        if status != 200:
            self.ended[status] += 1
            if status != 503 or b"\r\nretry-after: " not in head.lower():
                answer = await asyncio.wait_for(reader.read(1000), SILENCE_SECONDS_MAX)
                self.wrong.append(f"was answered {status}: {head + answer!r}")
                # One such answer is enough.
                self.done.set()
            await asyncio.sleep(0.1)
            return
        if self.has_list and self.complete is None:
            # A list that was broken off begins again.
            self.listed.clear()
        rest = b""
        while not self.done.is_set():
            async with asyncio.timeout(SILENCE_SECONDS_MAX):
                size = int(await reader.readuntil(b"\r\n"), 16)
                piece = await reader.readexactly(size + 2)
            if not size:
                self.ended["by the service"] += 1
                return
            # What is not a whole line is sent again after a break.
            *lines, rest = (rest + piece[:-2]).split(b"\n")
            for line in lines:
                self._take(line)

    def _request(self):
        query, headers = self.query + "&watch=true", "Accept: application/x-ndjson\r\n"
        if self.is_stream:
            headers = "Accept: text/event-stream\r\n"
        if self.position and self.is_stream:
            headers += f"Last-Event-ID: {self.position}\r\n"
        elif self.position:
            query += f"&position={self.position}"
        elif self.has_list:
            query += "&initial=true"
        return f"GET {BASE}{query} HTTP/1.1\r\nHost: chaos\r\n{headers}\r\n"

    def _take(self, line):
        """One line, of either form."""
        if self.is_stream:
            if not line.startswith(b"data: "):
                return
            line = line.removeprefix(b"data: ")
        if not line:
            return
        message = json.loads(line)
        kind = message["type"]
        if kind == "ERROR":
            problem = message["object"]
            self.ended[problem.get("code", "ERROR")] += 1
            if problem.get("status") == 410:
                raise Gone(problem.get("code"))
            return
        self.position = message.get("position", self.position)
        if kind == "BOOKMARK":
            if self.has_list and self.complete is None:
                self.complete = watched.number(message["position"])
            self.began.set()
            return
        event = watched.Event(message)
        if event.name == LAST:
            self.done.set()
        elif not event.is_of_scenario:
            (self.listed if event.position is None else self.events).append(event)


class Watching:
    """All watchers of a scenario."""

    def __init__(self, addresses, seed):
        self.addresses, self.seed = addresses, seed
        self.all, self.tasks = [], []

    def _add(self, name, query, shows, **options):
        chance = random.Random(f"watcher {self.seed} {name}")
        self.all.append(Watcher(name, query, shows, chance, *self.addresses, **options))
        self.tasks.append(asyncio.create_task(self.all[-1].run()))

    async def begin(self, outcome):
        """Before anything is written."""
        everything, every = "/resources?includeDeleted=true", lambda _: True
        self._add("all", everything, every)
        self._add("all, breaks off", everything, every, breaks=True)
        self._add("all, breaks off a stream", everything, every, breaks=True, is_stream=True)
        self._add("active", f"/resources?fields={SPARSE}", watched.is_active)
        self._add("node pools, breaks off", "/nodepools?includeDeleted=true",
                  lambda shown: shown["kind"] == "NodePool", breaks=True)
        self._add("search", f"/clusters?includeDeleted=true&search={SEARCH}", watched.is_searched)
        self._add("search, breaks off", f"/clusters?includeDeleted=true&search={SEARCH}", watched.is_searched, breaks=True)
        await self._begun(outcome)

    async def begin_late(self, outcome):
        """With the list first, beside the load."""
        self._add("late", f"/resources?includeDeleted=true&fields={SPARSE}", lambda _: True, has_list=True)
        self._add("late active, breaks off", f"/resources?fields={SPARSE}", watched.is_active, has_list=True, breaks=True)
        await self._begun(outcome)

    async def _begun(self, outcome):
        try:
            async with asyncio.timeout(END_SECONDS_MAX):
                await asyncio.gather(*(watcher.began.wait() for watcher in self.all))
        except TimeoutError:
            waiting = [watcher.name for watcher in self.all if not watcher.began.is_set()]
            outcome.must(False, f"watchers did not begin in {END_SECONDS_MAX} s: {waiting}")

    async def end(self, outcome, world):
        """When all is quiet: every watcher gets to the end, and is ended."""
        began = time.monotonic()
        try:
            await self._create_last(outcome)
            async with asyncio.timeout(END_SECONDS_MAX):
                await asyncio.gather(*(watcher.done.wait() for watcher in self.all))
        except TimeoutError:
            waiting = [f"{watcher.name} (at {watcher.position})" for watcher in self.all if not watcher.done.is_set()]
            outcome.must(False, f"watchers have not seen the last cluster after {END_SECONDS_MAX} s: {waiting}")
        finally:
            await self.stop()
        took = time.monotonic() - began
        await asyncio.to_thread(world.postgres.psql, world.database, sql=(
            "SET hyperfleet.audit_retention = 'on'; "
            f"DELETE FROM resources WHERE name = '{LAST}'; DELETE FROM audit_entries WHERE name = '{LAST}'"))
        stored = await asyncio.to_thread(watched.Stored, world.postgres, world.database)
        found = self.faults(stored)
        ended = sum((watcher.ended for watcher in self.all), Counter())
        events = sum(len(watcher.events) + len(watcher.listed) for watcher in self.all)
        outcome.row("watchers, events, all seen by them after the last write in",
                    f"{len(self.all)}, {events:,}, {took:.2f} s")
        outcome.row("watches that ended, and were continued", statuses(ended))
        outcome.row("events lost, doubled, invented or out of order", len(found))
        outcome.faults += found[:10]
        outcome.must(len(found) <= 10, f"and {len(found) - 10} more about watchers")
        outcome.must(ended["broke off"] > 0, "no watcher ever broke off")

    async def stop(self):
        for task in self.tasks:
            task.cancel()
        results = await asyncio.gather(*self.tasks, return_exceptions=True)
        for watcher, result in zip(self.all, results):
            if isinstance(result, Exception) and not isinstance(result, asyncio.CancelledError):
                watcher.wrong.append(f"failed: {result!r}")

    def faults(self, stored):
        """Everything that is wrong with what was sent, a line each."""
        first = self.all[0]
        found = [f"watcher {watcher.name} {fault}" for watcher in self.all for fault in watcher.wrong]
        found += [f"watcher {first.name}: {fault}" for fault in watched.against_stored(first.events, stored)]
        for watcher in self.all:
            found += [f"watcher {watcher.name}: {fault}" for fault in watched.against_another(watcher, first.events)]
        return found

    async def _create_last(self, outcome):
        body = {"name": LAST, "labels": {"n": "2"}, "spec": {}}
        client = Client(*self.addresses)
        cluster = await self._create(client, "/clusters", {"kind": "Cluster", **body}, outcome)
        if cluster:
            await self._create(client, f"/clusters/{cluster}/nodepools", {"kind": "NodePool", **body}, outcome)
        client.close()

    @staticmethod
    async def _create(client, path, body, outcome):
        """The id of a new resource; nothing is wrong with the database any more."""
        try:
            answer = await client.call("POST", BASE + path, body)
        except Lost as lost:
            outcome.must(False, f"the last {body['kind']} was not answered: {lost}")
            return None
        outcome.must(answer.status == 201, f"the last {body['kind']} was answered {answer.status}")
        return answer.json().get("id")
