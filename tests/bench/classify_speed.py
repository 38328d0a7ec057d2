"""`python -m tests.bench.classify_speed`: exchanges classified a second on one core, from a journal.

The capture corpus is recorded over and over until the journal holds the wanted number (100,000 by default); then the
journal is read and judged once, in one process. Printed: exchanges, mean size on the wire, seconds of processor time,
exchanges a second, and the process's memory after a tenth and at the end (it must not grow with the journal).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from proxy.exchange_files import captures
from proxy.exchange_view import classify_run
from proxy.recorder import Recorder
from proxy.redact import Redactor
from results.outcomes import encode
from results.reader import RunReader
from tests.support.corpus import capture_files
from tests.support.journalled import Raw, events

_ENDS = {"timeout": "timeout", "client_closed": "client", "client-timeout": "client", "reset": "rst"}


def corpus() -> list[Raw]:
    """Every capture as raw messages."""
    found = []
    for _, lines in capture_files():
        records = [json.loads(line) for line in lines]
        ends = {str(record.get("id")): str(record.get("ended") or "eof") for record in records}
        found += [
            Raw(exchange.request_raw, exchange.response_raw, _ENDS.get(ends.get(exchange.id, "eof"), "fin"))
            for exchange in captures(lines)
        ]
    return found


def write_journal(folder: Path, raws: list[Raw], count: int) -> int:
    """Record `count` exchanges, round and round; returns the bytes on the wire."""
    recorder = Recorder(folder, "bench", Redactor())
    recorder.start()
    dice = random.Random(1)
    size = 0
    for connection, raw in enumerate(itertools.islice(itertools.cycle(raws), count), 1):
        while recorder.full:
            time.sleep(0.01)
        for event in events(raw, connection, dice):
            recorder.put(event)
        size += len(raw.request) + len(raw.response)
    recorder.close()
    return size


def resident() -> int:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def judged(folder: Path) -> Iterator[int]:
    """Judge the run, writing each line as `classify` does; gives the running number."""
    with open(os.devnull, "wb") as sink:
        for number, line in enumerate(classify_run(RunReader(folder)), 1):
            sink.write(encode(line))
            yield number


def main() -> int:
    """Build, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exchanges", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        size = write_journal(folder, corpus(), options.exchanges)
        early, count = 0, 0
        started, wall = time.process_time(), time.monotonic()
        for count in judged(folder):
            if count == options.exchanges // 10:
                early = resident()
        seconds, elapsed = time.process_time() - started, time.monotonic() - wall
    print(f"{count} exchanges, {size / max(1, count):.0f} bytes each on the wire, load {os.getloadavg()[0]:.1f}")
    print(f"{seconds:.1f} s of processor time ({elapsed:.1f} s elapsed): {count / seconds:.0f} exchanges a second")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"memory {early} MB after a tenth, {resident()} MB at the end, peak {peak} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
