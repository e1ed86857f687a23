"""The published schema files are what the declarations say, and a start reads them instead of making schemas."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from iii_contracts.published import DIRECTORY, file_of
from iii_contracts.session import APPEND
from iii_contracts.spec import FunctionSpec, TriggerSpec

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from schemas import documents


@pytest.mark.requirement("stack.contracts.schemas")
def test_the_published_files_are_what_the_declarations_say() -> None:
    stored = {file.name: file.read_text("utf-8") for file in DIRECTORY.glob("*.json")}
    stale = [file.name for file, text in documents().items() if stored.pop(file.name, None) != text]
    assert (stale, [*stored]) == ([], []), "run `make schemas` and commit what it writes"


class Other(BaseModel):
    text: str


@pytest.mark.requirement("stack.contracts.schemas")
def test_a_file_speaks_for_its_own_types_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = FunctionSpec(APPEND.id, "Another one.", Other, None, "invalid")
    assert (spec.request_schema or {})["properties"] == {"text": {"type": "string"}}
    assert spec.response_schema is None
    trigger = TriggerSpec("none::such", "Of no file.", Other, Other)
    assert trigger.config_schema["required"] == (trigger.payload_schema or {})["required"] == ["text"]

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a schema was made")

    monkeypatch.setattr(TypeAdapter, "json_schema", refuse)
    again = FunctionSpec(APPEND.id, "As declared.", APPEND.request, APPEND.response, "invalid")
    published = json.loads(file_of(APPEND.id).read_bytes())
    assert (again.request_schema, again.response_schema) == (published["request_schema"], published["response_schema"])
