"""The schemas as they are published: one JSON file per function and trigger type, made from the declarations.

They are what generated clients and other languages read, and a start reads them where it would take a quarter of a
second to make them. A file speaks for the types that it names; a declaration with the same id and other types makes its
own. `make schemas` writes the files, a test holds that they are what the declarations say.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from iii_contracts.export import schema_of

DIRECTORY: Final = Path(__file__).parent / "schemas"

Mode = Literal["validation", "serialization"]


class Part(NamedTuple):
    """One shape of a declaration: its key in the file, its type, and whether it is read or written."""

    key: str
    type: Any
    mode: Mode


def file_of(id: str, *, trigger: bool = False) -> Path:
    """Where the schemas of a function or trigger type are."""
    return DIRECTORY / f"{id.replace('::', '.')}{'.trigger' if trigger else ''}.json"


def schemas(file: Path, parts: tuple[Part, ...]) -> Mapping[str, dict[str, Any] | None]:
    """The schemas of a declaration by key: those of its file, or made now when there is none for these types."""
    try:
        document = json.loads(file.read_bytes())
    except FileNotFoundError:
        document = None
    if document is None or document["types"] != named(parts):
        return made(parts)
    return document


def made(parts: tuple[Part, ...]) -> dict[str, dict[str, Any] | None]:
    """The schemas of a declaration, from its types. A shape that may be any JSON has none."""
    return {part.key: None if part.type is None else schema_of(part.type, part.mode) for part in parts}


def named(parts: tuple[Part, ...]) -> dict[str, str | None]:
    """The types of a declaration by name."""
    return {part.key: None if part.type is None else _name(part.type) for part in parts}


def _name(type_: Any) -> str:
    return f"{type_.__module__}.{type_.__qualname__}" if isinstance(type_, type) else str(type_)
