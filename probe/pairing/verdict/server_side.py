"""What is known of the server of a pairing: the stack, how it was started, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

from stacks.serving.base import ServingStack
from stacks.serving.launch_advice import started_with
from stacks.serving.registry import serving_stack


@dataclass(frozen=True, slots=True)
class ServerSide:
    """Facts of the server, "" and None where not known.

    ``context`` is the context in force, in tokens. ``parser`` is the tool-call parser in force as the server tells it,
    ``mode`` the stack's own word for how it serves this model (Ollama: native, go_if, go_range ...). ``direct`` says
    that nothing stands between the recording relay and the server: stacktap started it, or recorded on both sides of
    what stands between. ``exit_code`` is that of a server that ended during the walk, ``died`` that it ended,
    ``log_tail`` the last lines of its log.
    """

    stack: str = ""
    version: str = ""
    launch_flags: tuple[str, ...] | None = None
    context: int | None = None
    template: str | None = None
    parser: str = ""
    mode: str = ""
    model: str = ""
    direct: bool = False
    exit_code: int | None = None
    died: bool = False
    log_tail: str = ""

    @property
    def serving(self) -> ServingStack:
        """The stack's own knowledge (a generic server's where the stack is not known)."""
        try:
            return serving_stack(self.stack or "openai")
        except KeyError:
            return serving_stack("openai")

    @property
    def title(self) -> str:
        """The stack in people's words: ``llama-server``, ``vLLM``, or ``the server``."""
        return self.serving.title if self.stack else "the server"

    @property
    def ended(self) -> bool:
        """Whether the server's process ended during the walk."""
        return self.died or self.exit_code is not None

    def started_with(self, *flags: str) -> str:
        """The first of these flags that the server was started with, "" where none was or nothing is known."""
        return started_with(self.launch_flags or (), *flags)
