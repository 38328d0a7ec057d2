from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from harness.file_world import FileWorld
from harness.tasks import FAMILIES, Ended, family_named
from harness.tasks.aggregation import Aggregation, AggregationTask
from harness.tasks.chain import Chain, ChainTask
from harness.tasks.single_step import PATH, TOOL, SingleStep
from harness.tasks.submit import ProblemsError, Submit, SubmitWorld, own_problems, read_problems

AGGREGATION = {
    42: (5, 0.63, 5, 0.18),
    123: (6, 0.69, 5, 0.15),
    456: (2, 0.30, 4, 0.20),
    789: (5, 0.46, 1, 0.19),
    2024: (2, 0.40, 2, 0.18),
    7: (7, 0.65, 4, 0.03),
    99: (5, 0.57, 3, 0.21),
    2025: (4, 0.79, 5, 0.20),
}
"""Published answers of the paper's seeds."""
CHAIN = {
    42: [50.6, 251.2, 144.3, 180.0, 223.2, 298.14],
    123: [217.0, 268.5, 381.08, 267.15, 152.52, 177.9],
    456: [147.29, 287.46, 332.03, 329.4, 207.35, 492.8],
    789: [401.9, 272.11, 468.0, 319.4, 331.5, 100.56],
}


@pytest.mark.parametrize("seed", AGGREGATION)
def test_aggregation_has_the_published_answers(seed: int) -> None:
    assert tuple(Aggregation().task(seed).answers.values()) == AGGREGATION[seed]


@pytest.mark.parametrize("seed", CHAIN)
def test_chain_has_the_published_totals(seed: int) -> None:
    assert list(Chain().task(seed).answers.values()) == CHAIN[seed]


def _solve_aggregation(task: AggregationTask) -> FileWorld:
    """As an agent does: by what the tools say alone."""
    world = task.world()
    regions = []
    for name in world.list_dir("regions").text.splitlines():
        lines = world.read_file(f"regions/{name}").text.splitlines()
        regions.append({key: json.loads(value) for key, value in (line.split(" = ") for line in lines)})
    on = [r for r in regions if r["ACTIVE"]]
    off = [r for r in regions if not r["ACTIVE"]]
    answers = {
        "q1": len(on),
        "q2": round(sum(r["TAX_RATE"] for r in on), 2),
        "q3": sum(r["TIER"] == "gold" for r in regions),
        "q4": max((r["TAX_RATE"] for r in off), default=0),
    }
    world.write_file("answers.json", json.dumps(answers))
    return world


def _solve_chain(task: ChainTask) -> FileWorld:
    world = task.world()

    def facts(path: str) -> dict[str, str]:
        text = world.read_file(path).text
        return dict(line.split(" = ") for line in text.splitlines() if " = " in line)

    totals = {}
    for name in world.list_dir("orders").text.splitlines():
        order = facts(f"orders/{name}")
        gateway = facts(f"gateways/{order['GATEWAY']}.txt")
        region = facts(f"regions/{gateway['REGION']}.txt")
        discount = facts(f"policies/{region['DEFAULT_POLICY']}.txt")["DISCOUNT"]
        totals[name.removesuffix(".txt")] = int(order["SUBTOTAL"]) * (1 + float(region["TAX_RATE"])) - int(discount)
    world.write_file("answers.json", json.dumps(totals))
    return world


@pytest.mark.parametrize("seed", [0, 1, 42, 7])
@pytest.mark.parametrize("size", [1, 3, 16])
def test_what_the_files_say_leads_to_the_answers(seed: int, size: int) -> None:
    aggregation, chain = Aggregation().task(seed, size), Chain().task(seed, size)
    for task, world in ((aggregation, _solve_aggregation(aggregation)), (chain, _solve_chain(chain))):
        found = task.judge(world, Ended())
        assert (found.name, found.score, found.progress) == ("ok.task_done", 1.0, 1.0), found


def test_one_wrong_answer_is_a_value_mismatch() -> None:
    task = Aggregation().task(42)
    world = _solve_aggregation(task)
    wrong = {**json.loads(world.files["answers.json"]), "q2": 0.65}
    world.write_file("answers.json", json.dumps(wrong))
    found = task.judge(world, Ended())
    assert (found.name, found.score) == ("task.value_mismatch", 0.75)
    assert "q2 is 0.65, not 0.63" in found.said


@pytest.mark.parametrize("value", [0.64, 0.62, 0.63])
def test_the_tolerance_itself_is_close_enough(value: float) -> None:
    task = Aggregation().task(42)
    world = _solve_aggregation(task)
    world.write_file("answers.json", json.dumps({**json.loads(world.files["answers.json"]), "q2": value}))
    assert task.judge(world, Ended()).score == 1.0


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", '{"q1": true, "q2": "0.63", "q3": null, "q4": NaN}', "{}"])
def test_answers_of_another_form_score_nothing(text: str) -> None:
    task = Aggregation().task(42)
    world = task.world()
    world.write_file("answers.json", text)
    assert (task.judge(world, Ended()).name, task.judge(world, Ended()).score) == ("task.value_mismatch", 0.0)


