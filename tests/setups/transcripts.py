"""What a set-up was, and what `stacktap diagnose` said before and after its remedy: kept as data, the same everywhere.

One JSON file a set-up; the page of the documents is rendered from these files alone (`tests.setups.page`).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.setups.build import Said
from tests.setups.check import mended
from tests.setups.gateways import GATEWAYS
from tests.setups.model import Client, Setup, request
from tests.setups.models import ABOUT
from tests.support.servers import ROOT

FOLDER = ROOT / "results" / "published" / "diagnoses"
VERSION = 1

SERVERS = {
    "llamacpp": "llama-server",
    "mlx": "mlx_lm.server",
    "llamacpp-python": "llama-cpp-python's server",
    "vllm": "vLLM",
    "sglang": "SGLang",
}

_EVERYWHERE_THE_SAME = (
    (re.compile(r"\S*\b\d{8}-\d{6}-[0-9a-f]{4}\b"), "RUN"),
    (re.compile(r"\b(chatcmpl|cmpl|call|req)[-_][A-Za-z0-9-]{8,}"), r"\1-ID"),
    (re.compile(r'("created(?:_at)?"\s*:\s*)(?:\d+|"[^"]*")'), r"\1TIME"),
    (re.compile(r'("(?:id|tool_call_id)"\s*:\s*")[A-Za-z0-9_-]{16,}'), r"\1ID"),
    (re.compile(r'("model"\s*:\s*")(?:HOME|/)[^"\n]*'), r"\1MODEL..."),
    (re.compile(r"\b\d+(?:\.\d+)? ms\b"), "TIME ms"),
    (re.compile(r"\b\d+\.\d+ s\b"), "TIME s"),
)


def plain_words(text: str, places: Iterable[tuple[str, str]]) -> str:
    """The text with what differs from machine to machine and run to run replaced by a word: MODEL.gguf, PORT, RUN."""
    for place, word in places:
        text = re.sub(rf"(?<!\w){re.escape(place)}(?!\w)", word, text)
    for pattern, word in _EVERYWHERE_THE_SAME:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def construction(setup: Setup) -> dict[str, str]:
    """How the set-up is built, in words: server, model, gateway, client; parts it does not have are left out."""
    if setup.no_server:
        return {"server": "none"}
    stack, _, version = setup.stack.partition(" ")
    if stack == "ollama":
        return {
            "server": f"Ollama {version}, replayed from true captures",
            "model": f"`{setup.model}` of the captures",
        } | _client(setup.client)
    flags = " ".join(shlex.quote(_short(word)) for word in setup.flags)
    parts = {"server": SERVERS.get(stack, stack) + (f" `{flags}`" if flags else "")}
    parts["model"] = ABOUT.get(setup.model, setup.model)
    if setup.gateway is not None:
        said = GATEWAYS[setup.gateway].__doc__ or setup.gateway
        parts["gateway"] = " ".join(said.split())
    return parts | _client(setup.client)


def _short(word: str, most: int = 70) -> str:
    """On one line, with its middle left out where it is long; of a file only its name."""
    word = Path(word).name if word.startswith("/") else " ".join(word.split())
    return word if len(word) <= most else f"{word[: most // 2]} ... {word[-most // 2 :]}"


def _client(client: Client | None) -> dict[str, str]:
    """What the client sends; the usual messages and the usual tool are only named."""
    if client is None:
        return {}
    if not isinstance(client.body, Mapping):
        return {"client": f"POST {client.path}, the body `{_short(client.body.decode())}`"}
    usual = request()
    fields = [
        f"the usual {name}" if usual.get(name) == value else f"{name} `{_short(json.dumps(value), 300)}`"
        for name, value in client.body.items()
    ]
    return {"client": f"POST {client.path} with {', '.join(fields)}"}


def transcript(setup: Setup, before: Said, after: Said) -> dict[str, Any]:
    """The facts of one set-up as a JSON object. `after` is the diagnosis with the remedy applied."""
    outcome: dict[str, Any] = before.facts["outcome"]
    broken, whole = construction(setup), construction(mended(setup))
    return {
        "version": VERSION,
        "name": setup.name,
        "title": setup.title,
        "server": "none" if setup.no_server else broken["server"].partition(" ")[0],
        "broken": broken,
        "mended": {part: words for part, words in whole.items() if broken.get(part) != words},
        "removed": [part for part in broken if part not in whole],
        "verdict": f"{outcome['layer']}.{outcome['code']}",
        "at_fault": outcome["at_fault"],
        "model_ran": outcome["model_ran"],
        "grade": outcome["grade"],
        "remedy": plain_words(str(before.facts["remedy"]), before.places),
        "healed": bool(after.facts.get("healthy")),
        "command_before": plain_words(before.command, before.places),
        "before": plain_words(before.text, before.places),
        "command_after": plain_words(after.command, after.places),
        "after": plain_words(after.text, after.places),
    }


def write(facts: Mapping[str, Any], folder: Path = FOLDER) -> Path:
    """Lay one set-up's facts down; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{facts['name']}.json"
    path.write_text(json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path


def read_all(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Every set-up on record, in the order of the page: by server, then by name."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return sorted(found, key=lambda facts: (str(facts["server"]), str(facts["name"])))
