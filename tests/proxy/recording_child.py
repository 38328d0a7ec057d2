"""Run as a program: record synthetic traffic under load until killed, and tell the parent when each event was put.

Arguments: the run folder, the side file (8 bytes an event: its number's put time, monotonic ns, 0 = not yet).
"""

from __future__ import annotations

import mmap
import sys
import time
from pathlib import Path

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.tap import ConnectionClosed, RequestStarted, ResponseData

HISTORY = b'{"role": "user", "content": "a long history that is sent again at every turn, word for word"}, ' * 40
RESPONSE_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def main() -> None:
    redactor = Redactor()
    redactor.learn("sk-some-secret-to-look-for")
    recorder = Recorder(Path(sys.argv[1]), "killed", redactor, segment_bytes=200_000)
    recorder.start()
    with open(sys.argv[2], "r+b") as file:
        times = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
        number, connection = 0, 0
        while number + 32 < len(times):
            connection += 1
            body = b"[" + HISTORY + b"#%08d;]" % number
            head = b"POST /%d HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (connection, len(body))
            now = time.monotonic_ns()
            recorder.put(RequestStarted(connection, now, "up", (), head, body, b"/", True))
            times[number] = time.monotonic_ns()
            number += 1
            recorder.put(ResponseData(connection, now, RESPONSE_HEAD))
            for _ in range(20):
                recorder.put(ResponseData(connection, time.monotonic_ns(), b"a\r\n#%08d;\r\n" % number))
                times[number] = time.monotonic_ns()
                number += 1
            if connection % 3:
                recorder.put(ResponseData(connection, time.monotonic_ns(), b"0\r\n\r\n"))
                recorder.put(ConnectionClosed(connection, time.monotonic_ns()))
            time.sleep(0.004)


main()
