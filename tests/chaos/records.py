"""What is known of resources and of reports on them, and what may therefore be stored.

What was acknowledged is certain. What was sent without an answer, or was answered 503, may have happened or not:
it is kept as `maybe` until something that is certain settles it.
"""

# Adapters that each kind waits for, of the kinds that are built in (docs/reference/configuration.md, `entities`).
REQUIRED = {
    "Cluster": ("validation", "dns", "pullsecret", "hypershift"),
    "NodePool": ("validation", "hypershift"),
}


class Report:
    """What an adapter said. `at` is its time as it was sent; None: the service took its own."""

    def __init__(self, adapter, generation, at, conditions):
        self.adapter, self.generation, self.at, self.conditions = adapter, generation, at, conditions

    @property
    def finalizes(self):
        return any(c["type"] == "Finalized" and c["status"] == "True" for c in self.conditions)

    def body(self):
        body = {"adapter": self.adapter, "observed_generation": self.generation, "conditions": self.conditions}
        return body if self.at is None else {**body, "observed_time": self.at.isoformat()}

    def is_told_by(self, generation, conditions):
        """Whether a generation and conditions, as they are answered and stored, are those of this report."""
        said = lambda all_: sorted((c["type"], c["status"], c.get("reason")) for c in all_)
        return generation == self.generation and said(conditions) == said(self.conditions)


class Said:
    """What one adapter said of one resource: the last report that was accepted, and those that may have been."""

    def __init__(self):
        self.accepted, self.maybe = None, []

    def accept(self, report):
        self.accepted = report
        # The stored generation of an adapter never falls: what may have come before is settled by what came now.
        self.maybe = [other for other in self.maybe if other.generation > report.generation]

    def may_be(self):
        """The reports one of which is stored; None among them: there may be none."""
        return [self.accepted, *self.maybe]

    def may_finalize(self):
        return any(report and report.finalizes for report in self.may_be())

    def must_finalize(self):
        return all(report and report.finalizes for report in self.may_be())


class Record:
    """The known state of one resource. A value in `maybe` was sent, and its result is unknown."""

    def __init__(self, name, kind, owner=None):
        self.name, self.kind, self.owner = name, kind, owner
        self.children = []
        if owner is not None:
            owner.children.append(self)
        self.id = None
        # It is there though its id was never told: a repeated request met the effect of the first.
        self.exists = False
        # Sent, and its result is unknown.
        self.maybe_exists = False
        self.generation = 1
        self.value, self.maybe = "0", set()
        self.patches = self.patches_maybe = 0
        self.is_deleted = self.maybe_deleted = False
        # An answer has said so.
        self.is_gone = False
        self.said = {}

    @property
    def path(self):
        return f"/{self.kind.lower()}s/{self.id}"

    def of(self, adapter):
        return self.said.setdefault(adapter, Said())

    def must_be_finalizing(self):
        return self.is_deleted or self.owner is not None and self.owner.must_be_finalizing()

    def may_be_finalizing(self):
        owner = self.owner
        return self.is_deleted or self.maybe_deleted or owner is not None and owner.may_be_finalizing()

    def may_be_gone(self):
        """A finalizing resource goes when every required adapter has said `Finalized=True` at its generation and
        no child is left, and never otherwise (docs/reference/api.md, "Delete")."""
        said = all(self.of(adapter).may_finalize() for adapter in REQUIRED[self.kind])
        children = all(not child.exists or child.may_be_gone() for child in self.children)
        return self.may_be_finalizing() and said and children

    def must_be_gone(self):
        """With the request that brought the last of these about."""
        said = all(self.of(adapter).must_finalize() for adapter in REQUIRED[self.kind])
        children = all(not (child.exists or child.maybe_exists) or child.must_be_gone() for child in self.children)
        return self.is_gone or self.must_be_finalizing() and said and children

    def is_certain(self):
        """Whether all that was asked of it and its children was answered: only then does it make sense to go on
        to the end of its life."""
        certain = self.id is not None and not self.maybe_deleted and not self.maybe
        return certain and all(child.is_certain() for child in self.children)
