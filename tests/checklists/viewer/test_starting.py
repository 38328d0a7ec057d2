"""Starting commands: the arguments that fields make, the text that must come back, output, stopping, --read-only."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from checklists.viewer.forms import FORMS, FormError, arguments
from tests.support.viewing import viewing

CHILD = (
    "import sys, time; print('given', sys.argv[1:], flush=True); "
    "time.sleep(60 if 'proxy' in sys.argv else 0); sys.exit(7)"
)
PROGRAM = (sys.executable, "-c", CHILD)


@pytest.mark.parametrize(
    ("name", "given", "want"),
    [
        ("wrap", {"upstream": "http://a:1", "agent": "aider --model 'a b' ; rm -rf /"},
         ["wrap", "--upstream=http://a:1", "--", "aider", "--model", "a b", ";", "rm", "-rf", "/"]),
        ("proxy", {"upstream": "a=http://a:1  b=http://b:2", "port": "8080"},
         ["proxy", "--upstream=a=http://a:1", "--upstream=b=http://b:2", "--port=8080"]),
        ("diagnose", {"url": "http://a:1", "model": "--out=/etc", "disruptive": True},
         ["diagnose", "--model=--out=/etc", "--disruptive", "--", "http://a:1"]),
        ("pair", {"agent": "opencode", "stack": "vllm:--max-model-len 4096"},
         ["pair", "--yes", "--stack=vllm:--max-model-len 4096", "--", "opencode"]),
    ],
)  # fmt: skip
def test_arguments(name: str, given: dict[str, Any], want: list[str]) -> None:
    assert arguments(name, given) == want


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("rm", {}),
        ("wrap", {"agent": "x"}),
        ("wrap", {"upstream": "http://a", "agent": "--out x"}),
        ("wrap", {"upstream": "http://a", "agent": "'unclosed"}),
        ("wrap", {"upstream": "--out=/etc/x", "agent": "x"}),
        ("wrap", {"upstream": "http://a", "agent": "x", "other": "y"}),
        ("wrap", {"upstream": "http://a", "agent": "x\ny"}),
        ("wrap", {"upstream": "http://a", "agent": ["x"]}),
        ("diagnose", {"url": "file:///etc/passwd"}),
        ("proxy", {"upstream": "http://a", "port": "99999"}),
        ("pair", {"agent": "x", "stack": "--help"}),
    ],
)
def test_fields_that_cannot_be_used(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(FormError):
        arguments(name, given)


def test_every_form_makes_a_command_that_exists() -> None:
    from stacktap.cli import COMMANDS

    assert set(FORMS) <= set(COMMANDS)


async def test_shown_then_started_then_read(tmp_path: Path) -> None:
    values = {"url": "http://127.0.0.1:9", "model": "a b"}
    async with viewing(tmp_path, program=PROGRAM) as viewer:
        text = (await viewer.post("/api/commands/preview", {"kind": "diagnose", "values": values}))["command"]
        assert text == "stacktap diagnose '--model=a b' -- http://127.0.0.1:9"
        asked = {"kind": "diagnose", "values": values}
        for wrong in ("", text + " ", "rm -rf /"):
            body = await viewer.post("/api/commands", {**asked, "confirm": wrong}, 409)
            assert body["error"]["code"] == "not_confirmed"
        child = await viewer.post("/api/commands", {**asked, "confirm": text}, 201)
        said = {"exit_code": None, "text": ""}
        heard, at = "", 0
        while said["exit_code"] is None:
            said = await viewer.get(f"/api/commands/{child['id']}", **{"from": at})
            heard, at = heard + said["text"], said["next"]
        assert heard.strip() == "given ['diagnose', '--model=a b', '--', 'http://127.0.0.1:9']"
        assert said["exit_code"] == 7
        assert (await viewer.get("/api/commands"))["commands"][0]["exit_code"] == 7
        await viewer.get("/api/commands/99", 404)


async def test_stopping_one_and_ending_all_with_the_viewer(tmp_path: Path) -> None:
    asked = {"kind": "proxy", "values": {"upstream": "http://a:1"}, "confirm": "stacktap proxy --upstream=http://a:1"}
    async with viewing(tmp_path, program=PROGRAM) as viewer:
        first, second = [await viewer.post("/api/commands", asked, 201) for _ in range(2)]
        assert (await viewer.get(f"/api/commands/{first['id']}"))["exit_code"] is None
        stopped = await viewer.post(f"/api/commands/{first['id']}/stop", {})
        assert stopped["exit_code"] is not None
        assert (await viewer.get(f"/api/commands/{second['id']}"))["exit_code"] is None
        for _ in range(3):
            await viewer.post("/api/commands", asked, 201)
        assert (await viewer.post("/api/commands", asked, 409))["error"]["code"] == "too_many"
        await viewer.post("/api/commands/99/stop", {}, 404)
    left = await asyncio.create_subprocess_exec("ps", "-eo", "args", stdout=asyncio.subprocess.PIPE)
    assert b"--upstream=http://a:1" not in (await left.communicate())[0]


async def test_a_report_is_asked_for_by_the_name_of_a_run(tmp_path: Path) -> None:
    async with viewing(tmp_path) as viewer:
        for name in ("nothing", "../..", "--help"):
            body = await viewer.post("/api/commands/preview", {"kind": "report", "values": {"run": name}}, 400)
            assert "there is no run" in body["error"]["message"]


async def test_read_only_starts_nothing(tmp_path: Path) -> None:
    async with viewing(tmp_path, program=PROGRAM, read_only=True) as viewer:
        asked = {
            "kind": "proxy",
            "values": {"upstream": "http://a:1"},
            "confirm": "stacktap proxy --upstream=http://a:1",
        }
        for path in ("/api/commands/preview", "/api/commands"):
            assert (await viewer.post(path, asked, 403))["error"]["code"] == "read_only"
        assert (await viewer.get("/api/commands")) == {"forms": [], "commands": []}


async def test_malformed_requests(tmp_path: Path) -> None:
    async with viewing(tmp_path) as viewer:
        for value in ([], {"kind": 1}, {"kind": "wrap"}, {"kind": "wrap", "values": []}, "text"):
            await viewer.post("/api/commands", value, 400)
