"""The requirements manifest against the tests (engineering notes 1). Exit code 1 names every gap.

`tech-specs/requirements/<area>.yaml` lists `{id, says, source, mutation?, planned?}`. An id has at least one test
marked `@pytest.mark.requirement("<id>")`, or is `planned` with the number of an issue; a test names no unknown id. In
the areas of `MUTATED` a tested id also names the change of the code that its test kills.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "tech-specs/requirements"
MUTATED = {"engine", "loop", "entry"}
KEYS = {"id", "says", "source", "mutation", "planned"}


@dataclass(frozen=True)
class Requirement:
    """One behaviour of the specification."""

    area: str
    id: str
    mutation: str | None
    planned: int | None


def manifest(problems: list[str]) -> dict[str, Requirement]:
    """All requirements by id; adds what is wrong with the files to `problems`."""
    found: dict[str, Requirement] = {}
    for path in sorted(MANIFEST.glob("*.yaml")):
        for row in yaml.safe_load(path.read_text()) or []:
            name = f"{path.name}: {row.get('id')}"
            missing, unknown = {"id", "says", "source"} - row.keys(), row.keys() - KEYS
            if missing or unknown:
                problems.append(f"{name}: missing {sorted(missing)}, unknown {sorted(unknown)}")
                continue
            if row["id"] in found:
                problems.append(f"{name}: listed twice")
            found[row["id"]] = Requirement(path.stem, row["id"], row.get("mutation"), row.get("planned"))
    return found


def test_files() -> Iterator[Path]:
    """Every test module of the workspace."""
    roots = [
        ROOT / "tests",
        ROOT / "shared/contracts/tests",
        *ROOT.glob("packages/*/tests"),
        *ROOT.glob("workers/*/tests"),
    ]
    for root in roots:
        yield from (path for path in root.rglob("test_*.py") if "node_modules" not in path.parts)


def named() -> dict[str, list[Path]]:
    """The ids that tests name, with the files that do."""
    found: dict[str, list[Path]] = {}
    for path in test_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
                for arg in node.args:
                    if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
                        found.setdefault(arg.value, []).append(path.relative_to(ROOT))
    return found


def check() -> list[str]:
    """All gaps between manifest and tests."""
    problems: list[str] = []
    listed, tested = manifest(problems), named()
    for requirement in listed.values():
        if requirement.planned is None and requirement.id not in tested:
            problems.append(f"{requirement.id}: no test names it and it is not planned")
        if requirement.id in tested and requirement.planned is not None:
            problems.append(f"{requirement.id}: planned for issue {requirement.planned}, yet tested")
        if requirement.area in MUTATED and requirement.planned is None and not requirement.mutation:
            problems.append(f"{requirement.id}: names no mutation that its test kills")
    problems += [
        f"{path}: unknown requirement {name}" for name, paths in tested.items() if name not in listed for path in paths
    ]
    return problems


if __name__ == "__main__":
    gaps = check()
    total = len(manifest([]))
    print("\n".join(gaps) or f"requirements: {total} kept")
    sys.exit(bool(gaps))
