"""What was acknowledged, by whom and when: written down by `writers.py`, compared with the database by `check.py`.

What was not acknowledged may be there or not; what nobody asked for must not be.
"""

import asyncio
import bisect
import time
from collections import Counter

from writers import Writer

WRITERS = 8


class Ledger:
    def __init__(self, addresses, seed):
        self.addresses, self.seed = addresses, seed
        self.records = []
        self.acknowledged = Counter()
        self.statuses = Counter()
        # When each write was acknowledged, in order, and how many of them by which address.
        self.moments, self.by_address = [], Counter()
        self.wrong = []
        # Answers that are those of an earlier attempt with the same key.
        self.replayed = 0
        self.stopping = False
        # Names of one run are not those of another.
        self.runs = 0
        # What each writer left behind, to be changed in a later run: nobody else changes it.
        self.left = {}
        # Adapters' clocks differ from the service's by more than a report's time may.
        self.clocks_differ = False

    async def run(self):
        """Writes until stopped. A fault of a writer itself ends it, too."""
        self.stopping = False
        self.runs += 1
        try:
            await asyncio.gather(*(Writer(self, number).run() for number in range(WRITERS)))
        finally:
            self.stopping = True

    def acknowledge(self, what, address):
        self.acknowledged[what] += 1
        self.moments.append(time.monotonic())
        self.by_address[address] += 1

    @property
    def count(self):
        return len(self.moments)

    def seconds_until_written(self, moment):
        """How long it took from a moment to the next acknowledged write; None if none followed."""
        following = bisect.bisect_right(self.moments, moment)
        return self.moments[following] - moment if following < len(self.moments) else None
