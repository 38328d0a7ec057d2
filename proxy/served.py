"""What a run's manifest knows of the servers behind its upstreams, as the classifier wants it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from results.manifest import Manifest, ManifestError, read_manifest


class ServerFacts(NamedTuple):
    """A server: stack and version ("" where not known), and how it was started (None where not known)."""

    stack: str = ""
    version: str = ""
    launch_flags: tuple[str, ...] | None = None


UNKNOWN_SERVER = ServerFacts()


def servers_of(folder: Path) -> dict[str, ServerFacts]:
    """The servers of a run by upstream name; empty where its manifest is missing or damaged (a run without one can
    still be judged)."""
    try:
        manifest = read_manifest(folder)
    except ManifestError:
        return {}
    return {upstream.name: _server(manifest, upstream.name) for upstream in manifest.upstreams}


def _server(manifest: Manifest, name: str) -> ServerFacts:
    stack, version = (manifest.fact(fact, name).value for fact in ("stack", "version"))
    flags = manifest.fact("launch_flags", name)
    known = flags.unknown is None and isinstance(flags.value, (list, tuple))
    return ServerFacts(
        stack if isinstance(stack, str) else "",
        version if isinstance(version, str) else "",
        tuple(str(flag) for flag in flags.value) if known else None,
    )
