"""Where the bugs of each serving stack are reported, and which issues a signature's source names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stacks.stack_names import stack_name


@dataclass(frozen=True, slots=True)
class Tracker:
    """An issue tracker on GitHub: `repository` as OWNER/NAME, `title` what people call the project, `source` where
    this is from."""

    repository: str
    title: str
    source: str

    @property
    def url(self) -> str:
        """Where its issues are listed."""
        return f"https://github.com/{self.repository}/issues"


TRACKERS: dict[str, Tracker] = {
    "ollama": Tracker("ollama/ollama", "Ollama", "the repository of its releases; [D] rows of the signature table"),
    "llamacpp": Tracker("ggml-org/llama.cpp", "llama.cpp", "the repository of llama-server; [D] rows of the table"),
    "vllm": Tracker("vllm-project/vllm", "vLLM", "package metadata of vllm 0.32.0 (Homepage)"),
    "sglang": Tracker("sgl-project/sglang", "SGLang", "package metadata of sglang 0.5.23 (Bug Tracker)"),
    "mlx_server": Tracker("ml-explore/mlx-lm", "mlx-lm", "package metadata of mlx-lm 0.32.2 (Issues)"),
    "mlx_inprocess": Tracker("ml-explore/mlx-lm", "mlx-lm", "package metadata of mlx-lm 0.32.2 (Issues)"),
    "llamacpp_python": Tracker(
        "abetlen/llama-cpp-python", "llama-cpp-python", "package metadata of llama-cpp-python 0.3.36 (Issues)"
    ),
    "lmstudio": Tracker("lmstudio-ai/lmstudio-bug-tracker", "LM Studio", "[D] rows of the signature table"),
}
"""By the stack's one name (`stacks.stack_names`); `openai` (any server of that API) has none."""


def tracker_of(stack: str | None) -> Tracker | None:
    """The tracker of a stack by any spelling of its name; None where there is none."""
    name = stack_name(stack)
    return TRACKERS.get(name) if name else None


@dataclass(frozen=True, slots=True)
class Issue:
    """One public issue: repository and number."""

    repository: str
    number: int

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://github.com/{self.repository}/issues/{self.number}"


_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*/[\w.-]+)#(\d+)|(?<![\w/])#(\d+)")


def issues_named(source: str) -> tuple[Issue, ...]:
    """The issues that a signature's source names: `ollama/ollama#11781, #11704` are two of one repository."""
    found: list[Issue] = []
    repository = ""
    for named in _NAMED.finditer(source):
        repository = named[1] or repository
        if repository:
            found.append(Issue(repository, int(named[2] or named[3])))
    return tuple(dict.fromkeys(found))
