"""One item of a state-judged suite: what the user says turn by turn, what is offered when, and the right calls.

Facts of the form (turns with their own true calls, tools held out until a turn, nothing expected in a turn): BFCL v4
multi-turn (Apache-2.0) and Dense Bench part 4, which draws on it. Both of our sources fill the same classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from harness.tools import ToolResult, ToolSpec

STEP_CAP = 20
"""Assistant steps in one user turn before it is ended from outside; BFCL's own number."""

Kind = Literal["base", "miss_func", "miss_param"]
"""`miss_func`: a tool that is needed is withheld until a later turn; `miss_param`: the user leaves a needed value out
at first. In both the turn before expects no call."""


class StateWorld(Protocol):
    """A world whose state can be compared with another one's."""

    is_done: bool

    def call(self, name: str, given: Mapping[str, Any]) -> ToolResult:
        """Call a tool by its name; a failure is a result, never an exception. Raises KeyError for an unknown name."""
        ...

    def differences(self, other: StateWorld) -> list[str]:
        """What differs from another world of the same kind, one line each; empty where both are in the same state."""
        ...

    def digest(self) -> str:
        """The state as a SHA-256 (hex)."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call: the tool's name, and its arguments by name."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """For people: `cd(folder='x')`."""
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


Step = tuple[ToolCall, ...]
"""The calls of one assistant step that were executed, or would have been, had they not been withheld."""
Trace = tuple[tuple[Step, ...], ...]
"""An episode as the oracle reads it: user turns, their steps, the calls of each."""


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What the user says, the true calls (none: no call is right here), and tools that become available with it."""

    said: str
    expected: tuple[ToolCall, ...] = ()
    adds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One task. `source` is where it comes from, with its version; `tools` are all that its world has; `fresh` makes a
    world in the initial state; `navigates` are tools that only change the place from which others act, `reads` those
    that only look; `absent` tools are offered in no turn; `refuses_misfits`: a call whose arguments do not fit the
    tool's schema is refused before the world sees it.
    """

    id: str
    kind: Kind
    source: str
    tools: tuple[ToolSpec, ...]
    turns: tuple[UserTurn, ...]
    fresh: Callable[[], StateWorld]
    navigates: frozenset[str] = frozenset({"cd"})
    reads: frozenset[str] = frozenset()
    capability: str = ""
    absent: frozenset[str] = frozenset()
    refuses_misfits: bool = True

    def withheld(self, turn: int) -> frozenset[str]:
        """Names of tools that are not there in a turn (from 0): not yet, or never (`absent`)."""
        return self.absent.union(name for later in self.turns[turn + 1 :] for name in later.adds)

    def offered(self, turn: int) -> tuple[ToolSpec, ...]:
        """The tools of a turn, in the order of `tools`."""
        away = self.withheld(turn)
        return tuple(tool for tool in self.tools if tool.name not in away)

    @property
    def truth(self) -> Trace:
        """The true calls as an episode: one step for each turn that expects some."""
        return tuple((turn.expected,) if turn.expected else () for turn in self.turns)
