"""Registered providers: tokens, keys, availability and diagnostics (siblings 6).

Registrations and catalogue slices are kept in the tables of family `router`, so that models are known again at once
after a restart, while discovery still runs. Of a token only its SHA-256 is kept; keys are never stored here.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from iii_contracts.router import REJECTED, UNKNOWN_PROVIDER
from iii_kit.encoding import decode, encode
from iii_kit.errors import CodedError
from iii_kit.storage import Reader, Store, Tx
from iii_kit.world import World
from iii_siblings.router.catalogue import Catalogue
from iii_siblings.router.settings import ProviderSettings
from iii_store import Family

FAMILY = Family(
    "router",
    (
        (
            "CREATE TABLE router_providers("
            "id TEXT PRIMARY KEY, token_sha256 TEXT NOT NULL, registration TEXT NOT NULL, models TEXT NOT NULL"
            ") WITHOUT ROWID",
        ),
    ),
)
"""Tables of the router."""

_SECRET_OF_REQUEST = ("token", "models")


@dataclass(slots=True)
class Registered:
    """One provider."""

    id: str
    token_sha256: str
    registration: dict[str, Any]
    available: bool = True
    reported: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def key_variable(self) -> str | None:
        """The environment variable of its key."""
        return self.registration.get("credential_env_var")

    @property
    def defaults(self) -> dict[str, Any]:
        """What holds where the configuration says nothing."""
        return self.registration.get("defaults") or {}

    @property
    def needs_key(self) -> bool:
        """True when it registered a variable, or a setting, for a key."""
        schema = self.registration.get("config_schema")
        properties = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
        return self.key_variable is not None or "api_key" in (properties or {})


class ProviderRegistry:
    """The providers, and who may speak for them."""

    def __init__(self, store: Store, world: World, catalogue: Catalogue, environ: Mapping[str, str]) -> None:
        self._store = store
        self._world = world
        self._catalogue = catalogue
        self._environ = environ
        self._providers: dict[str, Registered] = {}
        for row in store.peek(_read_all):
            self._providers[row[0]] = Registered(row[0], row[1], decode(row[2]))
            catalogue.replace(row[0], decode(row[3]))

    @property
    def ids(self) -> list[str]:
        """Registered provider ids, sorted."""
        return sorted(self._providers)

    def __contains__(self, provider: str) -> bool:
        return provider in self._providers

    def get(self, provider: str) -> Registered:
        """A registered provider. Raises `router/unknown_provider`."""
        found = self._providers.get(provider)
        if found is None:
            raise CodedError(UNKNOWN_PROVIDER, f"no provider {provider} is registered")
        return found

    def authorize(self, provider: str, token: str | None) -> Registered:
        """The provider that `token` speaks for. Raises `router/registration_rejected`."""
        found = self.get(provider)
        if token is None or not hmac.compare_digest(found.token_sha256, _digest(token)):
            raise CodedError(REJECTED, f"the token does not belong to the registration of provider {provider}")
        return found

    async def register(self, request: dict[str, Any]) -> str:
        """Register or renew; returns the token, which is the presented one if there is one."""
        provider, token = request["id"], request.get("token")
        known = self._providers.get(provider)
        if known is not None:
            self.authorize(provider, token)
        token = token or self._world.ids.hex()
        registration = {key: value for key, value in request.items() if key not in _SECRET_OF_REQUEST}
        if known is None or known.registration != registration:
            row = Registered(provider, _digest(token), registration)
            await self._store.write(lambda tx: _write(tx, row, self._catalogue.of(provider)))
            if known is not None:
                row.reported = known.reported
            self._providers[provider] = row
        self._providers[provider].available = True
        return token

    async def unregister(self, provider: str, token: str | None) -> None:
        """Remove a provider and its models."""
        self.authorize(provider, token)
        await self._store.write(_remove(provider))
        self._providers.pop(provider, None)
        self._catalogue.remove(provider)

    async def reconcile(self, provider: str, models: list[dict[str, Any]]) -> bool:
        """Replace a provider's slice; False when nothing changed."""
        row = self.get(provider)
        fresh = Catalogue()
        fresh.replace(provider, models)
        if fresh.of(provider) == self._catalogue.of(provider):
            return False
        await self._store.write(lambda tx: _write(tx, row, fresh.of(provider)))
        return self._catalogue.replace(provider, models)

    def credential(self, row: Registered, settings: ProviderSettings) -> tuple[str, dict[str, Any] | None]:
        """Where the key of a provider comes from, and the credential."""
        if settings.key:
            return "config", {"type": "api_key", "key": settings.key}
        if settings.credential:
            return "config", settings.credential
        key = self._environ.get(row.key_variable or "", "").strip()
        return ("env", {"type": "api_key", "key": key}) if key else ("none", None)

    def configured(self, row: Registered, settings: ProviderSettings) -> bool:
        """True when the provider has the key it needs, needs none, or reports one of its own."""
        if not row.needs_key or self.credential(row, settings)[1] is not None:
            return True
        return row.reported.get("credential_state") in ("ready", "external")

    def report(self, row: Registered, request: dict[str, Any]) -> dict[str, Any]:
        """Keep a provider's report on itself; returns its diagnostic."""
        kept = row.reported
        for name in ("catalog_state", "credential_state"):
            if request.get(name) is not None:
                kept[name] = request[name]
        if request.get("clear_failure"):
            kept.pop("last_failure", None)
        if request.get("failure") is not None:
            kept["last_failure"] = request["failure"]
        kept["updated_at"] = self._world.clock.now_ms()
        return self.diagnostic(row)

    def diagnostic(self, row: Registered) -> dict[str, Any]:
        """How a provider is."""
        kept = row.reported
        shown = {
            "catalog_state": kept.get("catalog_state", "unknown"),
            "credential_state": kept.get("credential_state", "unknown"),
            "stale": "updated_at" not in kept or not row.available,
            "updated_at": kept.get("updated_at", 0),
        }
        return shown | ({"last_failure": kept["last_failure"]} if "last_failure" in kept else {})


def _read_all(reader: Reader) -> list[tuple[Any, ...]]:
    return reader.execute("SELECT id, token_sha256, registration, models FROM router_providers").fetchall()


def _write(tx: Tx, row: Registered, models: list[dict[str, Any]]) -> None:
    tx.execute(
        "INSERT INTO router_providers VALUES(?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET "
        "token_sha256 = excluded.token_sha256, registration = excluded.registration, models = excluded.models",
        (row.id, row.token_sha256, encode(row.registration).decode(), encode(models).decode()),
    )


def _remove(provider: str) -> Any:
    def remove(tx: Tx) -> None:
        tx.execute("DELETE FROM router_providers WHERE id = ?", (provider,))

    return remove


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
