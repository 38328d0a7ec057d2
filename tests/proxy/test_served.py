"""What the manifest says of the servers, in the classifier's hands."""

from __future__ import annotations

from pathlib import Path

from proxy.served import ServerFacts, servers_of
from results.manifest import UpstreamFacts, known, new_manifest, unknown, write_manifest


def test_servers_of_a_manifest(tmp_path: Path) -> None:
    first = {
        "stack": known("vllm", "told"),
        "version": known("0.32.0", "told"),
        "launch_flags": known(["vllm", "serve", "--tool-call-parser", "hermes"], "process table"),
    }
    second = {"launch_flags": unknown("on another host")}
    upstreams = [UpstreamFacts("a", "http://a", first), UpstreamFacts("b", "http://b", second)]
    write_manifest(tmp_path, new_manifest("run", command=(), upstreams=upstreams, facts={}))
    assert servers_of(tmp_path) == {
        "a": ServerFacts("vllm", "0.32.0", ("vllm", "serve", "--tool-call-parser", "hermes")),
        "b": ServerFacts(),
    }


def test_a_run_without_a_manifest_can_be_judged(tmp_path: Path) -> None:
    assert servers_of(tmp_path) == {}
    (tmp_path / "run.json").write_text('{"schema": 1, "run"')
    assert servers_of(tmp_path) == {}
