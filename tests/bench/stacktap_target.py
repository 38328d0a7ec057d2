"""stacktap as a target: `stacktap proxy` as users start it, and its relay alone, without a record.

Run as `python -m tests.bench.stacktap_target UPSTREAM PORT` it is the relay alone.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tomllib
from pathlib import Path

import uvloop

from proxy.relay.listen import raise_file_limit
from proxy.relay.server import Relay, RelayConfig, listeners_for
from proxy.relay.upstream import parse_upstreams
from proxy.tap import Event, Tap
from tests.bench.competitors import ROOT, Place, Target


def own_version() -> str:
    """stacktap's version, from the project's own file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def run_folder(folder: Path) -> Path:
    """Where a recording target, started in `folder`, keeps its run."""
    return folder / "run"


def _recording(place: Place) -> list[str]:
    listen = ["--port", str(place.port), "--out", str(run_folder(place.folder))]
    return [sys.executable, "-m", "stacktap", "proxy", "--upstream", place.url, *listen, "--json"]


def _plain(place: Place) -> list[str]:
    return [sys.executable, "-m", "tests.bench.stacktap_target", place.url, str(place.port)]


RECORDING = Target("stacktap", "stacktap proxy (recording)", _recording, own_version)
PLAIN = Target("stacktap-off", "stacktap's relay, recording off", _plain, own_version)


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


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], int(sys.argv[2]), NoRecord()))
