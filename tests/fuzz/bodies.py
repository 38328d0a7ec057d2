"""`python -m tests.fuzz.bodies`: mutated captures and cases through the classifier: no exception, no hang.

Each body is a capture's or case's response (now and then its request) with a few mutations: bytes changed, cut,
doubled, swapped with pieces of other bodies, JSON values replaced, nesting blown up, headers that lie. It is judged
blind, and every eighth time sighted as well. A failure is printed with the seed that makes it and kept as a file.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import resource
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path

from proxy.classify import ExchangeView, RunMemory, classify
from proxy.exchange_files import captures, from_case
from results.outcomes import check
from stacks.dialects import WireExchange
from tests.support.corpus import capture_files, cases

SLOW_SECONDS = 5.0
_TOKENS = (
    b"null", b"true", b"{}", b"[]", b'""', b"-1", b"1e999", b"NaN", b"[[[[", b"{\"a\":", b"\\ud800", b"\xff\xfe", b"\0",
    b"data: ", b"\n\n", b"[DONE]", b"event: error\n", b"<tool_call>", b"</tool_call>", b"<think>", b"<|channel|>",
    b'{"error":"', b'"tool_calls":', b'"arguments":', b'"finish_reason":"length"', b'"usage":null', b"\r\n", b"'",
)  # fmt: skip


def seeds() -> list[ExchangeView]:
    """Every case and capture as a view."""
    found = [from_case(case).view for case in cases()]
    for _, lines in capture_files():
        found += [exchange.view for exchange in captures(lines)]
    return found


def mutated(body: bytes, other: bytes, dice: random.Random) -> bytes:
    """A body after one to five mutations."""
    data = bytearray(body)
    for _ in range(dice.randint(1, 5)):
        at = dice.randrange(len(data) + 1)
        kind = dice.randrange(8)
        if kind == 0 and data:
            data[at % len(data)] = dice.randrange(256)
        elif kind == 1:
            del data[at : at + dice.randint(1, 60)]
        elif kind == 2:
            data[at:at] = dice.choice(_TOKENS)
        elif kind == 3:
            start = dice.randrange(len(other) + 1)
            data[at:at] = other[start : start + dice.randint(1, 200)]
        elif kind == 4:
            data[at:at] = data[at : at + dice.randint(1, 300)]
        elif kind == 5:
            del data[at:]
        elif kind == 6:
            data[at:at] = dice.choice((b"[", b'{"a":', b"<think>", b"<tool_call>", b"((")) * dice.randint(1, 3000)
        else:
            data[at : at + dice.randint(0, 8)] = dice.choice(_TOKENS)
    return bytes(data)


def fuzzed(view: ExchangeView, other: ExchangeView, dice: random.Random) -> ExchangeView:
    """A view with a mutated response, request, status or headers."""
    wire = view.wire
    changed = WireExchange(
        wire.method,
        wire.target,
        wire.request_headers,
        wire.request_body,
        wire.status,
        wire.response_headers,
        mutated(wire.response_body, other.wire.response_body, dice),
        wire.response_complete,
    )
    if dice.random() < 0.25:
        changed.request_body = mutated(wire.request_body, other.wire.request_body, dice)
    if dice.random() < 0.1:
        changed.status = dice.choice((0, 100, 200, 204, 302, 400, 404, 500, 503, 999))
    if dice.random() < 0.1:
        kind = dice.choice(("application/json", "text/event-stream", "application/x-ndjson", "text/html", "x" * 5000))
        changed.response_headers = [("content-type", kind)]
    if dice.random() < 0.1:
        changed.target, changed.response_complete = other.wire.target, False
    return replace(view, wire=changed)


def one(seed: int, views: list[ExchangeView], memory: RunMemory) -> ExchangeView:
    """Judge the exchange of one seed; raises what the classifier raises."""
    dice = random.Random(seed)
    view = fuzzed(dice.choice(views), dice.choice(views), dice)
    check(classify(view, memory))
    if seed % 8 == 0:
        check(classify(view, memory, dice.choice(("", "hello", "<tool_call>\n{'name': 'x'}\n</tool_call>"))))
    return view


def main() -> int:
    """Run the wanted number of bodies; exit code 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this long")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder for failures")
    options = parser.parse_args()
    views, memory = seeds(), RunMemory()
    started, failures, slowest = time.monotonic(), 0, 0.0
    seed = options.first
    for seed in range(options.first, options.first + options.bodies):
        before = time.monotonic()
        if before - started > options.seconds:
            break
        try:
            one(seed, views, memory)
        except Exception:
            failures += 1
            options.keep.mkdir(exist_ok=True)
            (options.keep / f"{seed}.txt").write_text(traceback.format_exc())
            print(f"seed {seed}:\n{traceback.format_exc(limit=-4)}", file=sys.stderr)
        took = time.monotonic() - before
        if took > slowest:
            slowest = took
            if took > SLOW_SECONDS:
                failures += 1
                print(f"seed {seed} took {took:.1f} s", file=sys.stderr)
    done = seed - options.first + 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{done} bodies, {failures} failures, slowest {slowest:.2f} s, peak memory {peak} MB")
    return 1 if failures else 0


def body_of(view: ExchangeView) -> str:
    """A view's response as base64, to turn a failure into a test."""
    return json.dumps({"status": view.wire.status, "body": base64.b64encode(view.wire.response_body).decode()})


if __name__ == "__main__":
    sys.exit(main())
