"""`python -m tests.support.faulty_gateway --upstream URL --port P --fault NAME`: as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import signal

from tests.support.faulty_gateway.faults import FAULTS
from tests.support.faulty_gateway.gateway import faulty
from tests.support.faulty_gateway.passing_on import serving


async def _serve(upstream: str, port: int, fault: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(faulty(fault), upstream.rstrip("/"), port) as taken:
        print(f"the test gateway with the fault {fault} listens on http://127.0.0.1:{taken}", flush=True)
        await stop.wait()


def main() -> None:
    """Serve until a signal comes."""
    parser = argparse.ArgumentParser(description="stacktap's own faulty gateway, for tests")
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--fault", choices=sorted(FAULTS), default="none")
    given = parser.parse_args()
    asyncio.run(_serve(given.upstream, given.port, given.fault))


main()
