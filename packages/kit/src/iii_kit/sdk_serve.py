"""Handlers and providers behind `iii-sdk`: from the SDK's loop to the worker's and back (engine spec 21.2-21.4, 21.7).

The SDK runs handlers on a loop of its own, turns every exception into `invocation_failed` with its text, and replaces
channel refs by objects. Here each of these is undone: work runs on the worker's loop inside the connection's epoch,
codes travel as the prefix of the text, refs are refs.
"""

# pyright: reportMissingTypeStubs=false
from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, cast

from iii.iii import III
from iii.invocation_context import current_context
from iii.trigger import TriggerConfig, TriggerHandler

from iii_contracts.spec import CALLER, FunctionSpec
from iii_kit import encoding
from iii_kit.bus import Binding, Invocation, Json, Provider
from iii_kit.errors import BusError, CodedError, EpochEnded
from iii_kit.logs import logger
from iii_kit.sdk_channel import with_refs
from iii_kit.sdk_epoch import Epoch, Epochs
from iii_kit.serving import answer_of, request_of
from iii_kit.trace import with_baggage_of

T = TypeVar("T")
Run = Callable[[Any, Invocation], Awaitable[Json]]

log = logger(__name__)

_RUN_DOWN_TURNS = 5
"""Turns of the loop in which aborted sockets close."""

_CODE = re.compile(r"([a-z0-9_-]+(?:/[a-z0-9_.-]+)+): ")


class HandlerFailed(Exception):
    """What the SDK sees of a failed handler: its text and none of its traceback."""


def bus_error(code: str, message: str, function_id: str | None) -> BusError:
    """The error of a failed call; the code of a worker, which can only travel as a prefix, is put back in its place."""
    if code == "invocation_failed":
        prefix = _CODE.match(message)
        if prefix:
            error = CodedError(prefix[1], message[prefix.end() :])
            error.function_id = function_id
            return error
    return BusError(code, message, function_id)


async def on_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on `loop` from another one, in the calling context; cancelling reaches it."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def finish(client: III) -> None:
    """Run down and close the loop of a client that was shut down.

    The SDK leaves it open, with what was just handed over and, when it was still connecting, with its socket.
    """
    loop = client._loop  # pyright: ignore[reportPrivateUsage]
    if loop.is_running() or loop.is_closed():
        return

    async def run_down() -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        socket = client._ws  # pyright: ignore[reportPrivateUsage]
        if socket is not None:
            socket.transport.abort()
        for _ in range(_RUN_DOWN_TURNS):
            await asyncio.sleep(0)

    # It is told to stop twice: what is left of that would stop the running down.
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.run_until_complete(run_down())
    loop.close()


def sdk_handler(
    spec: FunctionSpec, run: Run, epochs: Epochs, loop: asyncio.AbstractEventLoop
) -> Callable[..., Awaitable[Json]]:
    """The handler to register with the SDK for `spec`."""

    async def handle(data: Any, metadata: Any = None) -> Any:
        epoch = epochs.current
        if epoch is None:
            raise HandlerFailed(str(EpochEnded()))
        context = current_context()
        invocation = Invocation(
            spec.id,
            cast("dict[str, Any]", data).get(CALLER) if isinstance(data, dict) else None,
            metadata,
            context.traceparent if context else None,
            context.baggage if context else None,
        )
        return await on_loop(loop, _serve(spec, run, epochs, epoch, data, invocation))

    # Schemas are given explicitly: hints would be read as schemas.
    handle.__annotations__ = {}
    return handle


async def _serve(spec: FunctionSpec, run: Run, epochs: Epochs, epoch: Epoch, data: Any, invocation: Invocation) -> Json:
    epochs.mine.set(epoch)
    task = asyncio.current_task()
    if epoch.ended or task is None:
        raise HandlerFailed(str(EpochEnded()))
    epoch.adopt(task)
    try:
        with with_baggage_of(invocation.baggage):
            return encoding.copy(answer_of(await run(request_of(spec, with_refs(data)), invocation)))
    except BusError as error:
        raise HandlerFailed(str(error)) from None
    except Exception as error:
        log.exception("handler_failed", function=spec.id)
        raise HandlerFailed(str(error)) from None


class SdkProvider(TriggerHandler[Any]):
    """A `Provider` as the SDK wants it."""

    def __init__(self, provider: Provider, loop: asyncio.AbstractEventLoop) -> None:
        self._provider = provider
        self._loop = loop

    async def register_trigger(self, config: TriggerConfig[Any]) -> None:
        """A binding is new or told again; what is raised here refuses it."""
        binding = Binding(config.id, config.function_id, config.config, config.metadata, config.namespace)
        try:
            await on_loop(self._loop, self._bound(binding))
        except BusError as error:
            raise HandlerFailed(error.message) from None

    async def unregister_trigger(self, config: TriggerConfig[Any]) -> None:
        """A binding is gone; the SDK knows its id alone."""
        await on_loop(self._loop, self._unbound(config.id))

    def renewed(self) -> None:
        """On the worker's loop: a new connection begins."""
        self._provider.renewed()

    async def _bound(self, binding: Binding) -> None:
        await self._provider.bound(binding)

    async def _unbound(self, binding_id: str) -> None:
        await self._provider.unbound(binding_id)
