"""SIMULATED: a small pack and models of it whose answers are scripted, on files that are real (tiny GGUF files)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from harness.packs.loading import load_pack
from harness.packs.model import Pack
from harness.workbench.files import pack_at
from harness.workbench.registry import Chain, Member
from harness.workbench.workflows import Ladder, Workbench
from stacks.engine import EngineIdentity, Message, Rendered, Tool
from stacks.source_template import SourceTemplate
from tests.support.byte_engine import ByteEngine
from tests.support.tiny_gguf import TEMPLATE, tiny_gguf

TIERS = ("Q2_K", "Q4_K_M", "F16")
CASES = 12
CHAIN = Chain(
    name="gguf",
    ecosystem="gguf",
    tiers=TIERS,
    baseline="F16",
    files=("tiny.{tier}.gguf",),
    made_by="llama-quantize",
    baseline_note="dequantised Q4_1",
)
MEMBER = Member(name="tiny", family="tiny", source="nobody/tiny", chains=(CHAIN,), envelope="none")
_SCHEMA = {
    "type": "object",
    "properties": {"size": {"enum": ["small", "large"]}},
    "required": ["size"],
    "additionalProperties": False,
}
_TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}
    for name in ("pay", "wait")
]


@cache
def structured_pack() -> Pack:
    """The shipped pack, read once for all tests."""
    return pack_at("structured")


def asked(at: int) -> str:
    return f"case {at:02}."


def right(at: int) -> str:
    if at % 4 == 3:
        return json.dumps({"name": "pay", "arguments": {"n": at}})
    return json.dumps({"size": "small" if at % 2 else "large"})


def pack_text(version: str = "1.0.0", cases: int = CASES) -> str:
    lines = ["format: 1", "pack: little", f"version: {version}", "tasks:"]
    for at in range(cases):
        labels = {"half": "dev" if at < cases // 2 else "test"}
        if at % 4 < 2:
            labels |= {"depth": str(at % 4 * 2), "form": "turns", "family": str(at // 4)}
        task: dict[str, Any] = {"id": f"t{at:02}", "category": "call" if at % 4 == 3 else "size", "prompt": asked(at)}
        if at % 4 == 3:
            task |= {"eval": "arguments", "tool": "pay", "expected": {"n": at}, "tools": _TOOLS}
        else:
            task |= {"eval": "schema", "schema": _SCHEMA, "expected": json.loads(right(at))}
        task |= {"labels": labels, "samples": {"pass": [right(at)]}}
        lines.append(f"  - {json.dumps(task)}")
    return "\n".join(lines) + "\n"


def little_pack(folder: Path, version: str = "1.0.0") -> Pack:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pack.yaml").write_text(pack_text(version))
    return load_pack(folder)


class ScriptedEngine(ByteEngine):
    """Renders by the template that its file carries."""

    def __init__(self, scripts: Mapping[str, str], runtime: str = "1") -> None:
        super().__init__(dict(scripts))
        self._runtime = runtime

    @property
    def identity(self) -> EngineIdentity:
        return EngineIdentity("simulated", self._runtime, "/nowhere", "sha256:0", "0", None, "none")

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] | None = None, **template: Any) -> Rendered:
        text = SourceTemplate(TEMPLATE).render(messages, tools)
        return Rendered(text, self.encode(text))


def scripts(tier: str, cases: int = CASES) -> dict[str, str]:
    """F16 and Q4_K_M are always right; Q2_K writes a fence around even cases, and prose for odd ones."""
    plain = {asked(at): right(at) for at in range(cases)}
    if tier != "Q2_K":
        return plain
    return {
        text: f"```json\n{answer}\n```" if at % 2 == 0 else "I would say: not today."
        for at, (text, answer) in enumerate(plain.items())
    }


class Weights:
    """A folder of tiny tiers, and the engines that were loaded from it."""

    def __init__(self, folder: Path, tiers: Sequence[str] = TIERS) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.loaded: list[str] = []
        self.runtime: dict[str, str] = {}
        for tier in tiers:
            tiny_gguf(folder / f"tiny.{tier}.gguf")

    def load(self, scheme: str, place: Path, context: int | None) -> ScriptedEngine:
        tier = place.name.split(".")[1]
        self.loaded.append(tier)
        return ScriptedEngine(scripts(tier), self.runtime.get(tier, "1"))

    def bench(self, pack: Pack, out: Path, member: Member = MEMBER) -> Workbench:
        return Workbench(member, pack, out, max_tokens=64, load=self.load)

    def ladder(self, tiers: Sequence[str] = TIERS) -> Ladder:
        return Ladder(CHAIN, tuple(tiers), self.folder)
