"""Processes of this machine by what /proc says of them (Linux)."""

import os
import signal
import time
from pathlib import Path

STOPPED = "T"
ENDED = "Z"


def stats():
    """The pid of each process, and its fields in /proc from the third on: state, parent, …"""
    # No glob: it fails when a process ends between its two looks.
    for name in os.listdir("/proc") if Path("/proc").exists() else []:
        if not name.isdigit():
            continue
        try:
            head, _, rest = Path(f"/proc/{name}/stat").read_text().rpartition(")")
        except OSError:
            continue  # gone in the meantime
        yield int(head.split()[0]), rest.split()


def cpu_seconds(root):
    """What a process, its children and those before them have used so far; 0 where there is no /proc."""
    while True:
        ended = _ended_ticks(root)
        ticks = 0
        for pid, fields in stats():
            if root in (pid, int(fields[1])):
                ticks += sum(map(int, fields[11:13]))  # user and system
        # A child that ended in between was counted twice or not at all.
        if _ended_ticks(root) == ended:
            return (ticks + ended) / os.sysconf("SC_CLK_TCK")


def _ended_ticks(root):
    """What the children that have ended had used."""
    try:
        fields = Path(f"/proc/{root}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[13:15]))


def family(root):
    """The state of a process and of everything that descends from it, by pid."""
    parents, states = {}, {}
    for pid, fields in stats():
        states[pid], parents[pid] = fields[0], int(fields[1])
    members = {root} & states.keys()
    while more := {pid for pid, parent in parents.items() if parent in members} - members:
        members |= more
    return {pid: states[pid] for pid in members}


def freeze(root, seconds=5):
    """Stops a process and all its descendants where they are; gives how many that are.

    The backends of PostgreSQL are sessions of their own, so that no signal to a group reaches them. Looks again
    until nobody runs: who is still running may have begun another. `TimeoutError` if that does not end."""
    deadline = time.monotonic() + seconds
    while True:
        states = family(root)
        running = [pid for pid, state in states.items() if state not in (STOPPED, ENDED)]
        if not running:
            return len(states)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {running} do not stop")
        # The root first: it is the one that begins others.
        for pid in sorted(running, key=lambda pid: pid != root):
            send(pid, signal.SIGSTOP)
        time.sleep(0.002)


def thaw(root):
    """Lets a process and all its descendants go on; the root last, so that it finds them running."""
    for pid in sorted(family(root), key=lambda pid: pid == root):
        send(pid, signal.SIGCONT)


def send(pid, number):
    """A signal to a process that may have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
