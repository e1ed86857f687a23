"""`iii-harness`: the worker as a process of its own, connected to an engine (harness-loop 1.2, packaging 11, 12).

Exit codes: 0 after SIGTERM or SIGINT, 1 when the worker cannot start, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from iii_harness.app import install
from iii_harness.manifest import DESCRIPTION, NAME, manifest
from iii_harness.settings import BadConfig, seed_of_yaml
from iii_kit import logs, process
from iii_kit.world import real_world

PROGRAM: Final = "iii-harness"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the worker until it is told to end."""
    asked = _parser().parse_args(arguments)
    if asked.manifest:
        sys.stdout.write(json.dumps(manifest(), indent=2) + "\n")
        return
    logs.configure(os.environ.get("III_LOG_LEVEL", "info"))
    try:
        seed = None if asked.config is None else seed_of_yaml(Path(asked.config).read_text("utf-8"))
    except (BadConfig, OSError, UnicodeDecodeError) as error:
        process.fail(PROGRAM, f"--config {asked.config}: {error}")
    connect = process.options(NAME, DESCRIPTION, asked.url)
    process.run(PROGRAM, connect, lambda bus: install(bus, real_world(), seed, namespace=connect.namespace))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(PROGRAM, description=DESCRIPTION)
    parser.add_argument("--url", help="the engine's address; else III_URL, else ws://127.0.0.1:49134")
    parser.add_argument("--config", metavar="FILE", help="YAML that seeds the configuration entry `harness` once")
    parser.add_argument("--manifest", action="store_true", help="print name, version and defaults as JSON, and exit")
    return parser
