"""What agent tasks leave behind: turns, episodes and the plans of cells, as lines of `episodes.jsonl`.

An attempt is one exchange (its bytes stand in the wire journal); a turn is one assistant step of one or more attempts;
an episode is one run of one task instance; a cell is model x stack x condition x task. The first line of the file is a
`header`; a `cell` line states what a cell is bound to before its first episode; each finished episode is one line,
never changed. Readers accept unknown fields. Times are microseconds since the Unix epoch.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Literal

import msgspec

from results.manifest import Fact
from results.outcomes import Outcome, check

EPISODES_SCHEMA = 1
"""Version of the lines of `episodes.jsonl` written by this code."""

EndedBy = Literal[
    "done_tool",
    "final_answer",
    "prose",
    "single_turn",
    "turn_cap",
    "tool_cap",
    "wallclock",
    "nonresponse",
    "cancelled",
    "not_run",
]
"""What ended an episode. `single_turn`: the task asks for one answer only; `not_run`: nothing was sent to a model."""

Channel = Literal["native", "text", "none"]
CallVerdict = Literal["valid", "unknown_tool", "withheld_tool", "invalid_arguments"]

DONE = "ok.task_done"
"""The outcome of an episode that reached its goal."""


WROTE = "wrote"
"""Label of an episode: SHA-256 (16 hex) over all that the model wrote in it, where the harness keeps it."""


class CellKey(msgspec.Struct, frozen=True, order=True):
    """Model artifact, stack configuration, serving condition (with its variant: `native+hint`), task."""

    model: str
    stack: str
    condition: str
    task: str

    @property
    def text(self) -> str:
        """The key as a JSON array: no two keys share it. Random streams and hashes are derived from it."""
        return msgspec.json.encode(msgspec.structs.astuple(self)).decode()

    @property
    def title(self) -> str:
        """For people: `phi3 @ ollama, native, aggregation`."""
        return f"{self.model} @ {self.stack}, {self.condition}, {self.task}"


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One tool call as the harness read it: `arguments` is their JSON text; `executed` whether the world ran it;
    `changed` whether the world's state is another one since; `error` what the tool answered where it failed."""

    name: str
    arguments: str = "{}"
    verdict: CallVerdict = "valid"
    executed: bool = False
    changed: bool = False
    error: str = ""


class AttemptRecord(msgspec.Struct, frozen=True):
    """One attempt of a turn: its number in the wire journal, and what became of it."""

    attempt: int
    outcome: Outcome


class TurnRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One assistant step. `outcome` is the harness's verdict on the last attempt: where tools are not sent as such
    (text-tools, constrained) only the harness knows that the text is a call (`ok.text_call`).

    `recovered` names the client's own parser where it found the call that the server had left in the text. A turn past
    the cap (`post_cap`) is outside every count. `labels` holds the words of other taxonomies that need more than the
    outcome (`paper-compat`: the original's own predicates, `uncounted` for a turn that it skips). `user_turn` counts
    the user's messages (from 0) in tasks that have several: the one that the step answers.
    """

    outcome: Outcome
    attempts: tuple[AttemptRecord, ...] = ()
    channel: Channel = "none"
    recovered: str = ""
    calls: tuple[CallRecord, ...] = ()
    post_cap: bool = False
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    user_turn: int = 0

    @property
    def retries(self) -> int:
        """Attempts beyond the first: each is a sample more than was declared."""
        return max(0, len(self.attempts) - 1)

    @property
    def clean(self) -> bool:
        """Whether no serving fault touched the turn: nobody or the model is at fault, or the client's own parser made
        up for what the server had left undone."""
        return self.outcome.at_fault in ("none", "model") or bool(self.recovered)


class EpisodeRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="event", tag="episode"):
    """One finished episode. `seed` is the task instance, `repeat` the run of it, `decoder_seed` what the stack got.

    `outcome` is `ok.task_done`, `task.*`, `model.*`, or `not_run.<code>` where infrastructure ended it (`code` is the
    name of that outcome, or a word of the harness's own). `progress` and `score` are of the oracle, in [0, 1].
    `rejudged` is the outcome of the same episode with its serving faults completed by the known raw text, None where
    that was not possible. `recording` names the wire journal that the attempts' numbers belong to; `plan` is the
    digest of the cell's `CellPlan`. `temperature` is the one in force, None where it is not known. `labels` are words
    of other taxonomies that need the whole episode (`dense`: Dense Bench's failure mode), and what other oracles say.
    `measured` is what a model in this process took: peak memory in bytes, seconds, tokens, tokens a second, by name.
    """

    episode: str
    cell: CellKey
    seed: int
    outcome: Outcome
    ended_by: EndedBy
    turns: tuple[TurnRecord, ...] = ()
    repeat: int = 0
    answer: Any = None
    progress: float | None = None
    score: float | None = None
    rejudged: Outcome | None = None
    temperature: float | None = None
    decoder_seed: int | None = None
    recording: str = ""
    plan: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    measured: dict[str, float] = msgspec.field(default_factory=dict)
    started_us: int = 0
    ended_us: int = 0

    @property
    def succeeded(self) -> bool:
        """Whether the task's oracle says that the goal was reached."""
        return self.outcome.name == DONE

    @property
    def place(self) -> tuple[CellKey, int, int]:
        """What may be there once only: cell, seed, repeat."""
        return self.cell, self.seed, self.repeat


class CellPlan(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="event", tag="cell"):
    """What a cell is bound to (software, model digest, template, pack, text of the condition: nothing that differs
    between two runs of the same) and what is declared: the seeds in their order, and runs of each."""

    cell: CellKey
    seeds: tuple[int, ...]
    repeats: int = 1
    facts: dict[str, Fact] = msgspec.field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over cell and facts. Seeds and repeats are not in it: a cell may be carried on with more."""
        body = msgspec.json.encode([self.cell, self.facts], order="sorted")
        return sha256(body).hexdigest()


class Header(msgspec.Struct, frozen=True, tag_field="event", tag="header"):
    """First line of `episodes.jsonl`."""

    schema: int
    run: str
    epoch_us: int


EpisodeLine = Header | CellPlan | EpisodeRecord

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[EpisodeLine] = msgspec.json.Decoder(EpisodeLine)


def encode_episode_line(line: EpisodeLine) -> bytes:
    """One line of `episodes.jsonl`, newline included. Half a surrogate pair, which a model's arguments may hold and
    UTF-8 may not, is written as a question mark."""
    try:
        return _encoder.encode(line) + b"\n"
    except UnicodeEncodeError:
        return _encoder.encode(_writable(msgspec.to_builtins(line))) + b"\n"


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_writable(key): _writable(each) for key, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list | tuple) else value


def decode_episode_line(raw: bytes) -> EpisodeLine:
    """Parse one line. Raises ValueError (msgspec's errors are such) with the reason where it is no valid line."""
    try:
        line = _decoder.decode(raw)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if isinstance(line, EpisodeRecord):
        check_episode(line)
    elif isinstance(line, CellPlan):
        check_plan(line)
    return line


def check_episode(episode: EpisodeRecord) -> None:
    """Raise ValueError where an episode contradicts itself or the taxonomy."""
    rejudged = () if episode.rejudged is None else (episode.rejudged,)
    turns = [turn.outcome for turn in episode.turns]
    attempts = [attempt.outcome for turn in episode.turns for attempt in turn.attempts]
    for outcome in (episode.outcome, *rejudged, *turns, *attempts):
        check(outcome)
    if episode.ended_by == "not_run" and (episode.outcome.layer != "not_run" or episode.turns):
        raise ValueError(f"episode {episode.episode}: what was not run has neither turns nor a result")
    for name, value in (("progress", episode.progress), ("score", episode.score)):
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"episode {episode.episode}: {name} {value} is not between 0 and 1")
    if episode.repeat < 0:
        raise ValueError(f"episode {episode.episode}: repeat {episode.repeat} is negative")


def check_plan(plan: CellPlan) -> None:
    """Raise ValueError where a plan declares nothing, or a seed twice."""
    if not plan.seeds or plan.repeats < 1:
        raise ValueError(f"{plan.cell.title}: no episode is declared")
    if len(set(plan.seeds)) < len(plan.seeds):
        raise ValueError(f"{plan.cell.title}: a seed is declared twice")


def changed_facts(before: CellPlan, after: CellPlan) -> list[str]:
    """What two plans of one cell are bound to differently, one line each: why their episodes must not be mixed."""
    said = []
    for name in sorted(before.facts.keys() | after.facts.keys()):
        old, new = (_said(plan.facts.get(name)) for plan in (before, after))
        if old != new:
            said.append(f"{name}: {old} -> {new}")
    return said


def _said(fact: Fact | None) -> str:
    if fact is None:
        return "not stated"
    return f"unknown ({fact.unknown})" if fact.unknown is not None else msgspec.json.encode(fact.value).decode()


def brief(outcome: Outcome) -> Outcome:
    """An outcome without its quotes, for an episode's line: `outcomes.jsonl` keeps them, under the attempt's number."""
    return msgspec.structs.replace(outcome, evidence=())


def relabelled(episode: EpisodeRecord, outcomes: dict[int, Outcome]) -> EpisodeRecord:
    """The episode with the attempts' outcomes as a later `classify` gives them (by attempt number of its recording).

    A turn follows its last attempt where it said the same as that attempt before; where the harness knew more (a call
    in text that only it can see) its verdict stays.
    """
    return msgspec.structs.replace(episode, turns=tuple(_turn_relabelled(turn, outcomes) for turn in episode.turns))


def _turn_relabelled(turn: TurnRecord, outcomes: dict[int, Outcome]) -> TurnRecord:
    if not any(one.attempt in outcomes for one in turn.attempts):
        return turn
    attempts = tuple(AttemptRecord(one.attempt, outcomes.get(one.attempt, one.outcome)) for one in turn.attempts)
    followed = turn.outcome.name == turn.attempts[-1].outcome.name and turn.attempts[-1].attempt in outcomes
    outcome = attempts[-1].outcome if followed else turn.outcome
    return msgspec.structs.replace(turn, attempts=attempts, outcome=outcome)
