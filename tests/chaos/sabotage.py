"""Whether the comparison of database and ledger notices what it is there for."""

import asyncio

import check
import watched
from ledger import Ledger
from watchers import Watching

ACTIVE = "SELECT id FROM resources WHERE kind = 'Cluster' AND deleted_at IS NULL"
FINALIZING = "SELECT id FROM resources WHERE kind = 'Cluster' AND deleted_at IS NOT NULL"
POOL = "SELECT id FROM resources WHERE kind = 'NodePool' AND deleted_at IS NOT NULL"
COLUMNS = "owner_id, created_at, updated_at, generation, created_by, updated_by, conditions, condition_states, labels, spec, kind"

ENTRY = "at, resource_id, action, actor, request_id, kind, name"


def another(name):
    """One more row like one that is there, with this name."""
    return (f"INSERT INTO resources (id, name, {COLUMNS}) SELECT gen_random_uuid(), {name}, {COLUMNS} "
            "FROM resources WHERE id = :it")


# Damages, each to one row: what is damaged, how, and what the comparison must say.
DAMAGES = {
    "an active cluster is gone": (
        ACTIVE, "DELETE FROM resources WHERE id = :it OR owner_id = :it", "acknowledged and is lost"),
    "a finalizing cluster is gone": (
        FINALIZING, "DELETE FROM resources WHERE id = :it OR owner_id = :it", "acknowledged and is lost"),
    "a node pool alone is gone": (POOL, "DELETE FROM resources WHERE id = :it", "acknowledged and is lost"),
    "a cluster is gone, its node pools are not": (ACTIVE, "DELETE FROM resources WHERE id = :it", "lost their owner"),
    "a change is undone": (
        ACTIVE, "UPDATE resources SET labels = '{\"n\": \"0\"}' WHERE id = :it", "has n=0, acknowledged was"),
    "a deletion is undone": (
        FINALIZING, "UPDATE resources SET deleted_at = NULL, deleted_by = NULL WHERE id = :it", "and is active"),
    "half a cascade": (
        POOL, "UPDATE resources SET deleted_at = NULL, deleted_by = NULL WHERE id = :it", "half a cascade"),
    "a deletion that nobody asked for": (
        ACTIVE, "UPDATE resources SET deleted_at = updated_at, deleted_by = 'x' WHERE id = :it", "nobody asked for it"),
    "a row twice": (FINALIZING, another("name"), "is there twice"),
    "a row that nobody asked for": (ACTIVE, another("name || '-x'"), "was invented"),
    "another id": (ACTIVE, "UPDATE resources SET id = gen_random_uuid() WHERE id = :it", "another id"),
    "a generation too many": (
        ACTIVE, "UPDATE resources SET generation = generation + 1 WHERE id = :it", "is at generation"),
    "a report is lost": (
        ACTIVE, "DELETE FROM adapter_reports WHERE resource_id = :it", "lost the report"),
    "an older report is back": (
        ACTIVE, "UPDATE adapter_reports SET observed_generation = 1 WHERE resource_id = :it", "neither acknowledged"),
    "a report of another time": (
        ACTIVE, "UPDATE adapter_reports SET reported_at = now() WHERE resource_id = :it", "neither acknowledged"),
    "conditions of a report are changed": (
        ACTIVE, "UPDATE adapter_reports SET conditions = '[]' WHERE resource_id = :it", "neither acknowledged"),
    "a report that nobody sent": (
        ACTIVE, "UPDATE adapter_reports SET adapter = 'other' WHERE resource_id = :it", "that nobody sent"),
    "a report without its conditions": (
        ACTIVE, "UPDATE resources SET conditions = '[]' WHERE id = :it", "for the report of"),
    "reports on what is gone": (
        ACTIVE, "DELETE FROM resources WHERE id = :it", "on resources that are not there"),
    "an audit entry is lost": (
        ACTIVE, "DELETE FROM audit_entries WHERE resource_id = :it AND action = 'create'", "audit entries"),
    "a patch is not in the audit trail": (
        ACTIVE, "DELETE FROM audit_entries WHERE resource_id = :it AND action = 'patch'", "audit entries of patches"),
    "a removal is twice in the audit trail": (
        "SELECT resource_id FROM audit_entries WHERE action = 'hard_delete'",
        f"INSERT INTO audit_entries ({ENTRY}) SELECT {ENTRY} FROM audit_entries WHERE resource_id = :it AND action = 'hard_delete'",
        "audit trail says"),
    "a total is wrong": (
        ACTIVE, "UPDATE resource_counts SET count = count + 1 "
                "WHERE kind = (SELECT kind FROM resources WHERE id = :it)", "another total"),
}


