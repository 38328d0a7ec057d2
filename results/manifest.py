"""The manifest of a run (`run.json`): what its numbers are bound to. Each is a value, or `unknown` with the reason.

Written whole into a temporary file, synced, and renamed. Secrets must be masked by the caller before they get here.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from results.machine import machine_told
from results.plain_files import read_plain
from results.segments import sync_folder
from results.version import VERSION
from results.whole_files import write_whole

MANIFEST = "run.json"
MANIFEST_SCHEMA = 1

UPSTREAM_FACTS = {
    "stack": "the server was not identified",
    "version": "the server was not asked for its version",
    "build": "the server's program was not looked at",
    "launch_flags": "the server's process was not looked up",
    "model": "the model was not identified",
    "listed_models": "the server was not asked for its models",
    "model_digest": "no digest or hash of the model was found",
    "quantization": "the server was not asked for the model's quantization",
    "bits_per_weight": "the model file was not measured",
    "parser": "the tool-call parser in force is not known",
    "reasoning_parser": "the reasoning parser in force is not known",
    "tools_in_prompt": "the server was not asked to render a prompt with tools",
    "chat_template_hash": "the chat template was not read",
    "sampling": "the server's sampling defaults were not read",
    "context_length": "the context length in force was not read",
    "kernel_backend": "the server did not say what it computes with",
}
"""What is stated of every upstream, and the reason that stands where nothing was found out."""

RUN_FACTS = {
    "agent": "no agent was started by stacktap",
    "agent_version": "no agent was started by stacktap",
    "pack_hash": "no task pack was run",
}
"""What is stated of every run besides."""


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value and where it is from, or the reason why it is unknown."""

    value: Any = None
    source: str = ""
    unknown: str | None = None


def known(value: Any, source: str) -> Fact:
    """A fact that was found out; `source` says how."""
    return Fact(value=value, source=source)


def unknown(reason: str) -> Fact:
    """A fact that was not found out."""
    return Fact(unknown=reason)


class UpstreamFacts(msgspec.Struct, frozen=True):
    """One upstream: its name, its URL (masked), and what is known of the server behind it."""

    name: str
    url: str
    facts: dict[str, Fact] = msgspec.field(default_factory=dict)


class Manifest(msgspec.Struct, frozen=True):
    """`run.json`. `created_us` is microseconds since the Unix epoch; `command` is masked."""

    schema: int
    run: str
    created_us: int
    stacktap: str
    command: tuple[str, ...]
    upstreams: tuple[UpstreamFacts, ...]
    facts: dict[str, Fact]
    host: dict[str, Fact]
    tools: dict[str, Fact]

    def fact(self, name: str, upstream: str | None = None) -> Fact:
        """A fact of the run, or of one upstream (None: the first); unknown where nothing is stated."""
        if name in self.facts:
            return self.facts[name]
        for facts in self.upstreams:
            if upstream is None or facts.name == upstream:
                return facts.facts.get(name, unknown(UPSTREAM_FACTS.get(name, "not stated")))
        return unknown("no such upstream in this run")


class ManifestError(Exception):
    """The manifest is missing, unreadable, or of a newer version."""


def new_manifest(
    run: str,
    *,
    command: Iterable[str] = (),
    upstreams: Iterable[UpstreamFacts] = (),
    facts: dict[str, Fact] | None = None,
) -> Manifest:
    """A manifest in which everything not given is `unknown` with its reason; host and tools are looked up here."""
    return Manifest(
        schema=MANIFEST_SCHEMA,
        run=run,
        created_us=time.time_ns() // 1000,
        stacktap=VERSION,
        command=tuple(command),
        upstreams=tuple(
            UpstreamFacts(one.name, one.url, {**_unknowns(UPSTREAM_FACTS), **one.facts}) for one in upstreams
        ),
        facts={**_unknowns(RUN_FACTS), **(facts or {})},
        host=host_facts(),
        tools={
            name: _version(name) for name in ("aiohttp", "httpx", "uvloop", "msgspec", "zstandard", "mlx", "mlx-lm")
        },
    )


def _unknowns(reasons: dict[str, str]) -> dict[str, Fact]:
    return {name: unknown(reason) for name, reason in reasons.items()}


def _version(package: str) -> Fact:
    try:
        return known(metadata.version(package), "package metadata")
    except metadata.PackageNotFoundError:
        return unknown("not installed")


def host_facts() -> dict[str, Fact]:
    """What machine this is: system, architecture, CPUs, memory in bytes, load, accelerator, Python."""
    facts = {
        "system": known(f"{platform.system()} {platform.release()}", "platform"),
        "machine": known(platform.machine(), "platform")
        if platform.machine()
        else unknown("the platform does not say"),
        "cpus": known(os.cpu_count(), "os.cpu_count") if os.cpu_count() else unknown("the system does not say"),
        "python": known(platform.python_version(), "platform"),
        "memory_bytes": unknown("the system does not say"),
    }
    if sys.platform != "win32":
        try:
            total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            facts["memory_bytes"] = known(total, "sysconf")
        except (ValueError, OSError):
            pass
    told = machine_told()
    return {**facts, **{name: unknown(one) if isinstance(one, str) else known(*one) for name, one in told.items()}}


def _encoded(manifest: Manifest) -> bytes:
    """As JSON; half a surrogate pair, which a server's words may hold and UTF-8 may not, as a question mark."""
    try:
        return msgspec.json.encode(manifest, order="sorted")
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(manifest), ensure_ascii=False, sort_keys=True)
        return text.encode("utf-8", "replace")


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `run.json` (0600), whole or not at all. Raises ManifestError."""
    body = msgspec.json.format(_encoded(manifest), indent=2) + b"\n"
    try:
        write_whole(folder / MANIFEST, body)
        sync_folder(folder)
    except OSError as error:
        raise ManifestError(f"cannot write {folder / MANIFEST}: {error.strerror or error}") from error


def read_manifest(folder: Path) -> Manifest:
    """Read `run.json`. Raises ManifestError with what to do about it."""
    path = folder / MANIFEST
    try:
        raw = read_plain(path)
    except OSError as error:
        raise ManifestError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        found = msgspec.json.decode(raw)
        schema = found.get("schema") if isinstance(found, dict) else None
        if isinstance(schema, int) and schema > MANIFEST_SCHEMA:
            raise ManifestError(
                f"{path} has schema version {schema}, this stacktap reads up to {MANIFEST_SCHEMA}: update stacktap"
            )
        return msgspec.convert(found, Manifest)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"{path} is damaged ({error}); the journal beside it can still be read") from error
