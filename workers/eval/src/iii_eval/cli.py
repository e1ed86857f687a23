"""`iii-eval`: the worker as a process of its own, connected to an engine (eval 1.1, packaging 11, 12).

Exit codes: 0 after SIGTERM or SIGINT, 1 when the worker cannot start, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from iii_eval.app import install
from iii_eval.manifest import DESCRIPTION, NAME, manifest
from iii_kit import logs, process
from iii_kit.world import real_world

PROGRAM: Final = "iii-eval"

log = logs.logger(__name__)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the worker until it is told to end."""
    asked = _parser().parse_args(arguments)
    if asked.manifest:
        sys.stdout.write(json.dumps(manifest(), indent=2) + "\n")
        return
    logs.configure(os.environ.get("III_LOG_LEVEL", "info"))
    if asked.config is not None:
        _look_at(Path(asked.config))
    process.run(PROGRAM, process.options(NAME, DESCRIPTION, asked.url), lambda bus: install(bus, real_world()))


def _look_at(path: Path) -> None:
    """Every worker is given its block of the engine's configuration; eval has no settings and says so."""
    try:
        block: Any = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        process.fail(PROGRAM, f"--config {path}: {error}")
    if block:
        log.warning("settings_ignored", file=str(path), why="eval has no settings; limits travel in its requests")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(PROGRAM, description=DESCRIPTION)
    parser.add_argument("--url", help="the engine's address; else III_URL, else ws://127.0.0.1:49134")
    parser.add_argument(
        "--config", metavar="FILE", help="YAML block of the engine's configuration; eval has no settings"
    )
    parser.add_argument("--manifest", action="store_true", help="print name, version and defaults as JSON, and exit")
    return parser
