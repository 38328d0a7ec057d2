"""Grids as their file says them, and every way in which a file can be wrong."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.grid import MOST_BYTES, GridError, family_of, filled_headers, parse_grid, read_grid
from harness.grid_cells import cells_of, model_name
from harness.tasks.submit import Submit

GOOD = """
targets:
  - {name: a, url: "http://localhost:1", model: m, headers: {Authorization: "Bearer ${KEY}"}}
  - {name: b, up: llamacpp, path: ~/models/tiny-q4.gguf, flags: [--jinja], conditions: [text-tools]}
conditions: [native, text-tools, {name: native+hint, hint: no-names}]
tasks: [aggregation, {family: chain, size: 2, seeds: [7]}]
seeds: [42, 123]
repeats: 2
sampling: {temperature: 0.5, decoder_seed: task}
limits: {turns: 5, retries: 1}
"""


def test_a_grid_is_targets_by_conditions_by_tasks() -> None:
    grid = parse_grid(GOOD)
    cells = cells_of(grid)
    assert [cell.key.title for cell in cells] == [
        "m @ a, native, aggregation",
        "m @ a, native, chain/2",
        "m @ a, text-tools, aggregation",
        "m @ a, text-tools, chain/2",
        "m @ a, native+hint/no-names, aggregation",
        "m @ a, native+hint/no-names, chain/2",
        "tiny-q4 @ b, text-tools, aggregation",
        "tiny-q4 @ b, text-tools, chain/2",
    ]
    places = [(seed, repeat) for _, seed, repeat in cells[0].places()]
    assert places == [(42, 0), (123, 0), (42, 1), (123, 1)]
    assert [seed for _, seed, _ in cells[1].places()] == [7, 7]
    assert grid.sampling_of(42).seed == 42
    assert grid.limits_of(cells[0].family).turns == 5
    assert grid.limits_of(cells[0].family).retries == 1


def test_what_is_left_out_has_a_default() -> None:
    grid = parse_grid("targets: [{name: a, url: 'http://x'}]\ntasks: [chain]")
    (cell,) = cells_of(grid)
    assert (cell.key.condition, cell.seeds, cell.repeats, model_name(grid.targets[0])) == ("native", (0,), 1, "default")
    assert grid.limits_of(cell.family).turns == cell.family.turn_cap
    assert grid.sampling_of(3).seed is None


TARGET = "targets: [{name: a, url: 'http://x'}]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("targets: [", "line 1, column 11: no valid YAML: expected the node content"),
        ("targets: [", "\n  -> close what is open there"),
        ("targets:\n  - name: a\n    url: 'http://h\ntasks: [chain]\n", "(what began in line 3)\n  -> close"),
        ("targets:\n\t- name: a\n", "\n  -> indent with spaces"),
        ("targets: !!python/name:os.system\n", "\n  -> a grid holds plain values"),
        ("tasks: *chain\n", "\n  -> a grid needs no aliases"),
        ("- 1", "holds one value, not fields"),
        ("", "the grid is empty; it begins with `targets:`"),
        ("a: &x [*x]", "unknown field"),
        ("targets: [{name: a, url: 'http://x', model: \"\\uD800\"}]\ntasks: [chain]", "half of a surrogate pair"),
        (TARGET, "missing required field `tasks`"),
        (TARGET + "tasks: [chain]\nseed: [1]", "unknown field `seed`"),
        ("targets: [{name: a, url: 'http://x', modle: m}]\ntasks: [chain]", "unknown field `modle`"),
        (TARGET + "tasks: [{family: chain, sise: 1}]", "unknown field `sise`"),
        (TARGET + "tasks: [chain]\nversion: 2", "version 2 is not known"),
        (TARGET + "tasks: []", "at least one of each"),
        ("targets: []\ntasks: [chain]", "at least one of each"),
        (TARGET + "tasks: [chain]\nconditions: []", "at least one of each"),
        (TARGET + "tasks: [chains]", "no task 'chains'; there are aggregation, chain"),
        (TARGET + "tasks: [chain, chain]", "tasks: 'chain' stands twice"),
        (TARGET + "tasks: [chain]\nconditions: [natve]", "no condition 'natve'; there are native"),
        (TARGET + "tasks: [chain]\nconditions: [{name: text-tools, hint: weak}]", "hint is full or no-names"),
        (TARGET + "tasks: [chain]\nconditions: [native, native]", "conditions: 'native' stands twice"),
        (TARGET + "tasks: [chain]\nseeds: [1, 1]", "a seed stands twice"),
        (TARGET + "tasks: [chain]\nseeds: []", "no seeds"),
        (TARGET + "tasks: [chain]\nseeds: [one]", "Expected `int`"),
        (TARGET + "tasks: [chain]\nrepeats: 0", "repeats is 0"),
        (TARGET + "tasks: [{family: chain, size: 0}]", "0 orders cannot be made"),
        (TARGET + "tasks: [{family: submit, size: 3}]", "has no size"),
        (TARGET + "tasks: [{family: submit, seeds: [6]}]", "there is no problem 6"),
        (TARGET + "tasks: [{family: chain, withheld: [sing]}]", "no tool 'sing' to withhold; there are done"),
        (TARGET + "tasks: [{family: chain, problems: x.jsonl}]", "only submit takes problems"),
        (TARGET + "tasks: [{family: submit, problems: /nonexistent}]", "/nonexistent cannot be read"),
        (TARGET + "tasks: [chain]\nlimits: {turns: 0}", "turns must be above 0"),
        (TARGET + "tasks: [chain]\nlimits: {attempt_seconds: 0}", "must be above 0"),
        (TARGET + "tasks: [chain]\nlimits: {retries: -1}", "retries 0 or more"),
        (TARGET + "tasks: [chain]\nsampling: {decoder_seed: own}", "decoder_seed is a number, task, or repeat"),
        (TARGET + "tasks: [chain]\nsampling: {max_tokens: 0}", "max_tokens 1 or more"),
        (TARGET + "tasks: [chain]\nsampling: {temperature: -1}", "temperature must be 0 or more"),
        (TARGET + "tasks: [chain]\nsampling: {temperature: .nan}", "temperature must be 0 or more"),
        (TARGET + "tasks: [chain]\nsampling: {top_p: 0}", "top_p above 0"),
        ("targets: [{name: a, url: 'http://x', context_length: 5000}]\ntasks: [chain]", "context_length is 1 or more"),
        ("targets: [{name: a, up: vllm, path: y, context_length: 0}]\ntasks: [chain]", "context_length is 1 or more"),
        ("targets: [{name: a, up: vllm, path: y, context_length: 1024}]\ntasks: [chain]", "holds no prompt beside"),
        ("targets: [{name: a, up: mlx_inprocess, path: y, flags: [-x]}]\ntasks: [chain]", "flags are for servers"),
        ("targets: [{name: 'a b', url: 'http://x'}]\ntasks: [chain]", "a name is letters"),
        ("targets: [{name: a}]\ntasks: [chain]", "give url (a running server) or up"),
        ("targets: [{name: a, url: 'http://x', up: vllm, path: y}]\ntasks: [chain]", "one of the two"),
        ("targets: [{name: a, up: vllm}]\ntasks: [chain]", "up needs path"),
        ("targets: [{name: a, up: vllm, path: y, canary: does}]\ntasks: [chain]", "up needs path"),
        ("targets: [{name: a, up: vllm, canary: sings}]\ntasks: [chain]", "no canary 'sings'; there are does"),
        ("targets: [{name: a, url: 'http://x', path: y}]\ntasks: [chain]", "path goes with up"),
        ("targets: [{name: a, up: vllm, path: y, cacert: z}]\ntasks: [chain]", "cacert goes with an https url"),
        ("targets: [{name: a, url: 'ftp://x'}]\ntasks: [chain]", "must begin with http"),
        ("targets: [{name: a, url: 'http://x', api: gemini}]\ntasks: [chain]", "api is openai or ollama"),
        ("targets: [{name: a, url: 'http://x', concurrency: 0}]\ntasks: [chain]", "concurrency must be 1"),
        ("targets: [{name: a, url: 'http://x', conditions: [constrained]}]\ntasks: [chain]", "it has native"),
        ("targets: [{name: a, url: 'http://x'}, {name: a, url: 'http://y'}]\ntasks: [chain]", "'a' stands twice"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(GridError, match=said.replace("(", r"\(").replace(")", r"\)")):
        parse_grid(text)


@given(st.text() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_any_text_is_a_grid_or_a_grid_error(text: str) -> None:
    with contextlib.suppress(GridError):
        assert parse_grid(text).targets


def test_a_file_is_named_in_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    for content, said in (
        (b"\xff\xfe", "UTF-8"),
        (b"a" * (MOST_BYTES + 1), "larger than"),
        (b"tasks: 1", "grid.yaml: "),
    ):
        path.write_bytes(content)
        with pytest.raises(GridError, match=said):
            read_grid(path)
    with pytest.raises(GridError, match="cannot read"):
        read_grid(tmp_path)
    path.write_text(GOOD)
    assert read_grid(path) == parse_grid(GOOD)


def test_headers_are_filled_from_the_environment_alone() -> None:
    target = parse_grid(GOOD).targets[0]
    assert filled_headers(target, {"KEY": "s3cret"}) == ({"Authorization": "Bearer s3cret"}, ["s3cret"])
    for environment in ({}, {"KEY": ""}):
        with pytest.raises(GridError, match="the variable KEY is not set"):
            filled_headers(target, environment)


def test_problems_of_a_file_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "problems.jsonl"
    path.write_text(json.dumps({"task_id": "own/0", "prompt": "def f():\n", "entry_point": "f"}) + "\n")
    grid = parse_grid(TARGET + f"tasks: [{{family: submit, problems: '{path}'}}]")
    family = family_of(grid.task_rows()[0])
    assert isinstance(family, Submit)
    assert family.task(0).problem.id == "own/0"
    with pytest.raises(GridError, match="there is no problem 1; there are 1"):
        parse_grid(TARGET + f"tasks: [{{family: submit, seeds: [1], problems: '{path}'}}]")
