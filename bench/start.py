"""How long `iii-stack up` takes until it is ready, on a data directory that is there: a new process each time.

Prints one JSON object: medians of the seconds from exec to the ready line, and of the CPU seconds by the time that it
was read, which on a busy machine holds some of the warm-up that follows. Bytecode is there, and files are in memory.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

TREE = Path(__file__).parent.parent
PROGRAM = Path(sys.executable).with_name("iii-stack")
OPTIONS = ("up", "--json", "--port", "0", "--page-port", "0")


def started(directory: str) -> tuple[float, float]:
    """Seconds and CPU seconds of one start; the stack has ended afterwards."""
    began = time.perf_counter()
    stack = subprocess.Popen([str(PROGRAM), *OPTIONS, "--data-dir", directory], stdout=subprocess.PIPE)
    assert stack.stdout is not None
    try:
        if not json.loads(stack.stdout.readline())["ready"]:
            raise SystemExit("the stack is not ready")
        ready = time.perf_counter() - began
        cpu = _cpu_s(stack.pid)
    finally:
        stack.send_signal(signal.SIGTERM)
        stack.communicate()
    return ready, cpu


def _cpu_s(pid: int) -> float:
    if not Path("/proc").is_dir():
        return float("nan")
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(rounds: int) -> dict[str, Any]:
    """The medians of some starts; the first, which makes the data directory, does not count."""
    # Of sources that changed since, where Python is told to write none by itself.
    for sources in sorted(TREE.glob("*/*/src")):
        compileall.compile_dir(sources, quiet=1)
    with tempfile.TemporaryDirectory() as directory:
        data = f"{directory}/data"
        runs = [started(data) for _ in range(rounds + 1)][1:]
    seconds, cpu = (round(median(column), 3) for column in zip(*runs, strict=True))
    return {"start_s": seconds, "start_cpu_s": cpu, "rounds": rounds}


def main() -> None:
    """The medians as one JSON object."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=9)
    print(json.dumps(measure(arguments.parse_args().rounds)))


if __name__ == "__main__":
    main()
