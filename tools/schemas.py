"""Write the published schemas from the declarations of `iii_contracts` (`make schemas`)."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import iii_contracts
from iii_contracts.published import DIRECTORY, file_of, made, named
from iii_contracts.spec import FunctionSpec, TriggerSpec


def declared() -> Iterator[FunctionSpec | TriggerSpec]:
    """Every function and trigger type of the contracts, once."""
    seen: set[tuple[bool, str]] = set()
    for found in pkgutil.walk_packages(iii_contracts.__path__, "iii_contracts."):
        module = importlib.import_module(found.name)
        for spec in (*getattr(module, "FUNCTIONS", ()), *getattr(module, "TRIGGERS", ())):
            key = (isinstance(spec, TriggerSpec), spec.id)
            if key not in seen:
                seen.add(key)
                yield spec


def documents() -> dict[Path, str]:
    """What every file must hold."""
    texts: dict[Path, str] = {}
    for spec in declared():
        document = {
            "id": spec.id,
            "description": spec.description,
            **({"metadata": spec.metadata} if isinstance(spec, FunctionSpec) else {}),
            "types": named(spec.parts),
            **made(spec.parts),
        }
        file = file_of(spec.id, trigger=isinstance(spec, TriggerSpec))
        texts[file] = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return texts


def main() -> None:
    """Write what has changed, delete what has no declaration any more."""
    texts = documents()
    DIRECTORY.mkdir(exist_ok=True)
    for file in DIRECTORY.glob("*.json"):
        if file not in texts:
            file.unlink()
    changed = [file for file, text in texts.items() if not file.exists() or file.read_text("utf-8") != text]
    for file in changed:
        file.write_text(texts[file], "utf-8")
    print(f"{len(texts)} schema files, {len(changed)} changed")


if __name__ == "__main__":
    main()
