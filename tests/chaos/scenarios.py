"""What goes wrong, what must hold all the same, and where to look if it does not."""

import faults
from sabotage import sabotage


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
    "killed": Scenario(
        faults.killed, "One of two instances is killed 50 times during 10,000 acknowledged writes.", WRITES),
    "clock": Scenario(
        faults.clock, "The service's clock is an hour ahead, then an hour behind.",
        "crates/domain/src/lifecycle.rs (next_moment), crates/domain/src/report.rs"),
}
