"""Faults around the service while writers write."""

import asyncio
import time
from random import Random

import check
from ledger import Ledger
from outcome import statuses
from proxy import Proxy
from watchers import Watching
from world import processes

# What was answered before everything froze is on its way for so long, in seconds.
IN_FLIGHT_SECONDS = 0.5
# Writes before and after the trouble, at least.
AROUND = 500
# Number of reported faults of the database.
TOLD_MAX = 20


def settle(outcome, ledger, world, may_lose=False):
    """Compares the database with what was acknowledged. Unless an instance was killed, everybody was answered."""
    found = check.faults(ledger, world.postgres, world.database)
    outcome.row("acknowledged writes", f"{ledger.count} ({statuses(ledger.acknowledged)})")
    outcome.row("answers", statuses(ledger.statuses))
    outcome.row("answered again for the same key", ledger.replayed)
    outcome.row("lost, doubled, invented or half done", len(found))
    outcome.faults += found[:TOLD_MAX]
    outcome.must(len(found) <= TOLD_MAX, f"and {len(found) - TOLD_MAX} more")
    lost = ledger.statuses["lost"] + ledger.statuses["refused"]
    outcome.must(may_lose or not lost, f"{lost} requests were not answered at all, though the service was there")
    outcome.must_not_panic(world.instances)


async def under_load(world, options, outcome, trouble, may_lose=False):
    """Runs trouble while writers write and watchers watch, lets them go on a little more afterwards, and settles."""
    addresses = [instance.address for instance in world.instances]
    ledger, watching = Ledger(addresses, options.seed), Watching(addresses, options.seed)
    await watching.begin(outcome)
    writing = asyncio.create_task(ledger.run())
    try:
        await written(ledger, AROUND, outcome, "before the trouble began")
        outcome.must(not ledger.statuses[503], f"{ledger.statuses[503]} answers of 503 before the trouble began")
        await watching.begin_late(outcome)
        await trouble(ledger)
        await written(ledger, ledger.count + AROUND, outcome, "after the trouble")
    except BaseException:
        await watching.stop()
        raise
    finally:
        ledger.stopping = True
        await writing
    outcome.must_be_back(ledger)
    await watching.end(outcome, world)
    settle(outcome, ledger, world, may_lose)


async def written(ledger, count, outcome, when, seconds=60):
    """Waits until so many writes are acknowledged."""
    began = time.monotonic()
    while ledger.count < count and time.monotonic() - began < seconds and not ledger.stopping:
        await asyncio.sleep(0.02)
    outcome.must(ledger.count >= count, f"nothing much was acknowledged in {seconds} s {when}: is it serving?")


async def stopped(world, options, outcome):
    seconds = options.seconds or 10
    outcome.title = f"PostgreSQL stopped for {seconds:g} s"
    await asyncio.to_thread(world.serve)

    async def trouble(ledger):
        await asyncio.to_thread(world.postgres.halt)
        await asyncio.sleep(seconds)
        refused = ledger.statuses[503]
        await asyncio.to_thread(world.postgres.resume)
        outcome.over()
        outcome.must(refused > 0, "nobody was answered 503 while PostgreSQL was away: was it?")

    await under_load(world, options, outcome, trouble)


async def restarted(world, options, outcome):
    times = options.count or 20
    outcome.title = f"PostgreSQL restarted {times} times"
    await asyncio.to_thread(world.serve)

    async def trouble(ledger):
        felt, late = 0, 0
        for number in range(times):
            before = ledger.statuses[503]
            # Every other time while nothing is sent: connections that idle end with the server, and nobody notices.
            ledger.pausing = number % 2 == 1
            try:
                await asyncio.to_thread(world.postgres.halt)
                await asyncio.to_thread(world.postgres.resume)
            finally:
                ledger.pausing = False
            outcome.over()
            accepts = time.monotonic()
            await asyncio.sleep(1)
            late += sum(accepts <= began for began in ledger.refusals)
            felt += ledger.statuses[503] > before
        outcome.row("restarts that writers felt", felt)
        outcome.row("answered 503 though sent when PostgreSQL accepted connections again", late)
        outcome.must(late == 0, f"{late} requests were answered 503 though PostgreSQL accepted connections again")
        outcome.must(felt > 0, "no restart was felt by anybody: were there any?")

    await under_load(world, options, outcome, trouble)


async def paused(world, options, outcome):
    seconds = options.seconds or 10
    outcome.title = f"PostgreSQL frozen for {seconds:g} s"
    await asyncio.to_thread(world.serve)

    async def trouble(ledger):
        try:
            frozen = await asyncio.to_thread(world.postgres.freeze)
            await asyncio.sleep(IN_FLIGHT_SECONDS)
            before = ledger.successes
            await asyncio.sleep(seconds)
            during = ledger.successes - before
            outcome.must(world.postgres.is_frozen(), "PostgreSQL did not stay frozen")
        finally:
            world.postgres.thaw()
        outcome.over()
        outcome.row("processes frozen", frozen)
        outcome.row("answered with success meanwhile", during)
        outcome.must(during == 0, f"{during} requests were answered with success while PostgreSQL was frozen")

    await under_load(world, options, outcome, trouble)


