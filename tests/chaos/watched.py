"""Compares what watchers were sent with the database, with the audit trail, and with each other."""

import json
from collections import defaultdict

ROWS = """
    SELECT row_to_json(r) FROM (
        SELECT id, generation, revision, labels ->> 'n' AS value, deleted_at IS NOT NULL AS is_deleted, conditions
        FROM resources WHERE name NOT LIKE 'searched-%') r"""
AUDIT = """
    SELECT row_to_json(a) FROM (
        SELECT resource_id, action, generation_after FROM audit_entries WHERE name NOT LIKE 'searched-%'
        ORDER BY sequence) a"""


def number(position):
    """A position as what it is compared by."""
    era, _, number_of_era = position.partition("-")
    return int(era), int(number_of_era)


def is_active(shown):
    return not shown.get("deleted_time")


def is_searched(shown):
    return shown["kind"] == "Cluster" and shown.get("labels", {}).get("n") == "2"


def state(generation, value, is_deleted, conditions):
    """What a change that is an event may change. Times of conditions move without one."""
    members = ("type", "status", "reason", "message", "observed_generation")
    return generation, value, is_deleted, sorted(json.dumps([c.get(m) for m in members]) for c in conditions)


class Event:
    """One line of a watch about a resource."""

    def __init__(self, message):
        shown = message["object"]
        self.kind, self.shown = message["type"], shown
        self.id, self.name = shown["id"], shown["name"]
        self.position = number(message["position"]) if "position" in message else None
        # `"g3.r17"`: generation and revision.
        generation, _, revision = message["etag"].strip('"').partition(".")
        self.generation, self.revision = int(generation[1:]), int(revision[1:])
        # Made by a scenario before anybody watched.
        self.is_of_scenario = self.name.startswith("searched-")

    def state(self):
        shown = self.shown
        conditions = (shown.get("status") or {}).get("conditions") or []
        return state(shown["generation"], shown["labels"].get("n"), not is_active(shown), conditions)

    def __str__(self):
        return f"{self.kind} {self.name} at {self.position}, generation {self.generation}, revision {self.revision}"


class Stored:
    """What the database holds when all is quiet."""

    def __init__(self, postgres, database):
        read = lambda sql: [json.loads(line) for line in postgres.psql(database, sql=sql).splitlines()]
        self.rows = {row["id"]: row for row in read(ROWS)}
        self.audit = defaultdict(list)
        for entry in read(AUDIT):
            self.audit[entry["resource_id"]].append((entry["action"], entry["generation_after"]))


def against_stored(events, stored):
    """Faults of the events of a watcher that has seen everything since before the first write."""
    yield from of_order(events)
    by_id = defaultdict(list)
    for event in events:
        by_id[event.id].append(event)
    for lost in stored.audit.keys() - by_id.keys():
        yield f"was sent nothing about {lost}, of which the audit trail says {stored.audit[lost]}"
    for id_, of_one in by_id.items():
        for fault in _of_one(of_one, stored.rows.get(id_), stored.audit.get(id_, [])):
            yield f"{of_one[0].name} {fault}"


def of_order(events):
    """Positions rise, and no event of a resource has an older state than the one before it."""
    position, revisions = (-1, -1), {}
    for event in events:
        if event.position <= position:
            yield f"{event} comes after {position}"
        position = event.position
        before = revisions.get(event.id, 0)
        # The last state in the list may be the one that was sent before.
        if event.revision < before or event.revision == before and event.kind != "DELETED":
            yield f"{event} comes after revision {before}"
        revisions[event.id] = event.revision


def _of_one(events, row, audit):
    kinds = [event.kind for event in events]
    if kinds[0] != "ADDED" or "ADDED" in kinds[1:] or "DELETED" in kinds[:-1]:
        yield f"was sent as {kinds}"
    is_removed = any(action == "hard_delete" for action, _ in audit)
    if is_removed != (kinds[-1] == "DELETED"):
        yield f"was sent as {kinds}, removed: {is_removed}"
    generations = []
    for event in events:
        if event.generation not in generations[-1:]:
            generations.append(event.generation)
    changes = [generation for action, generation in audit if action != "hard_delete"]
    if generations != changes:
        yield f"was sent with the generations {generations}, the audit trail says {changes}"
    if row is None:
        if not is_removed:
            yield "is gone, and the audit trail does not say so"
        return
    last = events[-1]
    stored = state(row["generation"], row["value"], row["is_deleted"], row["conditions"])
    if last.state() != stored:
        yield f"was last sent as {last.state()}, and is {stored}"
    if last.revision > row["revision"]:
        yield f"was sent with revision {last.revision}, and has {row['revision']}"


def against_another(watcher, everything):
    """Faults of a watcher, compared with all events of one that has seen everything: it was sent exactly those that its
    list makes of them."""
    due = _events_of_list(everything, watcher.shows)
    if watcher.has_list:
        if watcher.complete is None:
            yield "the list was never complete"
            return
        yield from _of_list(watcher, everything)
        due = [event for event in due if event[1] > watcher.complete]
    sent = [(event.kind, event.position, event.id) for event in watcher.events]
    yield from _difference(sent, due)
    states = {event.position: event for event in everything}
    for event in watcher.events:
        same = states.get(event.position)
        if same and event.kind != "DELETED" and (event.revision, event.state()) != (same.revision, same.state()):
            yield f"{event} has another state than {same}"


def _events_of_list(events, shows):
    """What a list makes of all changes: resources come into it and leave it."""
    shown, made = {}, []
    for event in events:
        was, is_ = event.id in shown, event.kind != "DELETED" and shows(event.shown)
        if not was and not is_:
            continue
        kind = "MODIFIED" if was and is_ else "ADDED" if is_ else "DELETED"
        made.append((kind, event.position, event.id))
        if is_:
            shown[event.id] = event
        else:
            del shown[event.id]
    return made


def _difference(sent, due):
    """The first place where two lists differ."""
    for at, (one, other) in enumerate(zip(sent, due)):
        if one != other:
            yield f"event {at} is {one}, due was {other}"
            return
    if len(sent) != len(due):
        more, what = (sent, "too many") if len(sent) > len(due) else (due, "missing")
        count = abs(len(sent) - len(due))
        yield f"{count} events are {what}, the first is {more[min(len(sent), len(due))]}"


def _of_list(watcher, everything):
    """Each resource is listed as it was at the position where the list is complete, or at a later one: what changed between
    the position and the list is sent again afterwards (docs/guides/watch.md)."""
    listed, possible = {}, {}
    for event in watcher.listed:
        if event.kind != "ADDED" or event.id in listed:
            yield f"{event} is in the list after {listed.get(event.id)}"
        listed[event.id] = event
    for event in everything:
        shown = event if event.kind != "DELETED" and watcher.shows(event.shown) else None
        if event.position <= watcher.complete:
            possible[event.id] = [shown]
        else:
            possible.setdefault(event.id, [None]).append(shown)
    for id_, states in possible.items():
        event = listed.pop(id_, None)
        if event is None and None not in states:
            yield f"{states[0]} is missing in the list at {watcher.complete}"
        elif event and event.state() not in [state.state() for state in states if state]:
            yield f"{event} is listed in another state than at {watcher.complete} and later"
    for event in listed.values():
        yield f"{event} is in the list, and was never sent"
