"""`SdkBus`: the bus over a WebSocket, on `iii-sdk` (design, "One Bus, two wires").

The traps of the SDK (engine spec 21) are handled here and in the modules `sdk_*` beside it.

One client, one thread of the SDK, one loop of the worker. A connection is an epoch: see `iii_kit.sdk_epoch`.
"""

# pyright: reportMissingTypeStubs=false
from __future__ import annotations

import asyncio
import contextvars
import logging
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from iii import InitOptions, InvocationError, RegistrationRejectedError, TriggerAction
from iii.iii import III, resolve_engine_url
from iii_helpers.observability import ReconnectionConfig, flush_otel
from websockets.exceptions import ConnectionClosed

from iii_contracts.spec import FunctionSpec, TriggerSpec
from iii_kit import encoding
from iii_kit.bus import Call, ChannelRef, Fn, Handler, Invocation, Json, Opts, Provider, ReadHandler, TxHandler
from iii_kit.errors import BusError, EpochEnded, PartialSequence, Unencodable
from iii_kit.logs import logger
from iii_kit.sdk_channel import Endpoints, SocketChannel, SocketSink
from iii_kit.sdk_epoch import Epoch, Epochs
from iii_kit.sdk_serve import Run, SdkProvider, bus_error, finish, sdk_handler
from iii_kit.storage import Store
from iii_kit.trace import hidden

log = logger(__name__)

_CALLS = frozenset({"invokefunction", "invocationresult"})
"""Frames that must not outlive their connection. Registrations may: they are told again anyway."""

_FLUSH_S = 5.0
"""How long the last spans may take to leave; the SDK's shutdown drops what is left of them."""

_ID_WAIT_S = 2.0
"""How long the first frame of a connection may take; it names our id and nothing else depends on it."""


@dataclass(frozen=True, slots=True)
class SdkOptions:
    """Who connects, and how. `url` falls back to `III_URL`, then to the local default."""

    name: str
    description: str | None = None
    url: str | None = None
    namespace: str | None = None
    headers: dict[str, str] | None = None
    telemetry: bool = False
    reconnect_initial_ms: int = 1_000
    reconnect_max_ms: int = 30_000


class _Registration:
    """Something registered; taken back once."""

    def __init__(self, take_back: Callable[[], None]) -> None:
        self._take_back: Callable[[], None] | None = take_back

    def close(self) -> None:
        """Take it back."""
        take_back, self._take_back = self._take_back, None
        if take_back is not None:
            take_back()


