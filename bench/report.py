"""What is printed at the end."""

import json
import os
import platform
import subprocess
from dataclasses import asdict
from pathlib import Path

from servers import ROOT

# The aims: operation at 16 connections, and the share of its ceiling.
AIMS = {"GET by id": 0.50, "PUT status, accepted": 0.60}
AIM_CONNECTIONS = 16
AIM_MILLION = 2.0


def machine(postgres, sizes):
    """One line about where and what."""
    clusters = " and ".join(f"{size:,}" for size in sizes)
    return (f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}; "
            f"PostgreSQL {postgres}, fsync on; commit {commit()}; {clusters} clusters")


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def commit():
    git = lambda *arguments: subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout.strip()
    dirty = " and changes" if git("status", "--porcelain", "--", "src", "Cargo.lock", "migrations") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + dirty


def table(results):
    """Aligned, and a Markdown table as it is. The last four columns, per request: processor time, statements, and bytes
    of WAL."""
    rows = [["operation", "connections", "rate/s", "p50 ms", "p99 ms", "errors", "ceiling/s", "ratio", "server µs",
             "database µs", "statements", "WAL bytes"]]
    for r in results:
        ceiling = [f"{r.ceiling:,.0f}", f"{r.ratio:.0%}"] if r.ceiling else ["", ""]
        rows.append([r.operation, str(r.connections), f"{r.rate:,.0f}", f"{r.p50_ms:.2f}", f"{r.p99_ms:.2f}",
                     str(r.errors), *ceiling, f"{r.server_us:.0f}", f"{r.database_us:.0f}",
                     "" if r.statements is None else f"{r.statements:.2f}", f"{r.wal_bytes:,.0f}"])
    return aligned(rows)


def aligned(rows):
    """A Markdown table: the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    align = lambda row: [cell.ljust(width) if place == 0 else cell.rjust(width)
                         for place, (cell, width) in enumerate(zip(row, widths))]
    lines = ["| " + " | ".join(align(row)) + " |" for row in rows]
    rule = ["-" * width if place == 0 else "-" * (width - 1) + ":" for place, width in enumerate(widths)]
    return "\n".join([lines[0], "| " + " | ".join(rule) + " |", *lines[1:]])


def verdicts(results, ratios):
    """Each aim, and whether this run reached it."""
    lines = []
    for r in results:
        aim = AIMS.get(r.operation)
        if aim and r.connections == AIM_CONNECTIONS:
            word = "reached" if r.ratio >= aim else "missed"
            lines.append(f"{r.operation} at {r.connections} connections: {r.ratio:.0%} of its ceiling; the aim is {aim:.0%}: {word}")
    for connections, ratio in ratios.items():
        word = "reached" if ratio <= AIM_MILLION else "missed"
        lines.append(f"page 1 of a million at {connections} connections: p50 {ratio:.2f} times that of a thousand; "
                     f"the aim is {AIM_MILLION:.0f} at most: {word}")
    return lines


def json_text(about, results, answered, ratios, searches, comparisons):
    figures = [{**asdict(result), "ratio": result.ratio} for result in results]
    about = {"machine": about, "results": figures, "by_go": [asdict(one) for one in answered], "million_p50_ratio": ratios, "searches": searches,
             "comparisons": comparisons}
    return json.dumps(about, indent=2) + "\n"
