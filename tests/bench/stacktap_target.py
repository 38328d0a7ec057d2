"""stacktap's own relay as a target: run as `python -m tests.bench.stacktap_target UPSTREAM PORT [FOLDER]`.

With a folder the traffic is recorded into it. This composes relay and recorder as `stacktap proxy` does, without its
command line.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tomllib
from pathlib import Path

import uvloop

from proxy.listen import raise_file_limit
from proxy.recorder import Recorder
from proxy.redact import Redactor
from proxy.relay import Relay, RelayConfig, listeners_for
from proxy.tap import Event, Tap
from proxy.upstream import parse_upstreams
from tests.bench.competitors import ROOT, Place, Target


def _command(place: Place, *extra: str) -> list[str]:
    return [sys.executable, "-m", "tests.bench.stacktap_target", place.url, str(place.port), *extra]


def own_version() -> str:
    """stacktap's version, from the project's own file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def run_folder(folder: Path) -> Path:
    """Where a recording target, started in `folder`, keeps its run."""
    return folder / "run"


RECORDING = Target(
    "stacktap",
    "stacktap, recording",
    lambda place: _command(place, str(run_folder(place.folder))),
    own_version,
)
PLAIN = Target("stacktap-off", "stacktap, recording off", _command, own_version)


class NoRecord:
    """A tap that keeps nothing: the relay alone."""

    full = False
    refusing = False

    def put(self, event: Event) -> None:
        """Forget the event."""

    async def wait_drained(self) -> None:
        """There is always room."""


async def serve(upstream: str, port: int, tap: Tap) -> None:
    """Relay to one upstream until SIGTERM."""
    raise_file_limit()
    upstreams = parse_upstreams([upstream])
    relay = Relay(RelayConfig(upstreams, listeners_for(upstreams, port=port)), tap)
    await relay.start()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    await relay.stop(1.0)


def main(upstream: str, port: str, folder: str = "") -> None:
    """Run the relay, with a recorder when there is a folder."""
    if not folder:
        uvloop.run(serve(upstream, int(port), NoRecord()))
        return
    redactor = Redactor()
    redactor.learn_environment(os.environ)
    recorder = Recorder(Path(folder), "bench", redactor)
    recorder.start()
    try:
        uvloop.run(serve(upstream, int(port), recorder))
    finally:
        recorder.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
