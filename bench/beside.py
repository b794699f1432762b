"""Two binaries side by side: what a request costs in each, in processor time.

Each has a PostgreSQL of its own, migrates it itself and seeds it alike. A round measures the old binary, then the
new one, so that both meet the same noise; the ratio of a round compares their sums of server and database time.
"""

import math
import statistics
from dataclasses import dataclass

import searches
from operations import OPERATIONS
from report import aligned
from searches import CONNECTIONS_MAX, FEW_CLUSTERS, SEARCHES
from servers import Failed, Postgres

# A request may cost this many times the old cost. It is slower when the whole interval is above.
RATIO_MAX = 1.05
PAGE_400_CLUSTERS = 8000


@dataclass
class Cost:
    """One measurement of one binary, per request."""

    server_us: float
    database_us: float
    wal_bytes: float
    # None where PostgreSQL has no pg_stat_statements.
    statements: float | None
    errors: int

    @property
    def sum_us(self):
        return self.server_us + self.database_us


@dataclass
class Comparison:
    """One operation at one number of connections: every round of both binaries."""

    operation: str
    connections: int
    old: list[Cost]
    new: list[Cost]

    @property
    def ratios(self):
        return [new.sum_us / old.sum_us for old, new in zip(self.old, self.new)]

    @property
    def ratio(self):
        return statistics.median(self.ratios)

    @property
    def interval(self):
        """Confidence interval of the ratio, 90 % at least: of five rounds the lowest and the highest ratio, of more
        rounds without those at the ends."""
        rounds, dropped = len(self.ratios), 0
        outside = lambda dropped: 2 * sum(math.comb(rounds, place) for place in range(dropped + 1)) / 2**rounds
        while outside(dropped + 1) <= 0.1:
            dropped += 1
        ratios = sorted(self.ratios)
        return ratios[dropped], ratios[-1 - dropped]

    @property
    def is_slower(self):
        return self.interval[0] > RATIO_MAX

    @property
    def errors(self):
        return sum(cost.errors for cost in [*self.old, *self.new])


def postgres():
    """A PostgreSQL that does no work of its own during a measurement."""
    return Postgres(autovacuum="off")


def subjects(only, clusters):
    """What is measured. Searches come first: the operations change what they find."""
    found = [subject for subject in [*SEARCHES, *OPERATIONS] if subject.key in only]
    if clusters < FEW_CLUSTERS:
        found = [subject for subject in found if subject not in SEARCHES]
    if clusters < PAGE_400_CLUSTERS:
        found = [subject for subject in found if subject.key != "page400"]
    if not found:
        raise Failed(f"nothing is left to be measured in {clusters:,} clusters")
    return found


def compare(found, benches, connections, rounds, say):
    """Every operation at every number of connections; `benches` are the old binary's and the new one's."""
    comparisons = []
    for subject in found:
        for count in connections:
            if subject in SEARCHES and count > CONNECTIONS_MAX:
                continue
            costs = [[cost(subject, bench, count) for bench in benches] for _ in range(rounds)]
            name = f"search: {subject.key}" if subject in SEARCHES else subject.title
            comparison = Comparison(name, count, *map(list, zip(*costs)))
            comparisons.append(comparison)
            ratios = " ".join(f"{ratio:.2f}" for ratio in comparison.ratios)
            say(f"  {name}, {count} connections: {comparison.ratio:.2f} ({ratios})")
    return comparisons


def cost(subject, bench, connections):
    """What a request costs in one binary."""
    fleet = bench.fleet
    # No measurement pays for the dead rows of the one before.
    fleet.postgres.psql(fleet.database, sql="VACUUM")
    if subject not in SEARCHES:
        measured = bench.wrk(subject, connections)
        return Cost(measured.server_us, measured.database_us, measured.wal_bytes, measured.statements, measured.errors)
    before = bench.counters()
    result = searches.measure(subject, fleet, connections, bench.seconds)
    wal_bytes, statements = ((after - earlier) / max(result["requests"], 1) for after, earlier in zip(bench.counters(), before))
    statements = statements if fleet.postgres.counts_statements else None
    return Cost(result["server_us"], result["database_us"], wal_bytes, statements, result["errors"])


def table(comparisons):
    """Aligned, and a Markdown table as it is. Medians of the rounds; µs of processor time per request."""
    head = ["operation", "connections"]
    head += [f"{which} {figure}" for which in ("old", "new") for figure in ("server µs", "database µs", "sum µs")]
    head += ["ratio", "interval", "statements", "WAL bytes", "errors", "verdict"]
    rows = [head]
    for c in comparisons:
        middle = lambda costs, figure: statistics.median(getattr(cost, figure) for cost in costs)
        both = lambda figure, digits: " → ".join(f"{middle(costs, figure):,.{digits}f}" for costs in (c.old, c.new))
        times = [f"{middle(costs, figure):.0f}" for costs in (c.old, c.new)
                 for figure in ("server_us", "database_us", "sum_us")]
        statements = both("statements", 2) if c.old[0].statements is not None else "not counted"
        rows.append([c.operation, str(c.connections), *times, f"{c.ratio:.2f}", "{:.2f} to {:.2f}".format(*c.interval),
                     statements, both("wal_bytes", 0), str(c.errors), "slower" if c.is_slower else "ok"])
    return aligned(rows)


def verdicts(comparisons):
    slower = [f"{c.operation} at {c.connections} connections: {c.ratio:.2f} times the old cost, "
              f"{c.interval[0]:.2f} at least; {RATIO_MAX} is allowed: slower" for c in comparisons if c.is_slower]
    return slower or [f"No operation is slower: every interval begins at {RATIO_MAX} or below."]


def figures(comparisons):
    """As JSON has it."""
    return [{"operation": c.operation, "connections": c.connections, "ratio": c.ratio, "interval": c.interval,
             "is_slower": c.is_slower, "old": [vars(cost) for cost in c.old], "new": [vars(cost) for cost in c.new]}
            for c in comparisons]
