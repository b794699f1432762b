"""What goes wrong, and what must hold all the same. Each gives rows for the table of docs/reliability.md
and a list of faults, which is empty if everything held."""

import asyncio
import random
import time
from collections import Counter

from attacks import Silent, SlowBody, SlowHead, SlowReader, latencies, malformed, p99, send_raw
from client import Client
from ledger import BASE, Ledger
from proxy import Proxy
from world import percentile


class Outcome:
    """What was seen, as rows of a table, and what was wrong."""

    def __init__(self, title):
        self.title, self.rows, self.faults = title, [], []

    def row(self, what, value):
        self.rows.append((what, value))

    def must(self, holds, fault):
        if not holds:
            self.faults.append(fault)


def statuses(counter):
    return ", ".join(f"{key}: {count}" for key, count in sorted(counter.items(), key=lambda kv: str(kv[0])))


def settle(outcome, ledger, world):
    """Compares the database with what was acknowledged."""
    faults = ledger.check(world.postgres, world.database)
    outcome.row("acknowledged writes", f"{ledger.count} ({statuses(ledger.acknowledged)})")
    outcome.row("answers", statuses(ledger.statuses))
    outcome.row("lost, doubled, invented or half done", len(faults))
    outcome.faults += faults[:20]
    for instance in world.instances:
        panics = instance.panics()
        outcome.must(not panics, f"panic in {instance.name}: {panics[:1]}")


async def garbage(world, options):
    """Ten thousand malformed requests of every kind."""
    outcome = Outcome("Malformed requests")
    instance = world.serve()
    makers = malformed(random.Random(options.seed))
    count = options.count or 10_000

    async def storm(total):
        seen, kinds, errors = Counter(), list(makers), []
        gate = asyncio.Semaphore(32)

        async def one(kind):
            async with gate:
                status = await send_raw(instance.address, makers[kind]())
            seen[status or "closed"] += 1
            if status and status >= 500:
                errors.append(f"{kind}: {status}")

        await asyncio.gather(*(one(kinds[number % len(kinds)]) for number in range(total)))
        return seen, errors

    # What is allocated once, for pools and the like, does not count.
    await storm(len(makers) * 10)
    await asyncio.sleep(2)
    before = instance.mebibytes()
    began = time.monotonic()
    seen, errors = await storm(count)
    seconds = time.monotonic() - began
    await asyncio.sleep(3)
    after = instance.mebibytes()
    outcome.row("requests", f"{count} of {len(makers)} kinds in {seconds:.0f} s")
    outcome.row("answers", statuses(seen))
    outcome.row("answers of 5xx", len(errors))
    outcome.row("memory before and after", f"{before:.0f} and {after:.0f} MiB")
    outcome.must(not errors, f"5xx: {errors[:5]}")
    outcome.must(after - before < 50, f"memory grew by {after - before:.0f} MiB")
    outcome.must(not instance.panics(), f"panics: {instance.panics()[:1]}")
    answer = await Client(instance.address).call("GET", f"{BASE}/clusters?size=1")
    outcome.must(answer.status == 200, "it does not serve afterwards")
    return outcome


async def slow(world, options):
    """Clients that are slow on purpose, beside ones that are not."""
    outcome = Outcome("Slow clients")
    instance = world.serve()
    client = Client(instance.address)
    for number in range(100):
        spec = {"filler": "x" * 20_000}
        await client.call("POST", f"{BASE}/clusters", {"kind": "Cluster", "name": f"big-{number}", "spec": spec})
    seconds = options.seconds or 20
    await latencies(instance.address, 3)
    quiet, failed = await latencies(instance.address, seconds)
    base = p99(quiet)
    outcome.row("nobody slow: p50, p99", f"{percentile(quiet, 0.5):.1f}, {base:.1f} ms")
    outcome.must(failed == 0, f"{failed} requests failed without any slow client")
    count = options.count or 1000
    for crowd, what in (
        (SlowHead(instance.address, count), "1 byte of a head in 10 s"),
        (SlowBody(instance.address, count), "1 byte of a body in 10 s"),
        (Silent(instance.address, count), "silent"),
        (SlowReader(instance.address, count), "1 KiB of an answer of 2 MB in 10 s"),
    ):
        async with crowd:
            times, failed = await latencies(instance.address, seconds)
            memory = instance.mebibytes()
        ratio = p99(times) / base
        outcome.row(f"{count} clients, {what}: p50, p99",
                    f"{percentile(times, 0.5):.1f}, {p99(times):.1f} ms ({ratio:.2f} times), {memory:.0f} MiB")
        outcome.must(failed == 0, f"{what}: {failed} normal requests failed")
        # Below a few milliseconds a ratio says more about the machine than about the service.
        outcome.must(p99(times) <= max(2 * base, 10), f"{what}: p99 {p99(times):.1f} ms, was {base:.1f} ms")
        await asyncio.sleep(2)
    outcome.must(not instance.panics(), f"panics: {instance.panics()[:1]}")
    return outcome


async def under_load(world, outcome, trouble, ledger=None):
    """Runs trouble while writers write, lets them write a little more afterwards, and settles."""
    ledger = ledger or Ledger([instance.address for instance in world.instances])
    writing = asyncio.create_task(ledger.run())
    await asyncio.sleep(1)
    before = ledger.count
    outcome.must(before > 0, "nothing was written before the trouble began")
    await trouble(ledger)
    during = ledger.count
    await wait_until_written(ledger, during + 50, outcome)
    ledger.stopping = True
    await writing
    settle(outcome, ledger, world)


