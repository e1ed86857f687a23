"""A function or a trigger type, declared once (design: "Contracts first").

`FunctionSpec.parse` turns the data of a call into the request model or a problem text; `schemas()` gives what is
registered with the engine and exported. The engine's `_caller_worker_id` is dropped before validation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, cast

from pydantic import TypeAdapter, ValidationError

from iii_contracts.problems import describe
from iii_contracts.published import Part, file_of, schemas

CALLER = "_caller_worker_id"
"""The key the engine adds to every object payload (engine spec 5.2)."""


@dataclass(frozen=True)
class FunctionSpec:
    """One function of the bus.

    `request` and `response` are types that pydantic understands; `request=None` takes any JSON. `invalid` is the code
    of a request that does not fit, `errors` the other codes it may fail with; where a code is written in words, the
    texts of the errors begin with it. `metadata` is what registration carries (`internal`, `trace_hidden`, ...).
    """

    id: str
    description: str
    request: Any
    response: Any
    invalid: str
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    errors: tuple[str, ...] = ()
    undecoded: ClassVar[tuple[str, ...]] = ()
    """Members of a request that its handler takes as JSON too, each a `msgspec.Raw`: a bus need not decode them."""

    @cached_property
    def _validated(self) -> Callable[[Any], Any]:
        # The validator itself: the method of the adapter costs as much again as validating a small request.
        return TypeAdapter(self.request).validator.validate_python

    def prepare(self) -> None:
        """Build the validator, as the first request would."""
        if self.request is not None:
            _ = self._validated

    def parse(self, data: Any) -> tuple[Any, str | None]:
        """The request of a call's `data`: `(request, None)`, or `(None, what is wrong)`."""
        if isinstance(data, dict) and CALLER in data:
            data = {key: value for key, value in cast("dict[str, Any]", data).items() if key != CALLER}
        if self.request is None:
            return cast("Any", data), None
        try:
            return self._validated(data), None
        except ValidationError as error:
            return None, describe(error)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its shapes, by their keys in the published file."""
        return (
            Part("request_schema", self.request, "validation"),
            Part("response_schema", self.response, "serialization"),
        )

    @cached_property
    def _schemas(self) -> Mapping[str, dict[str, Any] | None]:
        return schemas(file_of(self.id), self.parts)

    @property
    def request_schema(self) -> dict[str, Any] | None:
        """Draft-07 schema of the request, or None when it is any JSON."""
        return self._schemas["request_schema"]

    @property
    def response_schema(self) -> dict[str, Any] | None:
        """Draft-07 schema of the response, or None when it is any JSON."""
        return self._schemas["response_schema"]


@dataclass(frozen=True)
class TriggerSpec:
    """One trigger type: its binding config (null equals `{}`) and the payload its functions get."""

    id: str
    description: str
    config: Any
    payload: Any

    @cached_property
    def _config(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.config)

    def parse_config(self, data: Any) -> tuple[Any, str | None]:
        """The config of a binding: `(config, None)`, or `(None, what is wrong)`."""
        try:
            return self._config.validate_python({} if data is None else data), None
        except ValidationError as error:
            return None, describe(error)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its shapes, by their keys in the published file."""
        return (
            Part("config_schema", self.config, "validation"),
            Part("payload_schema", self.payload, "serialization"),
        )

    @cached_property
    def _schemas(self) -> Mapping[str, dict[str, Any] | None]:
        return schemas(file_of(self.id, trigger=True), self.parts)

    @property
    def config_schema(self) -> dict[str, Any]:
        """Draft-07 schema of a binding's config."""
        return self._schemas["config_schema"] or {}

    @property
    def payload_schema(self) -> dict[str, Any] | None:
        """Draft-07 schema of the payload, or None when it is any JSON."""
        return self._schemas["payload_schema"]
