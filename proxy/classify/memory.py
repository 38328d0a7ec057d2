"""What a run remembers of its earlier exchanges, in memory that does not grow with the run.

The classifier asks it for what one exchange cannot show: a server that is silent after an earlier fault, a refusal that
depends on what was loaded before, an answer to the same question that came out otherwise.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import msgspec

from results.outcomes import Evidence

MAX_KEPT = 512
"""Models and questions kept; the oldest are forgotten first."""
MAX_TOLD = 32
"""Chat templates kept; they are long."""

_FAULTS = frozenset(
    {
        "parser.server_error",
        "engine.grammar_deadlock",
        "engine.crash",
        "engine.error_in_stream",
        "engine.oom",
        "truncation.cut_inside_call",
    }
)
_ANSWERS = ("ok.", "model.", "truncation.output", "parser.left", "parser.in_", "protocol.choice")
"""Outcomes that show a living engine."""


class Earlier(msgspec.Struct, frozen=True):
    """An earlier exchange: its attempt, its model, what came of it, and the evidence its verdict rests on."""

    attempt: int
    model: str
    name: str
    evidence: tuple[Evidence, ...] = ()


class _State(msgspec.Struct, array_like=True):
    """`RunMemory` as it is kept between two readings of a run."""

    faults: list[tuple[str, str, Earlier]]
    answers: list[tuple[str, str, Earlier]]
    loaded: dict[str, Earlier]
    told: list[tuple[str, str, str, str]]


@dataclass(slots=True)
class RunMemory:
    """Fed by `remember` after each verdict; `upstream` keeps servers apart."""

    _faults: OrderedDict[tuple[str, str], Earlier] = field(default_factory=OrderedDict)
    _answers: OrderedDict[tuple[str, str], Earlier] = field(default_factory=OrderedDict)
    _loaded: dict[str, Earlier] = field(default_factory=dict)
    _told: OrderedDict[tuple[str, str], tuple[str, str]] = field(default_factory=OrderedDict)

    def remember(
        self,
        upstream: str,
        model: str,
        attempt: int,
        name: str,
        evidence: tuple[Evidence, ...],
        *,
        refused: bool = True,
        took_tools: bool = False,
    ) -> None:
        """Keep what later exchanges may need of this one. `refused`: the answer was an error or none; `took_tools`:
        tools were offered and the request was served."""
        earlier = Earlier(attempt, model, name, evidence)
        key = (upstream, model)
        if name == "nonresponse.load_only":
            self._faults.pop(key, None)
            self._loaded.pop(upstream, None)
        elif name in _FAULTS and refused:
            _keep(self._faults, key, earlier)
        elif name.startswith(_ANSWERS) and name != "ok.service":
            self._faults.pop(key, None)
            self._loaded[upstream] = earlier
            if took_tools:
                _keep(self._answers, key, earlier)

    def tell(self, upstream: str, model: str, template: str, parser: str) -> None:
        """Keep what a server said of a model: its chat template, and the parser named for it."""
        self._told[upstream, model] = (template, parser)
        if len(self._told) > MAX_TOLD:
            self._told.popitem(last=False)

    def told(self, upstream: str, model: str) -> tuple[str, str]:
        """Template and parser of a model as the server told them ("" where it did not)."""
        plain = model.removesuffix(":latest")
        for name in (model, plain, f"{plain}:latest", ""):
            if (upstream, name) in self._told:
                return self._told[upstream, name]
        return "", ""

    def fault_before(self, upstream: str, model: str) -> Earlier | None:
        """The last fault on this model that nothing has answered since; else the last one on another model there
        (names may share weights)."""
        same = self._faults.get((upstream, model))
        if same is not None:
            return same
        others = [earlier for (where, _), earlier in self._faults.items() if where == upstream]
        return others[-1] if others else None

    def answered_before(self, upstream: str, model: str) -> Earlier | None:
        """The last exchange in which this model was served with tools, if any."""
        return self._answers.get((upstream, model))

    def loaded(self, upstream: str) -> Earlier | None:
        """The last exchange that shows which model was loaded there."""
        return self._loaded.get(upstream)

    def state(self) -> bytes:
        """All of it, for a reading that goes on later."""
        return msgspec.msgpack.encode(
            _State(
                [(*key, earlier) for key, earlier in self._faults.items()],
                [(*key, earlier) for key, earlier in self._answers.items()],
                self._loaded,
                [(*key, *said) for key, said in self._told.items()],
            )
        )

    @classmethod
    def restored(cls, state: bytes) -> RunMemory:
        """What `state` kept. Raises ValueError where it is none."""
        kept = msgspec.msgpack.decode(state, type=_State)
        return cls(
            OrderedDict(((where, model), earlier) for where, model, earlier in kept.faults),
            OrderedDict(((where, model), earlier) for where, model, earlier in kept.answers),
            kept.loaded,
            OrderedDict(((where, model), (template, named)) for where, model, template, named in kept.told),
        )


def _keep(kept: OrderedDict[tuple[str, str], Earlier], key: tuple[str, str], earlier: Earlier) -> None:
    kept.pop(key, None)
    kept[key] = earlier
    if len(kept) > MAX_KEPT:
        kept.popitem(last=False)
