"""Crowds of slow clients beside normal traffic."""

import asyncio
import os
import statistics

from client import BASE, Client
from crowds import HalfBody, NoReader, Silent, SlowBody, SlowHead, SlowReader
from load import latencies, p50, p99

CROWDS = (
    (SlowHead, "1 byte of a head in 10 s"),
    (SlowBody, "1 byte of a body in 10 s"),
    (Silent, "silent"),
    (HalfBody, "100 KiB of a body of 900, then nothing"),
    (NoReader, "nothing taken of the OpenAPI document"),
    (SlowReader, "1 KiB of a list of 2 MB in 10 s"),
)
# How often it is measured how long requests take beside nobody; the median counts.
BASES = 3
# p99 may be twice what it is beside nobody. Below so many milliseconds a ratio says more about the machine
# than about the service.
RATIO_MAX, SMALL_MS = 2, 10
# By how much memory may rise: three times what is held for clients (`server.limits.max_buffered_mib`), because a page
# is rows, JSON and text at once while it is made, and because the allocator keeps what the crowd before has had.
GROWTH_MAX_MIB = 3 * 128


async def slow(world, options, outcome):
    outcome.title = "Slow clients"
    instance = await asyncio.to_thread(world.serve)
    await fill(outcome, instance)
    outcome.row("load average beforehand", f"{os.getloadavg()[0]:.1f}, on {os.cpu_count()} cores")
    seconds = options.seconds or 20
    await latencies(instance.address, 3)
    base = await beside_nobody(outcome, instance, seconds)
    before = instance.mebibytes()
    outcome.row("memory beside nobody", f"{before:.0f} MiB")
    count = options.count or 1000
    for kind, what in CROWDS:
        instance.forget_peak()
        async with kind(instance.address, count, options.seed) as crowd:
            times, failed = await latencies(instance.address, seconds)
            memory, there, came = instance.mebibytes(), crowd.there.value, crowd.came.value
        peak = instance.mebibytes_peak()
        outcome.row(f"{count} clients, {what}: p50, p99",
                    f"{p50(times):.1f}, {p99(times):.1f} ms ({p99(times) / base:.2f} times), "
                    f"{memory:.0f} MiB, {peak:.0f} at most; connected {came} times, {there} at the end")
        outcome.must(came >= count, f"{what}: only {came} of {count} clients came")
        outcome.must(failed == 0, f"{what}: {failed} of {len(times)} normal requests failed")
        outcome.must(p99(times) <= max(RATIO_MAX * base, SMALL_MS),
                     f"{what}: p99 was {p99(times):.1f} ms, beside nobody {base:.1f} ms")
        outcome.must(peak <= before + GROWTH_MAX_MIB, f"{what}: memory rose from {before:.0f} to {peak:.0f} MiB")
        await asyncio.sleep(2)
    outcome.must_not_panic([instance])


async def fill(outcome, instance):
    """A hundred clusters of 20 kB: one page is 2 MB."""
    client = Client(instance.address)
    for number in range(100):
        body = {"kind": "Cluster", "name": f"big-{number}", "spec": {"filler": "x" * 20_000}}
        answer = await client.call("POST", f"{BASE}/clusters", body)
        outcome.must(answer.status == 201, f"a cluster was answered {answer.status}")
    client.close()


async def beside_nobody(outcome, instance, seconds):
    """The median of p99 in milliseconds, measured several times."""
    seen = []
    for _ in range(BASES):
        times, failed = await latencies(instance.address, seconds)
        outcome.must(failed == 0, f"{failed} of {len(times)} requests failed without any slow client")
        seen.append((p99(times), p50(times)))
    outcome.row("beside nobody: p50, p99", "; ".join(f"{half:.1f}, {most:.1f} ms" for most, half in seen))
    return statistics.median(most for most, _ in seen)
