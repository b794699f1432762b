"""Storms of malformed requests."""

import asyncio
import time
from collections import Counter, defaultdict
from random import Random

from client import BASE, Client, Lost, read_answer
from malformed import Kind, Maker, bombs, malformed, tokens
from outcome import statuses

# Requests in progress at a time.
AT_ONCE = 32
# How many bombs come besides those among all others.
BOMBS = 200
# What is larger may be refused before all of it is sent; the answer is then lost now and then, because the rest finds
# a connection that is closed.
LARGE = 64 << 10
# What memory may have grown by a little later, in MiB.
GROWTH_MAX_MIB = 50
# What it may have grown by in the meantime: twice what is held for clients (`server.limits.max_buffered_mib`).
PEAK_GROWTH_MAX_MIB = 2 * 128


async def send_raw(address, data, ends_half, seconds=20):
    """The status of the first answer; None if the server just closed, or said nothing in time."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(*address, limit=1 << 24)
            try:
                writer.write(data)
                if ends_half:
                    await writer.drain()
                    writer.write_eof()
                # While it is sent: who is refused early is answered before all of it is there.
                return (await read_answer(reader)).status
            finally:
                writer.transport.abort()
    except (OSError, TimeoutError, Lost):
        return None


async def storm(instance, kinds, count):
    """So many requests, of every kind in turn; gives the answers to each kind, and what none was given to:
    `unanswered` what was owed one, `closed` the rest."""
    seen, names = defaultdict(Counter), list(kinds)
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(name):
        kind: Kind = kinds[name]
        async with gate:
            data = kind.make()
            status = await send_raw(instance.address, data, not kind.is_whole)
        is_small = kind.is_whole and len(data) <= LARGE
        seen[name][status or ("unanswered" if is_small else "closed")] += 1

    await asyncio.gather(*(one(names[number % len(names)]) for number in range(count)))
    return seen


def judge(outcome, kinds, seen):
    """Every answer is one that is right for its kind. What is owed an answer had one; what is large, now and then."""
    for name, kind in kinds.items():
        answers = {status: count for status, count in seen[name].items() if isinstance(status, int)}
        wrong = {status: count for status, count in answers.items() if status not in kind.answers}
        outcome.must(not wrong, f"{name}: answered {statuses(wrong)}")
        outcome.must(answers or not kind.is_whole, f"{name}: none of {seen[name].total()} was ever answered")
        silent = seen[name]["unanswered"]
        outcome.must(not silent, f"{name}: {silent} of {seen[name].total()} were not answered, and owed an answer")


async def stormy(outcome, what, instance, kinds, count, before):
    """A storm with rows and a verdict, on what is answered and on what it takes: memory was `before`, in MiB."""
    instance.forget_peak()
    began = time.monotonic()
    seen = await storm(instance, kinds, count)
    seconds = time.monotonic() - began
    # Fails if it is there no more, which would explain all else.
    peak = instance.mebibytes_peak()
    await asyncio.sleep(3)
    after = instance.mebibytes()
    judge(outcome, kinds, seen)
    total = sum(seen.values(), Counter())
    number = f"{len(kinds)} kinds" if len(kinds) > 1 else "1 kind"
    outcome.row(what, f"{count} of {number} in {seconds:.0f} s: {statuses(total)}")
    outcome.row(f"{what}: memory before, peak, after", f"{before:.0f}, {peak:.0f}, {after:.0f} MiB")
    outcome.must(peak - before <= PEAK_GROWTH_MAX_MIB, f"{what}: memory rose from {before:.0f} to {peak:.0f} MiB")
    outcome.must(after - before < GROWTH_MAX_MIB, f"{what}: memory was {before:.0f} MiB and stayed at {after:.0f} MiB")


async def garbage(world, options, outcome):
    outcome.title = "Malformed requests"
    instance = await asyncio.to_thread(world.serve, "without-tokens")
    kinds = malformed(Maker(Random(f"garbage {options.seed}")))
    # Every kind at least once.
    count = max(options.count or 10_000, 2 * len(kinds))
    await attacked(outcome, instance, "malformed", kinds, count)
    instance.stop()

    issuer = world.issuer()
    instance = await asyncio.to_thread(world.serve, "with-tokens", issuer=issuer)
    chance = Random(f"tokens {options.seed}")
    kinds = {**malformed(Maker(chance, issuer.token)), **tokens(chance, issuer.token)}
    await attacked(outcome, instance, "malformed, tokens asked for", kinds, count, issuer.token)


async def attacked(outcome, instance, what, kinds, count, token=None):
    """Storms, and what is left of the service afterwards."""
    # What is allocated once, for pools and the like, does not count. Bombs do.
    await storm(instance, {name: kind for name, kind in kinds.items() if name != "gzip bombs"}, len(kinds) * 10)
    await asyncio.sleep(2)
    before = instance.mebibytes()
    await stormy(outcome, what, instance, kinds, count, before)
    only_bombs = {"gzip bombs": bombs(Maker(Random(0), token))}
    await stormy(outcome, f"{what}: gzip bombs", instance, only_bombs, min(BOMBS, count), before)
    outcome.must_not_panic([instance])
    headers = [("Authorization", f"Bearer {token}")] if token else []
    try:
        answer = await Client(instance.address).call("GET", f"{BASE}/clusters?size=1", headers=headers)
        outcome.must(answer.status == 200, f"{what}: a good request is answered {answer.status} afterwards")
    except Lost as error:
        outcome.must(False, f"{what}: it does not serve afterwards: {error}")