def test_an_end_without_answers_is_told_apart_by_what_was_done_before() -> None:
    task = Chain().task(42)
    world = task.world()
    assert task.judge(world, Ended()).name == "task.premature_done"
    world.read_file("orders/order_0.txt")
    found = task.judge(world, Ended())
    assert found.name == "task.missing_step"
    assert 0 < found.progress < 0.1


def test_decoys_lead_nowhere() -> None:
    files = Chain().task(42).world().files
    used = "".join(text for name, text in files.items() if name.startswith("orders/"))
    decoys = [name for name in files if name.startswith("gateways/x")]
    assert len(decoys) == 2
    assert all(name.removeprefix("gateways/").removesuffix(".txt") not in used for name in decoys)
    assert all(len(files[name].split()) > 120 for name in decoys)


@pytest.mark.parametrize(
    ("calls", "name"),
    [
        ([(TOOL.name, {"path": PATH})], "ok.task_done"),
        ([(TOOL.name, {"path": "project/regions/"})], "ok.task_done"),
        ([(TOOL.name, {"path": "."})], "task.wrong_args"),
        ([], "task.missing_step"),
    ],
)
def test_single_step(calls: list[tuple[str, dict[str, str]]], name: str) -> None:
    task = SingleStep().task(3)
    assert task.judge(task.world(), Ended("", tuple(calls))).name == name
    assert task.world().call(TOOL.name, {"path": PATH}).text.count("region_") == 3


def test_submit_gives_both_verdicts() -> None:
    task = Submit().task(0)
    called = task.judge(task.world(), Ended("", (("submit_solution", {"code": "x"}),)))
    named = task.judge(task.world(), Ended('{"name": "submit_solution", "arguments": {"code": '))
    neither = task.judge(task.world(), Ended("def f(): ..."))
    assert (called.name, called.said) == ("ok.task_done", "json_valid yes, name_regex yes")
    assert (named.name, named.said) == ("task.missing_step", "json_valid no, name_regex yes")
    assert neither.said == "json_valid no, name_regex no"


def test_submitted_code_is_kept_and_not_run() -> None:
    world = SubmitWorld()
    world.call("submit_solution", {"code": "raise SystemExit('run!')"})
    assert world.is_done
    assert world.code == ["raise SystemExit('run!')"]
    with pytest.raises(KeyError):
        world.call("other", {})


@pytest.mark.parametrize("packed", [False, True])
def test_problems_from_a_file(tmp_path: Path, packed: bool) -> None:
    rows = "".join(
        json.dumps({"task_id": f"HumanEval/{n}", "prompt": f"def f{n}():", "entry_point": f"f{n}", "test": "x"}) + "\n"
        for n in range(9)
    ).encode()
    path = tmp_path / "problems"
    path.write_bytes(gzip.compress(rows) if packed else rows)
    problems = read_problems(path)
    assert [problem.entry_point for problem in problems] == [f"f{n}" for n in range(6)]
    assert Submit(problems).task(5).problem.id == "HumanEval/5"


@pytest.mark.parametrize("raw", [b"", b"\n\n", b"{}\n", b"[]", b"\xff\xfe", b"\x1f\x8bno gzip", b"{" * 9999])
def test_a_bad_file_of_problems_is_named(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(raw)
    with pytest.raises(ProblemsError, match=r"bad\.jsonl"):
        read_problems(path)
    with pytest.raises(ProblemsError, match="missing"):
        read_problems(tmp_path / "missing")


def test_own_problems_are_six_functions_that_compile() -> None:
    problems = own_problems()
    assert len({problem.entry_point for problem in problems}) == 6
    for problem in problems:
        compile(problem.prompt + "    ...\n", problem.id, "exec")
        assert f"def {problem.entry_point}(" in problem.prompt


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_one_seed_makes_one_task_and_every_episode_a_world_of_its_own(family: object) -> None:
    family = family_named(family.name)  # type: ignore[attr-defined]
    first, again, other = family.task(1), family.task(1), family.task(2)
    assert first.prompt == again.prompt
    assert first.world().digest() == again.world().digest()
    assert (other.seed, other.prompt) != (first.seed, first.prompt)
    assert first.world() is not first.world()
    assert all(tool.parameters["type"] == "object" for tool in first.tools)
    assert not first.judge(first.world(), Ended()).name.startswith("ok.")


@pytest.mark.parametrize("size", [0, -1, 2])
def test_a_size_that_cannot_be_is_refused(size: int) -> None:
    for family in FAMILIES.values():
        if size == 2 and family.name in ("aggregation", "chain"):
            continue
        with pytest.raises(ValueError, match=r"size|cannot be made"):
            family.task(1, size)


def test_an_unknown_family_names_the_known_ones() -> None:
    with pytest.raises(KeyError, match="aggregation"):
        family_named("agregation")
    with pytest.raises(ValueError, match="from 0"):
        Submit().task(6)
