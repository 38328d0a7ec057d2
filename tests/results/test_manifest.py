"""The manifest: everything stated, nothing left out, written whole."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from results.manifest import (
    RUN_FACTS,
    UPSTREAM_FACTS,
    ManifestError,
    UpstreamFacts,
    known,
    new_manifest,
    read_manifest,
    write_manifest,
)


def test_all_facts_are_values_or_unknown_with_a_reason(tmp_path: Path) -> None:
    upstream = UpstreamFacts("a", "http://127.0.0.1:1", {"version": known("0.5", "GET /version")})
    write_manifest(tmp_path, new_manifest("run-1", command=["stacktap", "proxy"], upstreams=[upstream]))
    manifest = read_manifest(tmp_path)
    assert manifest.run == "run-1"
    assert manifest.fact("version").value == "0.5"
    assert manifest.fact("pack_hash").unknown == RUN_FACTS["pack_hash"]
    for name in UPSTREAM_FACTS:
        fact = manifest.fact(name, "a")
        assert (fact.value is None) == bool(fact.unknown)
    for fact in [*manifest.host.values(), *manifest.tools.values()]:
        assert (fact.value is None) == bool(fact.unknown)
    assert stat.S_IMODE((tmp_path / "run.json").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"schema": "x"}', "\xff", "[" * 100_000])
def test_damaged_manifest_is_said(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ManifestError, match="damaged"):
        read_manifest(tmp_path)


def test_newer_manifest_is_refused(tmp_path: Path) -> None:
    write_manifest(tmp_path, new_manifest("r"))
    found = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**found, "schema": 99}))
    with pytest.raises(ManifestError, match="update stacktap"):
        read_manifest(tmp_path)


def test_missing_manifest_and_unwritable_folder(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot read"):
        read_manifest(tmp_path)
    with pytest.raises(ManifestError, match="cannot write"):
        write_manifest(tmp_path / "missing", new_manifest("r"))