class SdkBus:
    """A `Bus` over `iii-sdk`. Made inside the worker's running loop; `close` is called once at the end, on that loop.

    Functions of a transaction or a read need a `store`.
    """

    def __init__(self, options: SdkOptions, store: Store | None = None) -> None:
        _silence()
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._epochs = Epochs(self._loop, self._forget)
        self._epochs.on_begin = self._begin
        self._epochs.on_turn = self._turned
        self._settled = asyncio.Event()
        self._failed = asyncio.Event()
        self._worker_id: str | None = None
        self._providers: list[SdkProvider] = []
        self._each_epoch: list[Callable[[], Awaitable[None]]] = []
        self._closing: asyncio.Task[None] | None = None
        self._telemetry = options.telemetry
        address = resolve_engine_url(options.url)
        self._endpoints = Endpoints(address, options.headers)
        self._client = III(address, _init_options(options))
        self._unsubscribe = self._client.add_connection_state_listener(self._epochs.turned)

    @property
    def worker_id(self) -> str:
        """The id of the current connection; empty before the first."""
        return self._worker_id or ""

    async def connected(self, timeout_s: float = 30.0) -> None:
        """Return once connected. Raises `BusError` when the engine refuses us or cannot be reached in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._settled.wait()
        except TimeoutError:
            address = self._client.get_address()
            raise BusError("not_connected", f"no engine at {address} within {timeout_s:g} s") from None
        if self._failed.is_set():
            await self._raise_refusal()

    async def refused(self) -> None:
        """Return never: raises `BusError` once the engine refuses this worker for good, since another has its name."""
        await self._failed.wait()
        await self._raise_refusal()

    async def close(self) -> None:
        """End the connection, its work and the SDK's thread. Again is harmless."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    # Caller

    async def call(self, fn: Fn, data: Json, *, opts: Opts = Opts()) -> Json:
        """Call and wait for the result."""
        return await self._send(fn, _argument(data), opts, None)

    async def void(self, fn: Fn, data: Json, *, opts: Opts = Opts()) -> None:
        """Send and forget."""
        await self._send(fn, _argument(data), opts, TriggerAction.Void())

    async def enqueue(self, queue: str, fn: Fn, data: Json) -> str:
        """Hand a call to a queue; returns the receipt."""
        answer = await self._send(fn, _argument(data), Opts(), TriggerAction.Enqueue(queue=queue))
        return answer["messageReceiptId"]

    async def sequence(self, calls: Sequence[Call]) -> list[Json]:
        """Make the calls one by one; a value that cannot be encoded stops it before the first."""
        done: list[Json] = []
        try:
            arguments = [_argument(call.data) for call in calls]
            for call, data in zip(calls, arguments, strict=True):
                result = await self._perform(call, data)
                done.append(None if call.opts.unread else result)
        except BusError as error:
            raise PartialSequence(done, error) from error
        return done

    async def channel(self, buffer: int = 64) -> SocketChannel:
        """Make a channel and take its read end."""
        answer = await self.call("engine::channels::create", {"buffer_size": buffer})
        source = await self._endpoints.source(ChannelRef.from_json(answer["reader"]))
        return SocketChannel(ChannelRef.from_json(answer["writer"]), source)

    async def sink(self, ref: Json) -> SocketSink:
        """Take the write end that a payload carried."""
        return await self._endpoints.sink(ChannelRef.from_json(ref))

    # Host

    def serve(self, spec: FunctionSpec, run: Handler | TxHandler | ReadHandler) -> _Registration:
        """Serve a declared function. Calls of our own go through the engine too, as everybody's do."""
        reference = self._client.register_function(
            spec.id,
            sdk_handler(spec, self._runner(spec, run), self._epochs, self._loop),
            description=spec.description,
            metadata=spec.metadata or None,
            request_format=spec.request_schema,
            response_format=spec.response_schema,
            local_dispatch=False,
        )
        return _Registration(self._unless_closed(reference.unregister))

    def bind(self, trigger: str, fn: Fn, config: Json, *, metadata: Json = None) -> _Registration:
        """Bind `fn` to a trigger type; told again at every connection."""
        request = {"type": trigger, "function_id": fn, "config": encoding.copy({} if config is None else config)}
        if metadata is not None:
            request["metadata"] = encoding.copy(metadata)
        return _Registration(self._unless_closed(self._client.register_trigger(request).unregister))

    def provide(self, spec: TriggerSpec, on: Provider) -> _Registration:
        """Provide a trigger type."""
        provider = SdkProvider(on, self._loop)
        self._providers.append(provider)
        self._client.register_trigger_type(
            {
                "id": spec.id,
                "description": spec.description,
                "trigger_request_format": spec.config_schema,
                "call_request_format": spec.payload_schema,
            },
            provider,
        )

        def take_back() -> None:
            self._providers.remove(provider)
            self._client.unregister_trigger_type({"id": spec.id, "description": spec.description})

        return _Registration(self._unless_closed(take_back))

    def each_epoch(self, run: Callable[[], Awaitable[None]]) -> _Registration:
        """Run `run` at the start of every connection, the present one included."""
        self._each_epoch.append(run)
        if self._epochs.current is not None and self._worker_id is not None:
            self._epochs.current.start(self._in_epoch(self._epochs.current, run))
        return _Registration(lambda: self._each_epoch.remove(run))

    # Calls

    async def _perform(self, call: Call, data: Json) -> Json:
        match call.kind:
            case "call":
                return await self._send(call.fn, data, call.opts, None)
            case "void":
                return await self._send(call.fn, data, call.opts, TriggerAction.Void())
            case "enqueue":
                answer = await self._send(call.fn, data, call.opts, TriggerAction.Enqueue(queue=call.queue))
                return answer["messageReceiptId"]

    async def _send(self, fn: Fn, data: Json, opts: Opts, action: Any) -> Json:
        epoch = self._epochs.require()
        request: dict[str, Any] = {
            "function_id": fn,
            "payload": data,
            "timeout_ms": opts.timeout_ms,
            "namespace": opts.namespace,
        }
        if action is not None:
            request["action"] = action
        if opts.metadata is not None:
            request["metadata"] = encoding.copy(opts.metadata)
        try:
            with hidden(opts.hidden):
                return await epoch.wait(self._client.trigger_async(request))
        except InvocationError as error:
            raise bus_error(error.code, error.message, fn) from None
        except RegistrationRejectedError as error:
            raise BusError(error.code, str(error), fn) from None
        except ConnectionClosed:
            raise EpochEnded from None
        except ValueError as error:
            raise BusError("INVALID_NAMESPACE", str(error), fn) from None

    def _runner(self, spec: FunctionSpec, run: Handler | TxHandler | ReadHandler) -> Run:
        if not isinstance(run, (TxHandler, ReadHandler)):
            return run
        store = self._store
        if store is None:
            raise ValueError(f"{spec.id} runs inside the store, and this bus has none")
        if isinstance(run, TxHandler):
            job = run.run

            async def write(request: Any, invocation: Invocation) -> Json:
                context = contextvars.copy_context()
                return await store.write(
                    lambda tx: job(tx, request, invocation), after=lambda calls: self._leave(calls, context)
                )

            return write
        reading = run

        async def read(request: Any, invocation: Invocation) -> Json:
            if reading.is_bounded(request):
                return store.peek(lambda reader: reading.run(reader, request, invocation))
            return await store.read(lambda reader: reading.run(reader, request, invocation))

        return read

    def _leave(self, calls: Sequence[Call], context: contextvars.Context) -> None:
        """Let the calls of a committed transaction leave, in their order, in the context of its function."""
        epoch = self._epochs.current
        if epoch is not None:
            epoch.start(self._send_all(list(calls)), context)

    async def _send_all(self, calls: list[Call]) -> None:
        for call in calls:
            try:
                await self._perform(call, _argument(call.data))
            except EpochEnded:
                return
            except BusError as error:
                log.warning("event_not_sent", function=call.fn, code=error.code, message=error.message)

    # Connections

    def _forget(self) -> None:
        """On the SDK's thread, before a new connection sends anything: drop the calls and results of older ones."""
        queued = self._client._queue  # pyright: ignore[reportPrivateUsage]
        queued[:] = [frame for frame in queued if frame.get("type") not in _CALLS]

    def _begin(self, epoch: Epoch) -> None:
        for provider in self._providers:
            provider.renewed()
        previous, self._worker_id = self._worker_id, None
        epoch.start(self._introduce(epoch, previous))

    async def _introduce(self, epoch: Epoch, previous: str | None) -> None:
        """Wait for the first frame of the connection, which names our id, then start the work of the epoch."""
        deadline = self._loop.time() + _ID_WAIT_S
        # The SDK announces the connection before it has read that frame, and tells nobody of the frame.
        while self._client.worker_id in (None, previous) and self._loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        self._worker_id = self._client.worker_id or ""
        self._settled.set()
        for run in list(self._each_epoch):
            epoch.start(self._in_epoch(epoch, run))

    async def _in_epoch(self, epoch: Epoch, run: Callable[[], Awaitable[None]]) -> None:
        self._epochs.mine.set(epoch)
        await run()

    def _turned(self, state: str) -> None:
        if state == "failed":
            self._failed.set()
            self._settled.set()
        elif state != "connected":
            self._settled.clear()

    async def _raise_refusal(self) -> None:
        try:
            await self._client.trigger_async({"function_id": "engine::workers::list", "payload": {}})
        except RegistrationRejectedError as error:
            raise BusError(error.code, str(error)) from None
        raise BusError("not_connected", f"the engine at {self._client.get_address()} refused the connection")

    async def _close(self) -> None:
        self._unsubscribe()
        self._epochs.turned("closed")
        await asyncio.sleep(0)
        if self._telemetry:
            with suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH_S):
                    await flush_otel()
        await asyncio.to_thread(self._client.shutdown)
        await asyncio.to_thread(finish, self._client)

    def _unless_closed(self, take_back: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            if self._closing is None:
                take_back()

        return run


@asynccontextmanager
async def connect(options: SdkOptions, store: Store | None = None) -> AsyncGenerator[SdkBus]:
    """A bus that is closed at the end; it connects while its owner registers (`SdkBus.connected` waits)."""
    bus = SdkBus(options, store)
    try:
        yield bus
    finally:
        await bus.close()


def _argument(data: Json) -> Json:
    """A private copy of a call's data, checked. The engine drops a call without data, and no one would answer it."""
    if data is None:
        raise Unencodable("$", "the data of a call cannot be null")
    return encoding.copy(data)


def _init_options(options: SdkOptions) -> InitOptions:
    otel = {"enabled": True, "service_name": options.name} if options.telemetry else {"enabled": False}
    return InitOptions(
        worker_name=options.name,
        worker_description=options.description,
        namespace=options.namespace,
        headers=options.headers,
        enable_metrics_reporting=options.telemetry,
        otel=otel,
        reconnection_config=ReconnectionConfig(
            initial_delay_ms=options.reconnect_initial_ms, max_delay_ms=options.reconnect_max_ms
        ),
    )


def _silence() -> None:
    """Trigger types are the form of every sibling's events (siblings 1.4), so their deprecation is no news; and a
    handler's failure is logged here, with its worker's context, not by the SDK with a traceback."""
    warnings.filterwarnings("ignore", ".*(register_trigger|trigger_type).*", DeprecationWarning)
    sdk = logging.getLogger("iii.iii")
    if _not_ours not in sdk.filters:
        sdk.addFilter(_not_ours)


def _not_ours(record: logging.LogRecord) -> bool:
    text = str(record.msg)
    return not (text.startswith("Error in handler") or "is deprecated and will be removed" in text)
