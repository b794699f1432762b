"""What a scenario has seen, and what was wrong."""

import time

# `Retry-After` of a 503 because of the database, in seconds (docs/reference/errors.md): the service is available by then.
BACK_SECONDS_MAX = 5


class Outcome:
    """Rows of a table, and faults: a line each."""

    def __init__(self, title):
        self.title, self.rows, self.faults = title, [], []
        # When each fault was over.
        self.ends = []

    def row(self, what, value):
        self.rows.append((what, value))

    def must(self, holds, fault):
        if not holds:
            self.faults.append(fault)

    def over(self):
        """A fault is over: from now on it counts how long it takes until something is acknowledged again."""
        self.ends.append(time.monotonic())

    def must_be_back(self, ledger):
        """Something is acknowledged soon after the end of each fault."""
        took = [ledger.seconds_until_written(end) for end in self.ends]
        silent = took.count(None)
        self.must(took and not silent, f"nothing was acknowledged any more after {silent} of {len(took)} faults")
        longest = max((seconds for seconds in took if seconds is not None), default=0)
        what = "from the end of a fault to the next acknowledged write"
        self.row(what, f"{longest:.2f} s at most, {len(took)} {'faults' if len(took) > 1 else 'fault'}")
        self.must(longest <= BACK_SECONDS_MAX, f"it took {longest:.1f} s to be back, {BACK_SECONDS_MAX} s are promised")

    def must_not_panic(self, instances):
        for instance in instances:
            panics = instance.panics()
            self.must(not panics, f"{len(panics)} panics in the log of {instance.name}: {panics[:1]}")


def statuses(counter):
    return ", ".join(f"{key}: {count}" for key, count in sorted(counter.items(), key=lambda kv: str(kv[0])))
