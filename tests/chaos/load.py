"""Normal traffic: requests at a steady rate, and how long they take."""

import asyncio
import time

from client import BASE, Client, Lost

CONNECTIONS = 16


async def latencies(address, seconds, rate=100, path=f"{BASE}/clusters?size=1"):
    """Times in seconds, from when each request was due, so that what waits counts, too; and how many failed."""
    times, failed = [], 0
    clients = asyncio.Queue()
    for _ in range(CONNECTIONS):
        clients.put_nowait(Client(address, seconds=60))
    began = time.monotonic()

    async def one(due):
        nonlocal failed
        client = await clients.get()
        try:
            answer = await client.call("GET", path)
            failed += answer.status != 200
        except Lost:
            failed += 1
        finally:
            clients.put_nowait(client)
        times.append(time.monotonic() - due)

    tasks = []
    for number in range(int(seconds * rate)):
        due = began + number / rate
        await asyncio.sleep(max(0, due - time.monotonic()))
        tasks.append(asyncio.create_task(one(due)))
    await asyncio.gather(*tasks)
    while not clients.empty():
        clients.get_nowait().close()
    return times, failed


def percentile(times, share):
    """A value that this share of the times does not exceed, in milliseconds."""
    ordered = sorted(times)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def p50(times):
    return percentile(times, 0.5)


def p99(times):
    return percentile(times, 0.99)
