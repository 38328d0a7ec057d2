"""Each item of a recorded session in all its states, from journals of the real recorder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from checklists.items.collect import checklist_of
from checklists.reading import RunSource
from results.manifest import Fact, known, unknown
from tests.support.checklist_runs import (
    CALLED,
    NEEDS_JINJA,
    SERVER,
    SPOKEN,
    Raw,
    asked,
    entry,
    filled,
    make_recording,
    plain,
    without,
)
from tests.support.recorded import CALL_TEXT, answer

ONE = [Raw(asked(temperature=0.2, max_tokens=64), CALLED)]
GATEWAY = {**SERVER, "launch_flags": known(["/usr/bin/ssh", "-L", "8001:gpu:8000"], "process table")}
IN_PROCESS = {
    "stack": known("mlx in-process", "specification"),
    "version": known("0.31.1", "package"),
    "launch_flags": known([], "served in this process"),
    "model": known("/m/qwen", "specification"),
}

Row = tuple[str, Sequence[Raw], Mapping[str, Fact] | None, str, str]
ROWS: dict[str, Row] = {
    "C01 yes": ("C01", ONE, None, "filled", "llama-server b11434, build: binary llama-server SHA-256 abc"),
    "C01 no build": ("C01", ONE, without("build"), "filled", "build not known: nobody looked"),
    "C01 no version": ("C01", ONE, without("version"), "unknown", "nobody looked; known: llama-server"),
    "C01 no stack": ("C01", ONE, without("stack", "version", "build"), "unknown", "nobody looked"),
    "C01 in-process": ("C01", ONE, IN_PROCESS, "filled", "mlx (inside of stacktap) 0.31.1"),
    "C02 yes": ("C02", ONE, None, "filled", "launch flags on tools: --jinja; parser in force: made from"),
    "C02 in-process": ("C02", ONE, IN_PROCESS, "filled", "served inside of stacktap, no launch flags"),
    "C02 no flags": ("C02", ONE, without("launch_flags"), "filled", "parser in force: made from the chat template"),
    "C02 no flags, no parser": (
        "C02",
        ONE,
        without("launch_flags", "parser"),
        "unknown",
        "nobody looked, and the server",
    ),
    "C02 a tunnel": ("C02", ONE, {**GATEWAY, "parser": unknown("?")}, "unknown", "not recognised as this server"),
    "C03 yes": ("C03", ONE, None, "filled", "qwen, digest sha256:aa, 4.85 bits for each weight (measured)"),
    "C03 not measured": ("C03", ONE, without("bits_per_weight"), "unknown", "bits for each weight: nobody looked"),
    "C03 no digest": ("C03", ONE, without("model_digest"), "unknown", "digest: nobody looked"),
    "C04 yes": ("C04", ONE * 2, None, "filled", "accepted in 2 of 2 requests with tools"),
    "C04 no": (
        "C04",
        [Raw(asked(), NEEDS_JINJA)],
        None,
        "filled",
        "no: refused in 1 of 1 requests with tools: “tools param requires --jinja flag” (gate.template_flag_missing)",
    ),
    "C04 both": (
        "C04",
        [*ONE, Raw(asked(), NEEDS_JINJA)],
        None,
        "filled",
        "accepted in 1 of 2 requests with tools, refused",
    ),
    "C04 none asked": ("C04", [Raw(plain(), SPOKEN)], None, "unknown", "no request with tools was sent"),
    "C04 nobody there": ("C04", [Raw(asked(), b"", "refused")], None, "unknown", "none of 1 requests with tools was"),
    "C05 yes": ("C05", ONE, None, "filled", "they do (/apply-template)"),
    "C05 no": (
        "C05",
        ONE,
        {**SERVER, "tools_in_prompt": known(False, "/tokenize")},
        "filled",
        "no: they do not (/tokenize)",
    ),
    "C05 unknown": ("C05", ONE, without("tools_in_prompt"), "unknown", "nobody looked"),
    "C06 field": ("C06", ONE, None, "filled", "valid calls: 1 of 1 in its own field"),
    "C06 text": ("C06", [*ONE, Raw(asked(), answer(content=CALL_TEXT))], None, "filled", "1 of 2 as text"),
    "C06 none": ("C06", [Raw(asked(), SPOKEN)], None, "filled", "no valid call arrived anywhere"),
    "C06 nothing": ("C06", [Raw(asked(), b"", "refused")], None, "not_applicable", "no answer of the model arrived"),
    "C07": ("C07", ONE, None, "unknown", "does not show on the wire"),
    "C08 one": ("C08", ONE, None, "filled", "one condition: tools in the request in 1 of 1; no system prompt"),
    "C08 two": ("C08", [*ONE, Raw(plain(), SPOKEN)], None, "filled", "not one condition throughout"),
    "C08 nothing": ("C08", [], None, "not_applicable", "no request asked for an answer"),
    "C09 yes": (
        "C09",
        ONE,
        None,
        "filled",
        "max_tokens 64, temperature 0.2, no stop strings, no seed (in 1 of 1); where not sent, top_p 0.95 by the "
        "server (/props); context in force 8192 tokens",
    ),
    "C09 no defaults": ("C09", ONE, without("sampling"), "unknown", "top_p where not sent: nobody looked"),
    "C09 no context": ("C09", ONE, without("context_length"), "unknown", "context in force: nobody looked"),
    "C09 nothing": ("C09", [], None, "not_applicable", "no request asked for an answer"),
    "C10": ("C10", ONE, None, "not_applicable", "stacktap set no tasks here"),
    "C11 yes": ("C11", [*ONE, Raw(asked(), b"", "refused")], None, "filled", "1 of 2 attempts brought an answer"),
    "C11 rejected": (
        "C11",
        [Raw(asked(), NEEDS_JINJA)],
        None,
        "filled",
        "outside, by layer: gate 1; the rate is undefined (rej), not 0",
    ),
    "C11 nothing": ("C11", [], None, "not_applicable", "no request asked for an answer"),
    "C12 yes": (
        "C12",
        [*ONE, Raw(asked(), b"", "refused")],
        None,
        "filled",
        "1 of 2 attempts failed on the way (transport.connect 1)",
    ),
    "C12 nothing": ("C12", [], None, "not_applicable", "no request asked for an answer"),
    "C13": ("C13", ONE, None, "not_applicable", "stacktap set no tasks here"),
    "C14": ("C14", ONE, None, "unknown", "caps on turns and time do not show"),
    "C15": ("C15", ONE, None, "not_applicable", "stacktap set no tasks here"),
    "C16": (
        "C16",
        ONE,
        None,
        "filled",
        "no: nothing is ranked: no two models were given the same tasks on one server. Claims not made: hosted APIs",
    ),
    "C17": ("C17", ONE, None, "not_done", "not done: no other serving stack was asked the same"),
    "C18 yes": (
        "C18",
        ONE,
        None,
        "filled",
        "Epyc, processors 8, memory 16.0 GiB, Linux 6, computes with libggml-cpu.so",
    ),
    "C18 no backend": ("C18", ONE, without("kernel_backend"), "unknown", "nobody looked; known: Epyc"),
    "C19 yes": ("C19", ONE, None, "filled", "valid for llama-server b11434 with qwen"),
    "C19 unknown": ("C19", ONE, without("version", "model"), "unknown", "not known: version"),
    "C20": ("C20", ONE, None, "filled", "every byte is kept in the journal (SHA-256"),
    "C21": ("C21", ONE, None, "not_applicable", "no task was checked"),
    "C22": ("C22", ONE, None, "not_applicable", "nothing was declared beforehand"),
}


@pytest.mark.parametrize("name", ROWS)
def test_an_item(name: str, tmp_path: Path) -> None:
    item, exchanges, facts, counted, words = ROWS[name]
    found = entry(item, tmp_path, exchanges, facts)
    assert found.counted == counted, found
    assert words in found.said
    assert bool(found.command) == (counted in ("unknown", "not_done"))


def test_commands_name_the_run_and_the_server(tmp_path: Path) -> None:
    found = filled(tmp_path, ONE, without("launch_flags", "parser", "tools_in_prompt"))
    assert found.entry("C02").command.startswith('stacktap report run-1 --set C02="')
    assert found.entry("C05").command == "stacktap diagnose http://127.0.0.1:8001 --model qwen"
    assert found.entry("C17").command.startswith("stacktap compare http://127.0.0.1:8001 ")


def test_evidence_leads_to_the_bytes(tmp_path: Path) -> None:
    found = entry("C04", tmp_path, [*ONE, Raw(asked(), NEEDS_JINJA)])
    refusal = next(link for link in found.evidence if link.what == "the refusal")
    exchange = next(seen.exchange for seen in RunSource(tmp_path) if seen.exchange.attempt == refusal.attempt)
    assert b"requires --jinja flag" in exchange.wire(refusal.direction)[refusal.start : refusal.end]


def test_a_server_on_another_host_is_on_hardware_that_nobody_sees(tmp_path: Path) -> None:
    make_recording(
        tmp_path, {"far": ONE}, {"far": without("launch_flags", "parser", why="the server is on another host")}
    )
    found = checklist_of(RunSource(tmp_path))
    assert found.entry("C18").said.startswith("unknown: the server is on another host")
    assert "gpu.example" in next(line.text for line in found.scope if line.kind == "hosted_api")


def test_on_a_server_of_several_models_only_the_one_looked_at_is_known(tmp_path: Path) -> None:
    several = {**SERVER, "listed_models": known(["qwen:latest", "m"], "/api/tags")}
    found = filled(tmp_path / "other", ONE, several)  # the requests ask for m
    assert "asked for was m; the server holds several models, and qwen was looked at" in found.entry("C03").said
    assert {found.entry(item).counted for item in ("C03", "C05", "C09")} == {"unknown"}
    assert (
        found.entry("C19").said
        == "valid for llama-server b11434 with m; whether tools are accepted is this release's policy"
    )
    same = filled(tmp_path / "same", [Raw(asked(model="qwen:latest"), CALLED)], several)
    assert same.entry("C03").counted == "filled"
    single = filled(tmp_path / "single", ONE, {**SERVER, "listed_models": known(["qwen"], "/v1/models")})
    assert single.entry("C03").counted == "filled"  # a server of one model takes any name


def test_without_a_manifest_it_says_so(tmp_path: Path) -> None:
    make_recording(tmp_path, {"up": ONE}, {})
    found = checklist_of(RunSource(tmp_path))
    assert "run.json" in found.entry("C01").why
    assert found.entry("C04").counted == "filled"
    assert found.counts.total == 22


def test_without_requests_nothing_is_made_up(tmp_path: Path) -> None:
    found = filled(tmp_path, [])
    assert {entry.id for entry in found.entries if entry.counted == "filled"} == {
        "C01", "C02", "C03", "C05", "C16", "C18", "C19", "C20",
    }  # fmt: skip


def test_an_empty_run_names_no_server(tmp_path: Path) -> None:
    make_recording(tmp_path, {}, {})
    found = checklist_of(RunSource(tmp_path))
    assert "names no server" in found.entry("C01").why
    assert {one.counted for one in found.entries if one.id in ("C01", "C04", "C09", "C18")} == {"unknown"}


def test_several_servers_are_answered_one_by_one(tmp_path: Path) -> None:
    other = {
        **SERVER,
        "stack": known("vllm", "x"),
        "version": known("0.32.0", "x"),
        "tools_in_prompt": unknown("closed"),
    }
    make_recording(tmp_path, {"a": ONE, "b": [Raw(asked(), SPOKEN)]}, {"a": SERVER, "b": other})
    found = checklist_of(RunSource(tmp_path))
    assert found.entry("C01").said.startswith("a: llama-server b11434")
    assert "b: vLLM 0.32.0" in found.entry("C01").said
    five = found.entry("C05")
    assert (five.counted, five.why) == ("unknown", "b: closed")  # one of two is not filled
    assert len(five.parts) == 2
    assert found.entry("C17").said == "the same requests were sent to: a (llama-server b11434), b (vLLM 0.32.0)"
    assert any(line.kind == "mixed" for line in found.scope)


def test_the_same_stack_twice_is_no_other_server(tmp_path: Path) -> None:
    make_recording(tmp_path, {"a": ONE, "b": ONE}, {"a": SERVER, "b": SERVER})
    assert checklist_of(RunSource(tmp_path)).entry("C17").counted == "not_done"


def test_the_same_requests_to_servers_that_nobody_knows_prove_nothing(tmp_path: Path) -> None:
    make_recording(tmp_path, {"a": ONE, "b": ONE}, {"a": SERVER, "b": without("stack", "version")})
    assert checklist_of(RunSource(tmp_path)).entry("C17").counted == "unknown"


def test_requests_sent_again_are_counted_by_header_and_by_content(tmp_path: Path) -> None:
    again = asked().replace(
        b"Host: relay\r\n", b"Host: relay\r\nx-stainless-retry-count: 1\r\nx-stainless-read-timeout: 600\r\n"
    )
    found = entry("C12", tmp_path, [Raw(asked(), b"", "rst"), Raw(again, CALLED)])
    assert "1 were sent again after a failure" in found.said
    assert "names a timeout of 600 s" in found.said


def test_what_the_user_states_is_marked_and_counts(tmp_path: Path) -> None:
    found = filled(tmp_path, ONE, without("kernel_backend"), {"C18": "RTX 4090, driver 560", "C01": "built by hand"})
    assert found.entry("C18").said == "RTX 4090, driver 560 (stated by the user)"
    assert found.entry("C18").stated
    assert found.entry("C01").said.startswith("built by hand; measured: llama-server b11434")
    assert "2 stated by the user" in found.header


def test_a_live_or_damaged_journal_is_told(tmp_path: Path) -> None:
    make_recording(tmp_path, {"up": ONE}, {"up": SERVER})
    with (tmp_path / "wire.jsonl").open("ab") as journal:
        journal.write(b"{broken\n")
    assert "corrupt lines were skipped" in checklist_of(RunSource(tmp_path)).entry("C20").said
