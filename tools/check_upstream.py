"""Structural differences between our schemas of the harness and published ones in a folder: `check_upstream.py DIR`.

Reads `DIR/<function id with dots>.json` (`{function_id, request_schema, response_schema}`) of the functions that are
served here. Compared is meaning: types, required fields, closedness, enums, bounds; never descriptions, titles,
formats or the order of keys. Each difference is explained in `tech-specs/upstream-differences.md`; one that is not
written there, or is written there and is gone, makes the exit code 1. The folder itself is never copied.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from iii_contracts import harness

EXPLAINED = Path(__file__).resolve().parent.parent / "tech-specs/upstream-differences.md"
BOUNDS = ("minimum", "maximum")


class Schemas:
    """A schema document whose references are followed."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def followed(self, node: Any) -> dict[str, Any]:
        """The schema itself: `true` is an empty one, a reference or a single `allOf` is what it leads to."""
        while isinstance(node, dict):
            if "$ref" in node:
                node = self.document["definitions"][node["$ref"].removeprefix("#/definitions/")]
            elif isinstance(node.get("allOf"), list) and len(node["allOf"]) == 1:
                node = node["allOf"][0]
            else:
                return node
        return {}

    def branches(self, node: Any) -> list[dict[str, Any]]:
        """The alternatives of a schema, flat, with one type each; null among them."""
        schema = self.followed(node)
        for word in ("anyOf", "oneOf"):
            inner = schema.get(word)
            if isinstance(inner, list) and "properties" not in schema:
                return [branch for item in inner for branch in self.branches(item)]
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return [{"type": kind} if kind == "null" else {**schema, "type": kind} for kind in kinds]
        if "enum" not in schema and "const" in schema:
            schema = {**schema, "enum": [schema["const"]]}
        return [schema]


def merged_enums(branches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Alternatives that are all enums of strings are one enum."""
    enums = [b for b in branches if "enum" in b]
    rest = [b for b in branches if "enum" not in b]
    values = sorted({value for b in enums for value in b["enum"]})
    return [*rest, {"type": "string", "enum": values}] if enums else rest


def label(branch: dict[str, Any]) -> str:
    """What tells alternatives apart: their type, and of objects the value of their tag."""
    kind = str(branch.get("type", "any"))
    for tag in ("type", "role"):
        tagged = branch.get("properties", {}).get(tag)
        if isinstance(tagged, dict):
            value = tagged.get("const", tagged.get("enum", [None])[0])
            if value is not None:
                return f"{kind}:{value}"
    return kind


class Comparison:
    """Ours against theirs."""

    def __init__(self, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        self.ours, self.theirs = Schemas(ours), Schemas(theirs)
        self.done: set[str] = set()
        """Their named definitions that were compared; each is compared once, under its name."""

    def differences(self, ours: Any, theirs: Any, at: str) -> Iterator[str]:
        """What differs between two schemas at one place."""
        name = theirs.get("$ref", "").removeprefix("#/definitions/") if isinstance(theirs, dict) else ""
        if name in self.done:
            return
        if name:
            self.done.add(name)
            at = name
        mine = merged_enums(self.ours.branches(ours))
        other = merged_enums(self.theirs.branches(theirs))
        by_label, by_other = ({self._label(s, b): b for b in bs} for s, bs in ((self.ours, mine), (self.theirs, other)))
        for name in sorted(by_label.keys() | by_other.keys()):
            if name not in by_other:
                yield f"{at}: ours also allows {name}"
            elif name not in by_label:
                yield f"{at}: theirs also allows {name}"
            else:
                kind = f"<{name.partition(':')[2]}>" if ":" in name else ""
                yield from self._same_kind(by_label[name], by_other[name], at + kind)

    def _label(self, schemas: Schemas, branch: dict[str, Any]) -> str:
        properties = branch.get("properties", {})
        tags = {t: schemas.followed(properties[t]) for t in ("type", "role") if t in properties}
        return label({**branch, "properties": {**properties, **tags}})

    def _same_kind(self, ours: dict[str, Any], theirs: dict[str, Any], at: str) -> Iterator[str]:
        if sorted(ours.get("enum", [])) != sorted(theirs.get("enum", [])):
            yield f"{at}: values {ours.get('enum')} here, {theirs.get('enum')} there"
        for bound in BOUNDS:
            if ours.get(bound) != theirs.get(bound):
                yield f"{at}: {bound} {ours.get(bound)} here, {theirs.get(bound)} there"
        if "items" in ours or "items" in theirs:
            yield from self.differences(ours.get("items", {}), theirs.get("items", {}), f"{at}[]")
        yield from self._fields(ours, theirs, at)

    def _fields(self, ours: dict[str, Any], theirs: dict[str, Any], at: str) -> Iterator[str]:
        mine, other = ours.get("properties", {}), theirs.get("properties", {})
        if (ours.get("additionalProperties") is False) != (theirs.get("additionalProperties") is False):
            yield f"{at}: closed {'here' if ours.get('additionalProperties') is False else 'there'} only"
        for name in sorted(mine.keys() ^ other.keys()):
            yield f"{at}.{name}: only {'here' if name in mine else 'there'}"
        for name in sorted(set(ours.get("required", [])) ^ set(theirs.get("required", []))):
            yield f"{at}.{name}: required only {'here' if name in ours.get('required', []) else 'there'}"
        for name in sorted(mine.keys() & other.keys()):
            place = f"{at}.{name}"
            yield from self.differences(mine[name], other[name], place)


def differences(folder: Path) -> list[str]:
    """Every difference of every function that both know."""
    found: list[str] = []
    for spec in harness.FUNCTIONS:
        path = folder / f"{spec.id.replace('::', '.')}.json"
        if not path.exists():
            found.append(f"{spec.id}: no published schema")
            continue
        published = json.loads(path.read_text())
        for side, ours in (("request", spec.request_schema), ("response", spec.response_schema)):
            theirs = published[f"{side}_schema"]
            found += Comparison(ours or {}, theirs).differences(ours, theirs, f"{spec.id} {side}")
    return list(dict.fromkeys(found))


def main() -> int:
    """Print the differences that nobody has explained and the explanations that explain nothing."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: check_upstream.py DIR\n")
        return 2
    found = differences(Path(sys.argv[1]))
    explained = re.findall(r"^- `([^`]+)`", EXPLAINED.read_text() if EXPLAINED.exists() else "", re.MULTILINE)
    problems = [f"not explained: {line}" for line in found if line not in explained]
    problems += [f"explained and gone: {line}" for line in explained if line not in found]
    print("\n".join(problems) or f"{len(found)} differences, all explained")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
