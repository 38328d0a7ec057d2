"""Records the run of the published example on real servers: `python -m tests.support.publish_example FOLDER`.

Five servers, one after the other behind one recording relay: llama-server, mlx_lm.server and llama-cpp-python with a
canary (its text is fixed, so that a call that is lost was lost by the server) and llama-server with SmolLM2-135M (its
mistakes are its own). Needs `make stack-mlx stack-llamacpp stack-llamacpp-python models`. `--reports FOLDER` writes the
three reports from a run that is there, and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec

from checklists.facts import gather
from checklists.report.writing import rendered, write
from probe.canary import default_spec, ensure_built
from probe.canary.members import hermes_template
from probe.describing import describe_upstreams
from probe.known_answer import WEATHER_TOOL, setups_of
from proxy.session import RecordingSession, SessionOptions
from results.locks import LOCK_NAME
from results.manifest import Fact, Manifest, known, read_manifest, write_manifest
from stacks.launching.launch import LaunchOptions, running_server_async
from stacks.locations import canaries_folder
from tests.support.real_models import MODELS

LONG = "Mind the following note. " + "The weather was fine on that day, and on the next one, too. " * 40


@dataclass(frozen=True, slots=True)
class Question:
    """One request: the user's words (a trigger chooses the canary's text), streamed or not, and further fields."""

    words: str
    stream: bool = False
    fields: tuple[tuple[str, Any], ...] = ()

    def body(self) -> dict[str, Any]:
        """The chat completion."""
        body: dict[str, Any] = {
            "model": "canary",
            "messages": [{"role": "user", "content": self.words}],
            "tools": [WEATHER_TOOL],
            "max_tokens": 64,
            "temperature": 0,
            "stream": self.stream,
            **({"stream_options": {"include_usage": True}} if self.stream else {}),
        }
        return body | dict(self.fields)


@dataclass(frozen=True, slots=True)
class Server:
    """One way to start a server, and what it is asked."""

    name: str
    stack: str
    questions: tuple[Question, ...]
    flags: tuple[str, ...] = ()
    context: int | None = None
    real: bool = False


ASK = "What is the weather in Paris?"
REAL = (
    "What is the weather in Paris? Use the tool.",
    "Call get_weather for Berlin.",
    "Is it raining in Oslo right now? Look it up.",
    "Which of Rome and Madrid is warmer? Look both up.",
)


def servers(template: Path) -> tuple[Server, ...]:
    """The servers in their order. `template` is a file with a chat template that renders tools."""
    no_parser = next(one for one in setups_of("mlx_server", default_spec().template) if one.name == "no-parser")
    mlx = (("model", "default_model"),)
    return (
        Server(
            "llama-server",
            "llamacpp",
            (
                Question(ASK),
                Question(ASK, stream=True),
                Question(f"{ASK} [[answer]]"),
                Question(f"{ASK} [[empty]]"),
                Question(f"{ASK} [[empty]]", stream=True),
                Question(ASK, fields=(("max_tokens", 3),)),
                Question(f"{ASK} [[loop]]", fields=(("max_tokens", 24),)),
            ),
            ("--alias", "canary"),
        ),
        Server(
            "llama-server-no-jinja",
            "llamacpp",
            tuple(Question(ASK, stream=number % 2 == 1) for number in range(4)),
            ("--alias", "canary", "--no-jinja"),
        ),
        Server(
            "mlx-no-parser",
            "mlx",
            (
                Question(ASK, fields=mlx),
                Question(ASK, stream=True, fields=mlx),
                Question(f"{ASK} [[two]]", fields=mlx),
            ),
            no_parser.flags,
        ),
        Server(
            "mlx",
            "mlx",
            (
                Question(ASK, fields=mlx),
                Question(ASK, stream=True, fields=mlx),
                Question(f"{ASK} [[unknown]]", fields=mlx),
                Question(f"{ASK} [[badtype]]", fields=mlx),
                Question(f"{ASK} [[comma]]", fields=mlx),
                Question(f"{ASK} [[answer]]", stream=True, fields=mlx),
            ),
        ),
        Server(
            "llama-cpp-python",
            "llamacpp-python",
            (Question(ASK), Question(ASK, stream=True), Question(f"{LONG} {ASK}")),
            context=512,
        ),
        Server(
            "smollm2",
            "llamacpp",
            tuple(Question(words, fields=(("model", "SmolLM2-135M-Instruct"), ("max_tokens", 96))) for words in REAL),
            ("-t", "1", "--alias", "SmolLM2-135M-Instruct", "--chat-template-file", str(template)),
            context=4096,
            real=True,
        ),
    )


async def record(folder: Path, models: Path) -> None:
    """Record the run into `folder`. `models` holds the canary's folder and SmolLM2's file under neutral names."""
    (models / "tools.jinja").write_text(hermes_template(), encoding="utf-8")
    started = servers(models / "tools.jinja")
    ports = list(_free_ports(len(started)))
    session = RecordingSession(
        SessionOptions(
            upstreams=tuple(f"{one.name}=http://127.0.0.1:{port}" for one, port in zip(started, ports, strict=True)),
            out=folder,
            command=("stacktap", "proxy", *(f"--upstream {one.name}=..." for one in started)),
            facts={"agent": known("tests.support.publish_example", "this command")},
        )
    )
    async with session:
        by_name = {upstream.name: upstream for upstream in session.upstreams}
        for server, port in zip(started, ports, strict=True):
            model = models / (MODELS["smollm2"].file if server.real else "canary")
            if not server.real and server.stack.startswith("llamacpp"):
                model = models / "canary" / "model.gguf"
            options = LaunchOptions(port=port, context_length=server.context, flags=server.flags)
            async with running_server_async(server.stack, model, options):
                await asyncio.to_thread(describe_upstreams, session, [by_name[server.name]])
                base = session.base_url(server.name)
                if server.stack == "llamacpp":
                    await _send("GET", f"{base}/v1/models", None)
                for question in server.questions:
                    await _send("POST", f"{base}/t/task=weather/v1/chat/completions", question.body())


async def _send(method: str, url: str, body: dict[str, Any] | None) -> None:
    """One request over a connection of its own. What goes wrong with it is on the record."""
    async with httpx.AsyncClient(timeout=300, trust_env=False) as client:
        with contextlib.suppress(httpx.HTTPError):
            answer = await client.request(method, url, json=body)
            print(url, answer.status_code, file=sys.stderr)


def _free_ports(count: int) -> Iterator[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    yield from [one.getsockname()[1] for one in held]
    for one in held:
        one.close()


@contextmanager
def neutral_models() -> Iterator[Path]:
    """The models under names that say nothing about the machine: servers repeat the path that they are given."""
    canary = ensure_built(default_spec(), canaries_folder() / "hermes")
    with tempfile.TemporaryDirectory(prefix="models-", dir=os.environ.get("EXAMPLE_MODELS", "/opt")) as made:
        folder = Path(made).rename(Path(made).parent / "models")
        try:
            shutil.copytree(canary.folder, folder / "canary")
            shutil.copy(MODELS["smollm2"].path, folder / MODELS["smollm2"].file)
            yield folder
        finally:
            folder.rename(made)


def masked(manifest: Manifest) -> Manifest:
    """The manifest without folders of this machine and without the name of its kernel."""

    def plain(value: Any) -> Any:
        if isinstance(value, str):
            return Path(value).name if value.startswith("/") and "/opt/models" not in value else value
        return [plain(each) for each in value] if isinstance(value, list) else value

    def facts(found: dict[str, Fact]) -> dict[str, Fact]:
        return {name: msgspec.structs.replace(fact, value=plain(fact.value)) for name, fact in found.items()}

    host = {**facts(manifest.host), "system": known("Linux", "platform")}
    upstreams = tuple(msgspec.structs.replace(one, facts=facts(one.facts)) for one in manifest.upstreams)
    return msgspec.structs.replace(manifest, host=host, upstreams=upstreams)


def reports(folder: Path) -> None:
    """Write the three reports of a run."""
    write(rendered(gather([folder])), folder)
    for path in folder.iterdir():
        path.chmod(0o644)


def main(arguments: list[str]) -> None:
    """Record, or with `--reports` only write the reports."""
    folder = Path(arguments[-1])
    if arguments[0] != "--reports":
        with neutral_models() as models:
            asyncio.run(record(folder, models))
        write_manifest(folder, masked(read_manifest(folder)))
        for name in (LOCK_NAME, "status.json"):
            (folder / name).unlink(missing_ok=True)
    reports(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