async def crowded(world, options, outcome):
    seconds = options.seconds or 5
    outcome.title = f"PostgreSQL out of connections for {seconds:g} s"
    instance = await asyncio.to_thread(world.serve)

    async def trouble(ledger):
        # Before nobody can connect any more.
        administrator = world.postgres.session(world.database)
        crowd = []
        try:
            await asyncio.to_thread(crowd_out, world.postgres, instance, administrator, crowd)
            await asyncio.sleep(IN_FLIGHT_SECONDS)
            before, refused = ledger.successes, ledger.statuses[503]
            await asyncio.sleep(seconds)
            during, refused = ledger.successes - before, ledger.statuses[503] - refused
            held = sum(process.poll() is None for process in crowd)
        finally:
            for process in [*crowd, administrator]:
                process.kill()
                process.wait()
        outcome.over()
        outcome.row("connections that others held", held)
        outcome.row("answered with success meanwhile, with 503", f"{during}, {refused}")
        outcome.must(during == 0, f"{during} requests were answered with success: did the service keep a connection?")
        outcome.must(refused > 0, "nobody was answered 503 while there were no connections")

    await under_load(world, options, outcome, trouble)


def crowd_out(postgres, instance, administrator, crowd):
    """Lets a crowd have all connections, then those of the service, too, which is held back: it would be faster."""
    crowd += postgres.take_all_connections()
    processes.freeze(instance.process.pid)
    try:
        administrator.stdin.write(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'hyperfleet%';\n")
        administrator.stdin.flush()
        for _ in range(3):
            crowd += postgres.take_all_connections()
            # Backends take a moment to end.
            time.sleep(0.3)
    finally:
        processes.thaw(instance.process.pid)


async def cut(world, options, outcome):
    outcome.title = "Network cut in the middle of transactions"
    chance = Random(f"cut {options.seed}")
    socket = str(world.postgres.folder / ".s.PGSQL.5432")
    async with Proxy(socket, chance) as proxy:
        url = f"postgres://postgres@127.0.0.1:{proxy.port}/{world.database}?sslmode=disable"
        await asyncio.to_thread(world.serve, url=url)

        async def trouble(ledger):
            before = ledger.statuses[503]
            deadline = time.monotonic() + (options.seconds or 20)
            while time.monotonic() < deadline:
                await asyncio.sleep(chance.uniform(0.02, 0.3))
                proxy.slam(0.5)
                outcome.over()
            outcome.row("connections cut", proxy.cuts)
            outcome.must(ledger.statuses[503] > before, "nobody was answered 503: was anything cut in use?")
            outcome.must(ledger.replayed > 0, "no key was sent again after its change: were commits cut?")

        await under_load(world, options, outcome, trouble)


async def killed(world, options, outcome):
    kills, writes = options.kills, options.count or 10_000
    outcome.title = f"kill -9 of one of two instances, {kills} times"
    chance = Random(f"killed {options.seed}")
    first = await asyncio.to_thread(world.serve, "a")
    await asyncio.to_thread(world.serve, "b")

    async def trouble(ledger):
        in_use = 0
        begin = ledger.count
        for number in range(kills):
            # Writers go on until the last kill. Each kill meets an instance that has acknowledged writes since it
            # is back, at no time in particular, and they are spread over all writes.
            served = ledger.by_address[first.address]
            due = begin + writes * number / kills
            await asyncio.sleep(chance.uniform(0, 0.1))
            while ledger.count < due and not ledger.stopping:
                await asyncio.sleep(0.002)
            deadline = time.monotonic() + 10
            while ledger.by_address[first.address] == served and time.monotonic() < deadline:
                await asyncio.sleep(0.002)
            in_use += ledger.by_address[first.address] > served
            first.kill()
            outcome.over()
            await world.restart(first)
        await written(ledger, begin + writes, outcome, "after the last kill", seconds=120)
        outcome.row("killed in the middle of writing", f"{in_use} times")
        outcome.must(in_use == kills, f"{kills - in_use} of {kills} times the one that was killed had written nothing")
        outcome.row("connections lost, refused", f"{ledger.statuses['lost']}, {ledger.statuses['refused']}")
        outcome.must(ledger.statuses["lost"] > 0, "no writer ever lost a connection: was anything killed in use?")

    await under_load(world, options, outcome, trouble, may_lose=True)


async def clock(world, options, outcome):
    outcome.title = "Clock stepped by an hour"
    # The service's clock alone: the machine's stays as it is.
    instance = await asyncio.to_thread(world.serve, env={
        "LD_PRELOAD": options.faketime, "FAKETIME": "+0", "DONT_FAKE_MONOTONIC": "1"})
    addresses = [instance.address]
    ledger, watching = Ledger(addresses, options.seed), Watching(addresses, options.seed)
    await watching.begin(outcome)
    try:
        for step in ("+0", "+3600", "-3600", "+0"):
            await asyncio.to_thread(instance.stop)
            instance.env["FAKETIME"], ledger.clocks_differ = step, step != "+0"
            await world.restart(instance)
            outcome.over()
            writing = asyncio.create_task(ledger.run())
            await asyncio.sleep(options.seconds or 5)
            ledger.stopping = True
            await writing
        await watching.begin_late(outcome)
    except BaseException:
        await watching.stop()
        raise
    outcome.must_be_back(ledger)
    await watching.end(outcome, world)
    odd = world.postgres.psql(world.database, sql="SELECT count(*) FROM resources WHERE updated_at < created_at")
    outcome.row("changed before they were created", odd)
    outcome.must(odd == "0", f"{odd} resources were changed before they were created")
    outcome.must(not ledger.statuses[503], f"{ledger.statuses[503]} answers of 503 though nothing was away")
    outcome.must(ledger.statuses[400] > 0, "no report was refused for its time: was the clock stepped?")
    settle(outcome, ledger, world)
