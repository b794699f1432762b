"""Faults around the service while writers write."""

import asyncio
import time
from random import Random

import check
from ledger import Ledger
from outcome import statuses
from watchers import Watching

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


async def under_load(world, options, outcome, trouble):
    """Runs trouble while writers write and watchers watch, lets them go on a little more afterwards, and settles.
    Answers may be lost."""
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
    settle(outcome, ledger, world, may_lose=True)


async def written(ledger, count, outcome, when, seconds=60):
    """Waits until so many writes are acknowledged."""
    began = time.monotonic()
    while ledger.count < count and time.monotonic() - began < seconds and not ledger.stopping:
        await asyncio.sleep(0.02)
    outcome.must(ledger.count >= count, f"nothing much was acknowledged in {seconds} s {when}: is it serving?")


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

    await under_load(world, options, outcome, trouble)


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
