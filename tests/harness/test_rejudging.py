"""The outcome of an episode without its serving fault: what is known of it, and what is left open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.canary_agents import BEHAVIOURS, known_texts
from harness.conditions import Condition
from harness.progress import Progress, named
from harness.reading import Offer
from harness.rejudging import Fault, rejudged, written
from harness.tasks import FAMILIES, Task
from harness.tasks.single_step import PATH, SingleStep
from harness.telling import facts, text, told
from probe.canary.call_formats import write_call
from results.episode_journal import EpisodeReader
from results.episodes import EpisodeRecord
from tests.harness.test_episode import DONE, GATE, LOOK, READ, RIGHT, TASK, Step, episode, refused, said
from tests.harness.test_grid_run import CONDITIONS, carry, grid_of
from tests.support.known_server import KnownServer, known_server

WROTE = ("write_file", {"path": "answers.json", "content": RIGHT})
STEP = SingleStep().task(1)
CALL = (STEP.tools[0].name, {"path": PATH})


def hermes(*calls: tuple[str, Any]) -> str:
    return "\n".join(write_call("hermes", *call) for call in calls)


async def without(tmp_path: Path, steps: list[Step], task: Task = TASK) -> EpisodeRecord:
    return (await episode(tmp_path, steps, task=task))[0]


async def test_a_call_that_was_left_in_the_text_is_judged_as_the_call_that_it_is(tmp_path: Path) -> None:
    found = await without(tmp_path, [said(write_call("pythonic", *CALL))], STEP)
    assert found.outcome.name == "not_run.parser.left_as_text"
    assert found.rejudged is not None
    assert (found.rejudged.name, found.rejudged.grade) == ("ok.task_done", "observed")
    assert "parser.left_as_text in turn 1" in found.rejudged.detail


async def test_a_lost_call_with_the_wrong_argument_is_the_model_s_loss_all_the_same(tmp_path: Path) -> None:
    found = await without(tmp_path, [said(write_call("pythonic", CALL[0], {"path": "elsewhere"}))], STEP)
    assert found.outcome.name == "not_run.parser.left_as_text"
    assert found.rejudged is not None
    assert (found.rejudged.name, found.rejudged.at_fault) == ("task.wrong_args", "model")


async def test_raw_text_in_an_error_is_judged(tmp_path: Path) -> None:
    quoted = f"Failed to parse input at pos 0: {hermes(CALL)}"
    found = await without(tmp_path, [refused(500, quoted)], STEP)
    assert found.turns[0].outcome.name == "parser.server_error"
    assert found.rejudged is not None
    assert found.rejudged.name == "ok.task_done"


async def test_the_last_calls_of_an_episode_are_completed_in_the_world_as_it_was_then(tmp_path: Path) -> None:
    """Two Hermes blocks in one text are beyond the client's parser."""
    found = await without(tmp_path, [READ, said(hermes(WROTE, ("done", {})))])
    assert (found.outcome.name, found.score) == ("not_run.parser.left_as_text", 0)
    assert found.rejudged is not None
    assert found.rejudged.name == "ok.task_done"
    wrong = ("write_file", {"path": "answers.json", "content": "{}"})
    found = await without(tmp_path / "wrong", [READ, said(hermes(wrong, ("done", {})))])
    assert found.rejudged is not None
    assert found.rejudged.name == "task.value_mismatch"


@pytest.mark.parametrize(
    "steps",
    [
        [said(hermes(("list_dir", {"path": "."}), ("list_dir", {"path": "regions"})))],
        [GATE],
        [LOOK, refused(500, "internal error")],
        [LOOK, said("")],
    ],
    ids=["the model would have gone on", "refused before it ran", "nothing quoted", "empty"],
)
async def test_what_nobody_knows_stays_open(tmp_path: Path, steps: list[Step]) -> None:
    found = await without(tmp_path, steps)
    assert found.outcome.layer == "not_run"
    assert found.rejudged is None


async def test_an_episode_without_a_fault_is_not_judged_twice(tmp_path: Path) -> None:
    recovered = said(hermes(("read_file", {"path": "regions/region_0.txt"})))
    found = await without(tmp_path, [recovered, DONE])
    assert found.turns[0].recovered
    assert (found.outcome.name, found.rejudged) == ("task.missing_step", None)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_a_known_answer_agent_is_followed_to_its_end(family: str, condition: str, behaviour: str) -> None:
    """Whatever is lost, only those succeed that do the task; under a schema, prose and silence are not followed."""
    task = FAMILIES[family].task(1, 1)
    offer, served = Offer(task.tools), Condition(condition)
    known = known_texts(behaviour, served, task)
    script = lambda executed: written(served, offer, known(executed))  # noqa: E731
    lost = named("engine.crash", "")
    found = rejudged(task, offer, Fault(0, (), (), script(0), lost), 6, script)
    if behaviour in ("does", "pairs") or (task.single_turn and behaviour != "never"):
        assert found is not None
        assert (found.name, found.grade) == ("ok.task_done", "known-answer")
    elif condition == "constrained" and behaviour in ("never", "once"):
        assert found is None
    else:
        assert found is not None
        assert found.at_fault == "model"
        assert found.name in ("model.loop", "task.missing_step", "task.premature_done")


def test_after_a_later_fault_the_world_is_the_one_of_that_moment() -> None:
    task = FAMILIES["aggregation"].task(42, 1)
    offer = Offer(task.tools)
    going = Progress("", offer, task.world())
    done = Fault(
        2, task.walk[:2], (), written(Condition("native"), offer, hermes(("done", {}))), named("engine.oom", "")
    )
    found = rejudged(task, offer, done, 3, None)
    assert found is not None
    assert found.name == "ok.task_done"
    assert not going.world.is_done


class Losing(KnownServer):
    """Takes the call out of every answer of the chat and says nothing else."""

    def __init__(self, kept: int) -> None:
        super().__init__()
        whole = self.answer

        def answer(body: dict[str, Any]) -> dict[str, Any]:
            value = whole(body)
            if self.chats > kept:
                value["choices"][0]["message"] = {"role": "assistant", "content": ""}
                value["choices"][0]["finish_reason"] = "stop"
            return value

        self.answer = answer


def test_the_table_prints_whose_the_lost_success_is(tmp_path: Path) -> None:
    """Of 4 episodes the first goes through; the others lose a call, and the agent cannot be at fault."""
    with known_server(Losing(3)) as url:
        found = carry(
            grid_of(
                url,
                ("does",),
                4,
                conditions=["native"],
                tasks=[{"family": "chain", "size": 1}],
                target={"concurrency": 1},
            ),
            tmp_path,
        )
    assert found.complete
    episodes = list(EpisodeReader(tmp_path))
    assert [one.succeeded for one in episodes] == [True, False, False, False]
    assert [one.rejudged is not None and one.rejudged.name for one in episodes[1:]] == ["ok.task_done"] * 3
    shown = told(tmp_path)
    assert (
        "lost success         3 of 4 episodes were lost; owed to the stack: 100.0 % [100.0, 100.0] bootstrap "
        "degenerate, to the model: 0.0 % (without serving faults 4/4 succeed, "
        "3 of these judged again by the known text)"
    ) in text(shown)
    (cell,) = json.loads(json.dumps(facts(shown)))["cells"]
    owed = cell["lost_success"]
    assert (owed["episodes"], owed["lost"], owed["stack"], owed["model"], owed["interval"]) == (
        4,
        3,
        1.0,
        0.0,
        [1.0, 1.0],
    )
