"""Searches that run as long as they may, beside writers and readers."""

import asyncio
import random
from collections import Counter
from urllib.parse import quote

from client import BASE, Client, Lost
from faults import under_load
from load import latencies, p50, p99
from outcome import statuses

SEARCHERS = 20
# How large one spec is: a body may have 1 MiB.
SPEC_BYTES = 900_000
SPECS = 6
# Reads by id that are sent each second meanwhile.
RATE = 50


def slow_search():
    """Within every limit of searches, and the work of half a minute: each test compares a long pattern with each place
    of a spec."""
    tests = (f"spec.x ilike '%a{'_' * 205}c%{number}'" for number in range(16))
    return f"{BASE}/clusters?fields=name&search={quote(' or '.join(tests))}"


async def searched(world, options, outcome):
    seconds = options.seconds or 20
    outcome.title = f"{SEARCHERS} clients with slow searches for {seconds:g} s"
    instance = await asyncio.to_thread(world.serve)
    cluster = await fill(outcome, instance)

    async def trouble(ledger):
        answers, before = Counter(), ledger.count
        searching = [asyncio.create_task(search(instance.address, answers)) for _ in range(SEARCHERS)]
        try:
            # Every place is taken by then.
            await asyncio.sleep(1)
            times, failed = await latencies(instance.address, seconds, RATE, f"{BASE}{cluster}")
            meanwhile = ledger.count - before
        finally:
            for one in searching:
                one.cancel()
            await asyncio.gather(*searching, return_exceptions=True)
        outcome.over()
        outcome.row("searches answered", statuses(answers))
        outcome.row("writes acknowledged meanwhile", meanwhile)
        outcome.row("GET by id meanwhile: p50, p99", f"{p50(times):.1f}, {p99(times):.1f} ms")
        outcome.must(set(answers) <= {200, 504}, f"searches were answered {statuses(answers)}")
        outcome.must(answers[504] > 0, "no search was answered 504: were they slow?")
        outcome.must(not failed, f"{failed} of {len(times)} reads by id failed")
        outcome.must(meanwhile > 0, "nothing was acknowledged beside the searches")
        outcome.must(not ledger.statuses[503], f"{ledger.statuses[503]} writes were answered 503")
        await asyncio.to_thread(empty, world)

    await under_load(world, options, outcome, trouble)


async def search(address, answers):
    """Searches until cancelled, and counts how that is answered."""
    client = Client(address, seconds=60)
    path = slow_search()
    try:
        while True:
            try:
                answers[(await client.call("GET", path)).status] += 1
            except Lost:
                answers["lost"] += 1
    finally:
        client.close()


async def fill(outcome, instance):
    """Clusters with large specs, and one with none, whose path it gives."""
    client, path = Client(instance.address), None
    chance = random.Random("specs")
    for number in range(SPECS + 1):
        spec = {"x": "".join(chance.choices("ab", k=SPEC_BYTES))} if number < SPECS else {}
        body = {"kind": "Cluster", "name": f"searched-{number}", "spec": spec}
        answer = await client.call("POST", f"{BASE}/clusters", body)
        outcome.must(answer.status == 201, f"a cluster was answered {answer.status}")
        path = f"/clusters/{answer.json()['id']}"
    client.close()
    return path


def empty(world):
    """Removes these clusters: what is left is compared with what writers wrote."""
    world.postgres.psql(world.database, sql="SET hyperfleet.audit_retention = 'on'; "
                                            "DELETE FROM resources WHERE name LIKE 'searched-%'; "
                                            "DELETE FROM audit_entries WHERE name LIKE 'searched-%'")
