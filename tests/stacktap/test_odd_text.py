"""Text that no encoding holds, from a server or in a canary: printed with escapes, never a traceback or broken JSON."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.servers import command_line, environment, stacktap
from tests.support.simulated import completion, http_server, json_answer

HALF = "\ud800 no call \udfff"


async def speaks_halves(request: web.Request) -> web.StreamResponse:
    if request.path == "/v1/models":
        return json_answer({"object": "list", "data": [{"id": f"m{HALF}", "object": "model"}]})
    if request.path != "/v1/chat/completions":
        return web.Response(status=404, text="404 page not found")
    return json_answer(completion(HALF))


@pytest.mark.parametrize("command", ["diagnose", "doctor", "compare"])
async def test_half_a_surrogate_pair_in_a_servers_words(tmp_path: Path, command: str) -> None:
    async with http_server(speaks_halves) as url:
        done = await asyncio.to_thread(stacktap, tmp_path, command, url, "--json")
        shown = await asyncio.to_thread(stacktap, tmp_path, command, url)
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["version"] == 1
    assert shown.returncode in (0, 1), shown.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_a_canary_that_writes_half_a_character_is_listed_as_json(tmp_path: Path, encoding: str) -> None:
    done = subprocess.run(
        command_line("canary", "list", "--json"),
        env=environment(tmp_path, PYTHONIOENCODING=encoding),
        capture_output=True,
        timeout=60,
        check=True,
    )
    texts = [
        script["text"]
        for script in json.loads(done.stdout.decode("latin-1" if encoding == "latin-1" else "utf-8"))["scripts"]
    ]
    assert any("\udcc2" in text for text in texts) or encoding == "ascii"