async def wait_until_written(ledger, count, outcome, seconds=60):
    """Service must come back by itself."""
    began = time.monotonic()
    while ledger.count < count and time.monotonic() - began < seconds:
        await asyncio.sleep(0.05)
    outcome.row("written again after", f"{time.monotonic() - began:.1f} s")
    outcome.must(ledger.count >= count, f"after {seconds} s it still does not serve")


async def stopped(world, options):
    """PostgreSQL is stopped for ten seconds, then started."""
    outcome = Outcome("PostgreSQL stopped for 10 s")
    world.serve()

    async def trouble(_):
        await asyncio.to_thread(world.postgres.halt)
        await asyncio.sleep(10)
        await asyncio.to_thread(world.postgres.resume)

    await under_load(world, outcome, trouble)
    return outcome


async def restarted(world, options):
    """PostgreSQL is restarted twenty times."""
    times = options.count or 20
    outcome = Outcome(f"PostgreSQL restarted {times} times")
    world.serve()

    async def trouble(ledger):
        for _ in range(times):
            await asyncio.to_thread(world.postgres.halt)
            await asyncio.to_thread(world.postgres.resume)
            await asyncio.sleep(1)

    await under_load(world, outcome, trouble)
    return outcome


async def paused(world, options):
    """Every process of PostgreSQL is frozen for ten seconds."""
    outcome = Outcome("PostgreSQL frozen for 10 s")
    world.serve()

    async def trouble(_):
        world.postgres.freeze()
        await asyncio.sleep(10)
        world.postgres.thaw()

    await under_load(world, outcome, trouble)
    return outcome


async def crowded(world, options):
    """Others take every connection that PostgreSQL has."""
    outcome = Outcome("PostgreSQL out of connections")
    world.serve()

    async def trouble(_):
        # Before nobody can connect any more.
        administrator = world.postgres.session(world.database)
        crowd = await asyncio.to_thread(world.postgres.take_all_connections)
        # What the service holds is lost: it must ask for new ones, and others are faster.
        for _ in range(5):
            administrator.stdin.write(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'hyperfleet%';\n")
            administrator.stdin.flush()
            crowd += await asyncio.to_thread(world.postgres.take_all_connections)
            await asyncio.sleep(1)
        for process in [*crowd, administrator]:
            process.kill()
            process.wait()

    await under_load(world, outcome, trouble)
    return outcome


async def cut(world, options):
    """The network drops connections in the middle of transactions."""
    outcome = Outcome("Network cut in the middle of transactions")
    socket = str(world.postgres.folder / ".s.PGSQL.5432")
    async with Proxy(socket) as proxy:
        url = f"postgres://postgres@127.0.0.1:{proxy.port}/{world.database}?sslmode=disable"
        await asyncio.to_thread(world.serve, url=url)

        async def trouble(_):
            deadline = time.monotonic() + (options.seconds or 20)
            while time.monotonic() < deadline:
                await asyncio.sleep(random.uniform(0.02, 0.3))
                proxy.slam(0.5)
            outcome.row("connections cut", proxy.cuts)

        await under_load(world, outcome, trouble)
    return outcome


async def killed(world, options):
    """One of two instances is killed fifty times during ten thousand acknowledged writes."""
    kills, writes = options.kills, options.count or 10_000
    outcome = Outcome(f"kill -9 of one of two instances, {kills} times")
    first, _ = world.serve("a"), world.serve("b")
    ledger = Ledger([instance.address for instance in world.instances], options.seed)
    writing = asyncio.create_task(ledger.run(acknowledged_max=writes))
    done = 0
    for number in range(1, kills + 1):
        # Spread over all writes.
        while ledger.count < writes * number / (kills + 1) and not writing.done():
            await asyncio.sleep(0.01)
        await asyncio.sleep(random.uniform(0, 0.1))
        first.kill()
        done += 1
        await world.restart(first)
    await writing
    outcome.row("killed", f"{done} times")
    outcome.must(done >= kills, f"killed only {done} times")
    outcome.must(ledger.count >= writes, f"only {ledger.count} writes")
    settle(outcome, ledger, world)
    return outcome


async def clock(world, options):
    """The clock of the service is an hour ahead, then an hour behind, then right again."""
    outcome = Outcome("Clock stepped by an hour")
    ledger = Ledger([], options.seed)
    ledger.clocks_differ = True
    for step in ("+0", "+3600", "-3600", "+0"):
        # The service's clock alone: the machine's stays as it is.
        instance = world.serve(f"clock{len(world.instances)}", env={
            "LD_PRELOAD": options.faketime, "FAKETIME": step, "DONT_FAKE_MONOTONIC": "1"})
        ledger.addresses = [instance.address]
        writing = asyncio.create_task(ledger.run())
        await asyncio.sleep(options.seconds or 5)
        ledger.stopping = True
        await writing
        instance.stop()
    odd = world.postgres.psql(world.database, sql="SELECT count(*) FROM resources WHERE updated_at < created_at")
    outcome.row("changed before they were created", odd)
    outcome.must(odd == "0", f"{odd} resources were changed before they were created")
    settle(outcome, ledger, world)
    return outcome


ALL = {"garbage": garbage, "slow": slow, "stopped": stopped, "restarted": restarted, "paused": paused,
       "crowded": crowded, "cut": cut, "killed": killed, "clock": clock}
