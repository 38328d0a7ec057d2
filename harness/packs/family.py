"""A pack's tasks as tasks of the harness, so that a grid's machinery runs, keeps and resumes them. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from harness.packs.model import FORMAT, Pack, PackTask
from harness.packs.scoring import score
from harness.tasks.base import Call, Ended, Judgement, World
from harness.tools import ToolResult, ToolSpec
from results.manifest import Fact, known
from results.version import VERSION

PACKS = "pack/"
"""How cells name what stands in packs: `pack/NAME/TASK`."""
SCORING_VERSION = "1"
"""Changes with every change of what an answer is worth: cells of another version are not carried on."""

Thinking = Literal["default", "off", "no_think"]
"""How a model that thinks is asked: as it is; with its template's switch turned off; with `/no_think` in the prompt."""
SWITCH_OFF = {"chat_template_kwargs": {"enable_thinking": False}, "think": False}
"""The switches of llama.cpp, vLLM and SGLang (a variable of the template), and of Ollama."""
NO_THINK = "/no_think"
"""The words that Qwen3's templates and models read as: do not think (Qwen3 model card)."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How one model is asked: its route, whether it thinks, and fields put into each request."""

    path: str = "/v1/chat/completions"
    thinking: Thinking = "default"
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How it is named in cells, as a condition."""
        return "native" if self.thinking == "default" else f"native+{self.thinking.replace('_', '-')}"


@dataclass(slots=True)
class AnswerOnly:
    """The world of a task that asks for one answer: no call of it is executed."""

    is_done: bool = False

    def call(self, name: str, given: Mapping[str, Any]) -> ToolResult:
        """Raises KeyError: nothing can be called here."""
        raise KeyError(name)

    def digest(self) -> str:
        """It has no state."""
        return hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class PackItem:
    """One task of a pack, asked once; a seed and a repetition change nothing in it."""

    task: PackTask
    family: str
    seed: int
    asking: Asking
    single_turn: bool = True

    @property
    def kind(self) -> str:
        """The task's own name."""
        return self.task.id.replace(".", "_").replace("-", "_")

    @property
    def prompt(self) -> str:
        """The last message of the user."""
        return self.task.prompt

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What is offered."""
        functions = [tool["function"] for tool in self.task.tools]
        return tuple(ToolSpec(one["name"], one.get("description", ""), one["parameters"]) for one in functions)

    @property
    def walk(self) -> tuple[Call, ...]:
        """No known-answer agent walks it."""
        return ()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What is sent: with `/no_think` before the last message of the user where the model is asked so."""
        sent = [{"role": message.role, "content": message.content} for message in self.task.messages]
        if self.asking.thinking == "no_think":
            sent[-1]["content"] = f"{NO_THINK}\n{sent[-1]['content']}"
        return sent

    def world(self) -> World:
        """Nothing acts in it."""
        return AnswerOnly()

    def judge(self, world: World, ended: Ended) -> Judgement:
        """By the task's checks on the last text."""
        found = score(self.task, ended.text)
        share = found.share or 0.0
        return Judgement(found.outcome, share, share, ", ".join(one.name for one in found.checks if not one.passed))


@dataclass(frozen=True, slots=True)
class PackFamily:
    """One task of a pack as a family."""

    pack: Pack
    task_of_pack: PackTask
    asking: Asking
    turn_cap: int = 1

    @property
    def name(self) -> str:
        """`pack/NAME/TASK`."""
        return f"{PACKS}{self.pack.name}/{self.task_of_pack.id}"

    @property
    def version(self) -> str:
        """The pack's version, and SHA-256 (hex, 16 characters) over all that the task is."""
        plain = msgspec.structs.replace(self.task_of_pack, file="", line=0)
        return f"{self.pack.version} {hashlib.sha256(msgspec.json.encode(plain, order='sorted')).hexdigest()[:16]}"

    @property
    def facts(self) -> dict[str, Fact]:
        """What a cell is bound to besides server, sampling and limits: pack, format, software, and how it is asked."""
        said = "harness.packs"
        return {
            "pack": known(self.pack.name, said),
            "pack_version": known(self.pack.version, said),
            "pack_sha256": known(self.pack.digest, "content hash of the pack"),
            "pack_format": known(FORMAT, said),
            "scoring": known(SCORING_VERSION, said),
            "stacktap": known(VERSION, said),
            "system_prompt": known(bool(self.task_of_pack.system), "the pack"),
            "thinking": known(self.asking.thinking, "the registry"),
            "request_fields": known(sorted(self.asking.extra), "the registry"),
            "request_fields_sha256": known(_sha256(self.asking.extra), "the registry"),
        }

    def task(self, seed: int, size: int | None = None) -> PackItem:
        """The task. Raises ValueError for a size: a task of a pack has one."""
        if size is not None:
            raise ValueError(f"{self.name} has no sizes")
        return PackItem(self.task_of_pack, self.name, seed, self.asking)


def _sha256(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(dict(value), order="sorted")).hexdigest()