# The same of what watchers were sent: which watcher, what becomes of its events, and what the comparison must say.
SENT = {
    "a change is lost": ("all", lambda events: drop(events, "MODIFIED"), "the generations|was last sent|due was"),
    "the last event is lost": ("all", lambda events: events.pop(), "due was|too many"),
    "an event twice": ("all", lambda events: events.insert(9, events[8]), "comes after revision"),
    "two events in the other order": ("all", lambda events: swap(events), "comes after"),
    "a creation is lost": ("all", lambda events: drop(events, "ADDED"), "was sent as"),
    "a removal is lost": ("all", lambda events: drop(events, "DELETED"), "removed: True"),
    "everything about a resource is lost": ("all", lambda events: forget(events), "was sent nothing about"),
    "an event is lost after a break": (
        "all, breaks off", lambda events: events.pop(len(events) // 2), "due was"),
    "an event comes again after a break": (
        "all, breaks off a stream", lambda events: events.insert(7, events[6]), "due was"),
    "a search does not say that a resource left it": (
        "search", lambda events: drop(events, "DELETED"), "due was|missing"),
    "a resource comes into a search as if it had been there": (
        "search", lambda events: relabel(events, "ADDED", "MODIFIED"), "due was"),
    "a deleted resource stays in the list of active ones": (
        "active", lambda events: drop(events, "DELETED"), "due was|missing"),
    "a list lacks a resource": ("late", None, "is missing in the list"),
}


def swap(events):
    events[4], events[5] = events[5], events[4]


def drop(events, kind):
    """Removes the first of that kind, if there is one."""
    events.remove(next((event for event in events if event.kind == kind), events[0]))


def forget(events):
    events[:] = [event for event in events if event.id != events[0].id]


def relabel(events, kind, other):
    next(event for event in events if event.kind == kind).kind = other


def tamper(watching, stored):
    """Damages what watchers were sent, one thing at a time; gives each with what the comparison must say and says."""
    removed = {event.id for event in watching.all[0].events if event.kind == "DELETED"}
    for what, (name, damage, fault) in SENT.items():
        watcher = next(watcher for watcher in watching.all if watcher.name == name)
        events, listed = list(watcher.events), list(watcher.listed)
        kinds = [event.kind for event in events]
        if damage is None:
            # One that a list may not lack because it was removed at that moment.
            kept = next(event for event in reversed(listed) if event.id not in removed)
            watcher.listed = [event for event in listed if event.id != kept.id]
        else:
            damage(watcher.events)
        yield what, fault.split("|"), watching.faults(stored)
        watcher.events, watcher.listed = events, listed
        for event, kind in zip(events, kinds):
            event.kind = kind


async def sabotage(world, options, outcome):
    outcome.title = "Damage that the comparison must notice"
    instance = await asyncio.to_thread(world.serve)
    ledger, watching = Ledger([instance.address], options.seed), Watching([instance.address], options.seed)
    await watching.begin(outcome)
    writing = asyncio.create_task(ledger.run())
    await asyncio.sleep(options.seconds or 5)
    await watching.begin_late(outcome)
    await asyncio.sleep(1)
    ledger.stopping = True
    await writing
    await watching.end(outcome, world)
    await asyncio.to_thread(instance.stop)
    unharmed = check.faults(ledger, world.postgres, world.database)
    outcome.must(not unharmed, f"the comparison finds fault where there is none: {unharmed[:1]}")
    noticed = 0
    for what, (where, damage, fault) in DAMAGES.items():
        damaged = Damaged(world.postgres, where, damage)
        found = await asyncio.to_thread(check.faults, ledger, damaged, world.database)
        is_noticed = any(fault in line for line in found)
        noticed += is_noticed
        outcome.must(is_noticed, f"{what}: the comparison does not say \"{fault}\", but {found[:2]}")
    stored = await asyncio.to_thread(watched.Stored, world.postgres, world.database)
    for what, said, found in tamper(watching, stored):
        is_noticed = any(fault in line for fault in said for line in found)
        noticed += is_noticed
        outcome.must(is_noticed, f"{what}: the comparison says none of {said}, but {found[:2]}")
    outcome.row("acknowledged writes", ledger.count)
    outcome.row("damages noticed", f"{noticed} of {len(DAMAGES) + len(SENT)}")


class Damaged:
    """A PostgreSQL in which one row is damaged, for as long as it takes to look: every statement sees the damage in a
    transaction that is rolled back."""

    def __init__(self, postgres, where, damage):
        self.postgres = postgres
        # Without triggers and foreign keys, which would prevent it.
        self.damage = f"""
            BEGIN;
            SET LOCAL session_replication_role = replica;
            SELECT id AS it FROM ({where}) AS all_of_them (id) ORDER BY id LIMIT 1 \\gset
            {damage.replace(":it", ":'it'")};"""

    def psql(self, database, sql):
        return self.postgres.psql(database, sql=f"{self.damage}\n{sql};\nROLLBACK;")
