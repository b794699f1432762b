"""Processes of this machine by what /proc says of them (Linux)."""

import os
from pathlib import Path


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
