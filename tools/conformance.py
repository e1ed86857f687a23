"""Run the engine conformance suite (`tests/conformance/engine/`) against an embedded engine, or one that runs.

    python tools/conformance.py [--url ws://...] [--bare] [FILE ...] [-- PYTEST_OPTION ...]

The suite's modules import each other as top-level modules and know nothing of this workspace, so it runs in a
pytest process of its own, without the workspace's options. The embedded engine has a store in a temporary directory,
a free port, and a thread and loop of its own. `--bare` leaves the queue out. The exit code is pytest's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SUITE = Path(__file__).resolve().parent.parent / "tests" / "conformance" / "engine"


def main(arguments: list[str]) -> int:
    """Run what the arguments name; returns pytest's exit code."""
    own, _, options = _split(arguments)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--url", default=os.environ.get("III_URL"), help="an engine that runs, instead of an embedded one (or III_URL)"
    )
    parser.add_argument("--bare", action="store_true", help="an engine without a queue")
    parser.add_argument("files", nargs="*", help="files of the suite; all without one")
    given = parser.parse_args(own)
    if given.url:
        return run(given.url, given.files, options)
    with embedded(queue=not given.bare) as url:
        return run(url, given.files, options, bare=given.bare)


def run(url: str, files: list[str], options: list[str], *, bare: bool = False) -> int:
    """Run files of the suite against the engine at `url`."""
    names = [name if name.endswith(".py") else f"{name}.py" for name in files] or ["."]
    with tempfile.TemporaryDirectory() as empty:
        configuration = Path(empty, "pytest.ini")
        configuration.write_text("[pytest]\n")
        command = [sys.executable, "-m", "pytest", "-q", "-c", str(configuration), "--rootdir", str(SUITE)]
        command += ["--confcutdir", str(SUITE)]
        command += ["-p", "no:cacheprovider", "-p", "no:randomly", *options, *names]
        environment = {**os.environ, "III_URL": url, **({"CONFORMANCE_BARE": "1"} if bare else {})}
        return subprocess.run(command, cwd=SUITE, env=environment, check=False).returncode


@contextmanager
def embedded(*, queue: bool = True) -> Iterator[str]:
    """The address of an embedded engine with all its modules, in a thread of its own, while the block runs."""
    started: list[str] = []
    problem: list[BaseException] = []
    ready = threading.Event()
    stops: list[Callable[[], object]] = []

    async def serve(folder: Path) -> None:
        import iii_queue
        from iii_embedded import Engine, EngineSettings, modules
        from iii_kit.world import real_world
        from iii_store import SqliteStore

        world = real_world()
        store = SqliteStore(folder / "engine.db", [*modules.FAMILIES, iii_queue.FAMILY])
        engine = Engine(world, store, EngineSettings(port=0))
        await engine.start()
        installed = [*modules.install(lambda name: engine.attach(name, builtin=True), world)]
        if queue:
            installed.append(iii_queue.install(engine.attach("queue", builtin=True), store, world))
        for module in installed:
            await module.ready()
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        stops.append(lambda: loop.call_soon_threadsafe(stop.set))
        started.append(f"ws://127.0.0.1:{engine.port}")
        ready.set()
        await stop.wait()
        for module in reversed(installed):
            await module.drain()
        await engine.close()
        store.close()

    def thread(folder: Path) -> None:
        try:
            asyncio.run(serve(folder))
        except BaseException as error:
            problem.append(error)
            ready.set()

    with tempfile.TemporaryDirectory() as folder:
        running = threading.Thread(target=thread, args=(Path(folder),), name="engine")
        running.start()
        ready.wait()
        if problem:
            running.join()
            raise problem[0]
        try:
            yield started[0]
        finally:
            stops[0]()
            running.join()


def _split(arguments: list[str]) -> tuple[list[str], bool, list[str]]:
    if "--" not in arguments:
        return arguments, False, []
    at = arguments.index("--")
    return arguments[:at], True, arguments[at + 1 :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
