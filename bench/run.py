"""One table: our stack beside its floor and the fastest Python peer, run in turn, with the goals as ratios.

`make bench` runs 5 rounds; `ARGS="--rounds 1 --sessions 40"` is a quick look. The peer gets an environment of its own
below `.tools/bench`. Everything runs on this machine, one process at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import pstats
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import start

BENCH = Path(__file__).parent
TREE = BENCH.parent
PEER = TREE / ".tools" / "bench" / "langgraph"
PACKAGES = ("langgraph==1.2.24", "langgraph-checkpoint-sqlite==3.1.2", "psutil")
SHOWN = ("steps_s", "p50_ms", "cpu_ms_step", "disk_kb_session", "peak_rss_mb")

Row = dict[str, Any]


@dataclass(frozen=True)
class Entrant:
    """One thing that runs the workload."""

    name: str
    command: list[str]
    concurrency: int

    @property
    def label(self) -> str:
        return f"{self.name} x{self.concurrency}"


@dataclass(frozen=True)
class Goal:
    """A bound on the ratio of two medians: `at_least` or at most."""

    says: str
    value: float
    bound: float
    at_least: bool

    @property
    def met(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def line(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"  {'met   ' if self.met else 'missed'}  {self.says}: {self.value:.2f} ({sign} {self.bound:g})"


def peer_python() -> Path | None:
    """The interpreter of the peer's environment, made when it is missing; None when it cannot be made."""
    python = PEER / "bin" / "python"
    if (PEER / ".complete").is_file():
        return python
    uv = str(TREE / ".tools" / "uv" / "bin" / "uv")
    make = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(PEER)]
    install = [uv, "pip", "install", "--quiet", "--python", str(python), *PACKAGES]
    for command in (make, install):
        if subprocess.run(command, check=False).returncode != 0:
            print("the peer's environment cannot be made: its rows are left out", file=sys.stderr)
            return None
    (PEER / ".complete").touch()
    return python


def entrants(python: Path | None) -> list[Entrant]:
    """Everything that takes part."""
    own = sys.executable
    floor = [own, str(BENCH / "peers" / "floor_sqlite.py"), "--mode", "group"]
    ours = [own, str(BENCH / "ours.py")]
    found = [
        Entrant("floor", floor, 16),
        Entrant("ours", ours, 16),
        Entrant("floor", floor, 1),
        Entrant("ours", ours, 1),
    ]
    if python is not None:
        peer = [str(python), str(BENCH / "peers" / "peer_langgraph.py"), "--saver", "sync"]
        found.insert(1, Entrant("LangGraph", peer, 16))
    return found


def run(entrant: Entrant, sessions: int, directory: str, extra: tuple[str, ...] = ()) -> Row:
    """The row of one run."""
    command = [
        *entrant.command,
        "--conc",
        str(entrant.concurrency),
        "--sessions",
        str(sessions),
        "--dir",
        directory,
        *extra,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"{entrant.label} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    row: Row = json.loads(lines[-1])
    if not row["ok"]:
        raise SystemExit(f"{entrant.label} did not do the whole workload: {row}")
    return row


def table(rows: dict[str, Row]) -> str:
    """The medians, one line per entrant."""
    heads = ("", "steps/s", "p50 ms", "CPU ms/step", "kB/session", "RSS MB")
    lines = [heads, *((label, *(f"{row[name]:g}" for name in SHOWN)) for label, row in rows.items())]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def goals(rows: dict[str, Row]) -> list[Goal]:
    """The goals of speed, on these medians."""
    ours, floor = rows["ours x16"], rows["floor x16"]
    found = [
        Goal("steps/s of the floor, 16 sessions", ours["steps_s"] / floor["steps_s"], 0.2, at_least=True),
        Goal(
            "p50 of the floor, 1 session", rows["ours x1"]["p50_ms"] / rows["floor x1"]["p50_ms"], 2.5, at_least=False
        ),
        Goal("CPU ms per step", ours["cpu_ms_step"], 0.6, at_least=False),
        Goal("kB per session", ours["disk_kb_session"], 40, at_least=False),
        Goal("RSS in MB", ours["peak_rss_mb"], 120, at_least=False),
    ]
    peer = rows.get("LangGraph x16")
    if peer is not None:
        found.insert(1, Goal("steps/s of LangGraph, 16 sessions", ours["steps_s"] / peer["steps_s"], 7, at_least=True))
        found.insert(2, Goal("CPU of LangGraph per step", ours["cpu_ms_step"] / peer["cpu_ms_step"], 1, at_least=False))
    return found


def parts(profile: str, steps: int, shown: int) -> list[str]:
    """Where the loop's thread spends its time: the inclusive parts of our own modules, with what the profiler adds."""
    stats: dict[tuple[str, int, str], Any] = vars(pstats.Stats(profile))["stats"]
    own = [(figures[3], figures[1], where) for where, figures in stats.items() if "/iii_" in where[0]]
    return [
        f"  {seconds / steps * 1e3:7.3f} ms  {calls / steps:6.1f} calls  {where[0].split('/src/')[-1]}:{where[2]}"
        for seconds, calls, where in sorted(own, reverse=True)[:shown]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Our stack beside its floor and a peer.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--dir", default=tempfile.gettempdir(), help="where the databases lie: a local disk")
    parser.add_argument("--parts", type=int, default=25, help="lines of the profile")
    a = parser.parse_args()
    everyone = entrants(peer_python())
    taken: defaultdict[str, list[Row]] = defaultdict(list)
    for turn in range(a.rounds):
        for entrant in everyone:
            # One session after the other takes sixteen times as long: fewer of them say the same.
            sessions = a.sessions if entrant.concurrency > 1 else max(a.sessions // 5, 5)
            row = run(entrant, sessions, a.dir)
            taken[entrant.label].append(row)
            print(
                f"round {turn + 1}: {entrant.label} {row['steps_s']} steps/s, {row['cpu_ms_step']} ms CPU",
                file=sys.stderr,
            )
    rows = {label: {name: median(row[name] for row in found) for name in SHOWN} for label, found in taken.items()}
    load = os.getloadavg()[1]
    print(
        f"\nmedians of {a.rounds} rounds, {a.sessions} sessions of 10 steps, {os.cpu_count()} cores, load {load:.1f}\n"
    )
    print(table(rows))
    begun = start.measure(max(a.rounds, 3))
    print(f"\nstart to ready: {begun['start_s']} s, {begun['start_cpu_s']} s CPU, median of {begun['rounds']}")
    print("\ngoals (ratios to the named row)")
    start_goal = Goal("start to ready in s", begun["start_s"], 1, at_least=False)
    print("\n".join(goal.line() for goal in [*goals(rows), start_goal]))
    ours = next(entrant for entrant in everyone if entrant.label == "ours x16")
    sessions = min(a.sessions, 60)
    with tempfile.NamedTemporaryFile(suffix=".prof") as profile:
        run(ours, sessions, a.dir, ("--profile", profile.name))
        print("\nper step on the loop's thread, inclusive, profiled (about twice the real time)")
        print("\n".join(parts(profile.name, sessions * 10, a.parts)))


if __name__ == "__main__":
    main()
