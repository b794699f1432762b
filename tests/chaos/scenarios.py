"""What goes wrong, what must hold all the same, and where to look if it does not."""

import faults
from flood import searched
from garbage import garbage
from sabotage import sabotage
from slow import slow


class Scenario:
    """`run(world, options, outcome)` writes down what it sees, and what is wrong."""

    def __init__(self, run, claim, look):
        self.run, self.claim, self.look = run, claim, look


# Everything that has to do with what was acknowledged.
WRITES = "the service's log, then crates/storage/src and docs/reference/errors.md (503)"

ALL = {
    "sabotage": Scenario(
        sabotage, "The comparison that the scenarios below rely on notices damage of every kind.",
        "tests/chaos/check.py: it has overlooked the damage that is named"),
    "garbage": Scenario(
        garbage, "10,000 malformed requests of every kind, then the same and bad tokens where tokens are asked for.",
        "tests/chaos/malformed.py makes the kind that is named; memory: crates/server-kit/src/http/body.rs, crates/server-kit/src/http/memory.rs"),
    "slow": Scenario(
        slow, "1,000 clients that are slow on purpose, of six sorts in turn, beside normal traffic.",
        "crates/server-kit/src/http/connection.rs (who is cut off), crates/server-kit/src/http/memory.rs (what is held); was the machine busy otherwise (first row)?"),
    "stopped": Scenario(faults.stopped, "PostgreSQL is stopped for 10 s.", WRITES),
    "restarted": Scenario(faults.restarted, "PostgreSQL is restarted 20 times.", WRITES),
    "paused": Scenario(faults.paused, "Every process of PostgreSQL is frozen for 10 s.", WRITES),
    "crowded": Scenario(faults.crowded, "Others take every connection that PostgreSQL has, for 5 s.", WRITES),
    "cut": Scenario(faults.cut, "Connections to PostgreSQL are cut in the middle of transactions, for 20 s.", WRITES),
    "killed": Scenario(
        faults.killed, "One of two instances is killed 50 times during 10,000 acknowledged writes.", WRITES),
    "searched": Scenario(
        searched, "20 clients with searches that run as long as they may: no report, read or write is refused.",
        "crates/storage/src/lane.rs, crates/storage/src/list.rs (may_be_slow)"),
    "clock": Scenario(
        faults.clock, "The service's clock is an hour ahead, then an hour behind.",
        "crates/domain/src/lifecycle.rs (next_moment), crates/domain/src/report.rs"),
}
