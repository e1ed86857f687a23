"""`iii-stack doctor`: what is reachable, which providers have a key, where data lies."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from iii_kit.errors import BusError
from iii_stack.data_directory import DataDirectory, locate
from iii_stack.errors import StackError
from iii_stack.output import AsJson, console, print_json
from iii_stack.reach import Reach, with_bus

if TYPE_CHECKING:
    from iii_stack.asking import Asking

SERVED = {
    "engine": "engine::functions::list",
    "state": "state::get",
    "configuration": "configuration::get",
    "queue": "engine::queue::enqueue",
    "sessions": "session::append",
    "router": "router::chat",
    "harness": "harness::send",
    "eval": "eval::compare-sessions",
}
"""Parts of the stack, each by a function that only it serves."""

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")
"""Variables that configure a provider. Only whether they are set is told."""


def doctor(*, reach: Reach = Reach(), as_json: AsJson = False) -> int:
    """Look around: versions, the data directory, the bus, its parts and the providers with a key.

    Exits with 1 when no bus answers or a part is missing.

    Try:

        iii-stack doctor

        iii-stack doctor --json
    """
    report = {**_surroundings(reach), **_of_bus(reach)}
    if as_json:
        print_json(report)
    else:
        _print(report)
    return 0 if report["bus"]["reachable"] and all(report["parts"].values()) else 1


def _surroundings(reach: Reach) -> dict[str, Any]:
    # Here, since the help of all commands imports this module.
    import sqlite3

    directory = DataDirectory(locate(reach.data_dir))
    database = directory.database
    return {
        "versions": {
            "python": ".".join(str(part) for part in sys.version_info[:3]),
            "sqlite": sqlite3.sqlite_version,
            "iii-stack": _version("iii-stack"),
            "iii-sdk": _version("iii-sdk"),
        },
        "data": {
            "directory": str(directory.path),
            "exists": directory.path.is_dir(),
            "in_use": directory.is_held(),
            "database_bytes": database.stat().st_size if database.is_file() else 0,
        },
        "page": (directory.running() or {}).get("page"),
        "environment": {name: bool(os.environ.get(name, "").strip()) for name in KEYS},
    }


def _of_bus(reach: Reach) -> dict[str, Any]:
    try:
        url = reach.url()
        return with_bus(reach, lambda bus: _examine(bus, url))
    except (StackError, BusError) as error:
        text = error.text if isinstance(error, StackError) else error.message
        return {"bus": {"reachable": False, "problem": text}, "parts": {}, "providers": [], "models": []}


async def _examine(bus: Asking, url: str) -> dict[str, Any]:
    listed = await bus.call("engine::functions::list", {"include_internal": True})
    ids = {function["function_id"] for function in listed["functions"]}
    parts = {part: function_id in ids for part, function_id in SERVED.items()}
    providers: list[dict[str, Any]] = []
    models: list[str] = []
    if parts["router"]:
        providers = (await bus.call("router::provider::list", {}))["providers"]
        rows = (await bus.call("router::models::list", {}))["models"]
        models = [f"{row['provider']}/{row['id']}" for row in rows]
    return {"bus": {"reachable": True, "url": url}, "parts": parts, "providers": providers, "models": models}


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _problem(provider: dict[str, Any], models: list[str]) -> str:
    """What keeps a provider from answering; nothing when it can."""
    from iii_stack.chat.models import DEMO_PROVIDER

    name = provider["id"]
    if not provider["configured"]:
        return ": no key"
    # The demonstration withdraws its model where a real provider is configured.
    if name == DEMO_PROVIDER or any(model.startswith(f"{name}/") for model in models):
        return ""
    return f": lists no model; is its server reachable, and {name.upper().replace('-', '_')}_BASE_URL right?"


def _print(report: dict[str, Any]) -> None:
    from rich.text import Text

    out = console()

    def line(good: bool, text: str) -> None:
        out.print(Text.assemble(("ok  ", "green") if good else ("--  ", "yellow"), text))

    data, bus = report["data"], report["bus"]
    out.print(Text("  ".join(f"{name} {found}" for name, found in report["versions"].items()), style="dim"))
    in_use = ", a stack runs on it" if data["in_use"] else ""
    line(data["exists"], f"data in {data['directory']} ({data['database_bytes'] // 1024} kB{in_use})")
    line(bus["reachable"], f"bus {bus['url']}" if bus["reachable"] else f"bus: {bus['problem']}")
    if report["page"] is not None:
        line(True, f"page {report['page']}")
    for part, served in report["parts"].items():
        line(served, part if served else f"{part}: nobody serves {SERVED[part]}")
    for provider in report["providers"]:
        problem = _problem(provider, report["models"])
        line(not problem, f"provider {provider['id']}{problem}")
    for name, is_set in report["environment"].items():
        line(is_set, f"{name} is {'set' if is_set else 'not set'} in this terminal")
    if report["models"]:
        out.print(Text("models: " + ", ".join(report["models"])))
