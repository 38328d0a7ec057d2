"""Options that `proxy` and `wrap` share, and the session they make of them."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from proxy.session import RecordingSession, SessionOptions

IDENTIFIED_SECONDS = 3.0
"""So long the end of a recording waits for what its servers are, once something was sent to them."""

OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option(
        "--upstream",
        "upstreams",
        multiple=True,
        metavar="[NAME=]URL",
        help="The server: http://..., https://..., mlx:MODEL_DIR or llamacpp:MODEL.gguf. Repeat for several.",
    ),
    click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Run folder; by default a new one."),
    click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen here; a free port by default."),
    click.option("--by-prefix", is_flag=True, help="One port for several upstreams: /NAME/... chooses."),
    click.option("--keep-host", is_flag=True, help="Forward the client's Host header as it came."),
    click.option(
        "--connect-timeout", type=click.FloatRange(0, min_open=True), default=10.0, show_default=True, help="Seconds."
    ),
    click.option(
        "--read-timeout",
        type=click.FloatRange(0, min_open=True),
        help="Seconds without a byte from the server; no limit by default.",
    ),
    click.option("--cacert", type=click.Path(exists=True, dir_okay=False), help="CA file for https upstreams."),
    click.option("--insecure", is_flag=True, help="Do not check the certificates of https upstreams."),
    click.option("--strict", is_flag=True, help="Refuse traffic when the record cannot be written."),
    click.option("--redact", "patterns", multiple=True, metavar="REGEX", help="Mask what matches on the stored copy."),
    click.option("--redact-field", "fields", multiple=True, metavar="NAME", help="Mask this JSON string field."),
    click.option("--rotate-mb", type=click.IntRange(1), help="Size at which the journal rotates and is compressed."),
)


def recording_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the shared options to a command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def session_options(shared: dict[str, Any], **relay: Any) -> SessionOptions:
    """The session that the shared options ask for; `relay` are further fields of `RelayConfig`."""
    if not shared["upstreams"]:
        raise click.UsageError(
            "say which server to record: --upstream http://localhost:8080 (or mlx:MODEL_DIR, llamacpp:MODEL.gguf)"
        )
    from proxy.relay.server import RelayConfig
    from proxy.session import SessionOptions
    from results.journal import SEGMENT_BYTES

    rotate = shared["rotate_mb"]
    return SessionOptions(
        upstreams=tuple(shared["upstreams"]),
        out=shared["out"],
        port=shared["port"],
        by_prefix=shared["by_prefix"],
        relay=RelayConfig(
            upstreams=(),
            keep_host=shared["keep_host"],
            connect_timeout=shared["connect_timeout"],
            read_timeout=shared["read_timeout"],
            cacert=shared["cacert"],
            insecure=shared["insecure"],
            **relay,
        ),
        strict=shared["strict"],
        redact_patterns=tuple(shared["patterns"]),
        redact_fields=tuple(shared["fields"]),
        segment_bytes=rotate << 20 if rotate else SEGMENT_BYTES,
        command=tuple(sys.argv),
        environment=dict(os.environ),
    )


def identify_upstreams(session: RecordingSession) -> threading.Thread:
    """Find out what the servers behind a recording are, for its manifest, on a thread that no traffic waits for.

    The imports are slow, and the loop of this thread carries traffic.
    """

    def work() -> None:
        from probe.describing import describe_upstreams

        describe_upstreams(session, session.upstreams)

    thread = threading.Thread(target=work, name="stacktap-describe", daemon=True)
    thread.start()
    return thread


async def finish_identifying(session: RecordingSession, identifying: threading.Thread) -> None:
    """Wait a moment, once something was sent, until it is known what answered: a short agent may be done before. On a
    server of several models the one that was asked for is looked at. A large model's hash is not waited for."""
    if not session.recorder.status()["attempts"]:
        return
    await asyncio.to_thread(identifying.join, IDENTIFIED_SECONDS)
    if not identifying.is_alive():
        await session.settled(1.0)

        def work() -> None:
            from probe.describing import describe_asked

            describe_asked(session, session.upstreams, IDENTIFIED_SECONDS)

        await asyncio.to_thread(work)
