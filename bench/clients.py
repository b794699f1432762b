"""Operations as real clients send them: by Go's net/http, with its headers, gzip, and connections that it keeps.

wrk sends the same headers, but reads whatever arrives. A client that waits for the rest of a response shows delays that wrk
does not: a second packet that the kernel holds back took Go's clients 40 ms."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass

from operations import OPERATIONS, run
from report import aligned
from servers import ROOT, Failed

KEYS = ["get", "first", "post", "patch", "accepted"]
CONNECTIONS_MAX = 16
# A response must not wait for the client's acknowledgement of its first packet, which takes up to 40 ms.
P50_MS_MAX = 20.0


@dataclass
class Answered:
    """One operation by the client, at one number of connections."""

    operation: str
    connections: int
    rate: float
    p50_ms: float
    p99_ms: float
    errors: int


def program():
    """Builds the client; None without Go."""
    go = shutil.which("go")
    if not go:
        return None
    built = ROOT / ".dev/bench-client"
    environment = os.environ | {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    done = subprocess.run([go, "build", "-o", built, "."], cwd=ROOT / "bench/client", env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Failed(f"bench/client does not build:\n{done.stdout}")
    return built


def measure(fleet, options, say):
    """Each operation at each number of connections."""
    client = program()
    if not client:
        say("Go is missing: operations by a client in Go are left out")
        return []
    results = []
    chosen = [one for one in OPERATIONS if one.key in KEYS and one.key in options.only]
    for operation in chosen:
        for connections in (c for c in options.connections if c <= CONNECTIONS_MAX):
            name = f"{os.getpid()}-{len(results)}"
            output = run([client, fleet.api.base, operation.key, fleet.clusters, connections, options.seconds, name])
            found = json.loads(output)
            rate = found["requests"] / found["seconds"]
            one = Answered(operation.title, connections, rate, found["p50_ms"], found["p99_ms"], found["errors"])
            results.append(one)
            say(f"  {one.operation} by Go, {connections} connections: p50 {one.p50_ms:.2f} ms, {one.rate:,.0f}/s")
    return results


def table(results):
    rows = [["operation", "connections", "rate/s", "p50 ms", "p99 ms", "errors"]]
    rows += [[r.operation, str(r.connections), f"{r.rate:,.0f}", f"{r.p50_ms:.2f}", f"{r.p99_ms:.2f}", str(r.errors)]
             for r in results]
    return aligned(rows)


def verdicts(results):
    lines = []
    for r in results:
        if r.connections == 1:
            word = "reached" if r.p50_ms <= P50_MS_MAX else "missed"
            lines.append(f"{r.operation} by Go at 1 connection: p50 {r.p50_ms:.2f} ms; the aim is {P50_MS_MAX:.0f} ms at most: {word}")
    return lines
