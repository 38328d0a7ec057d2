"""Which serving stack answers, by several pieces of evidence that are weighed; the port is none of them.

Every stack's module looks for its own clues in the answers to `ASKS`. Before that, answers that say nothing are taken
out: what a route that nobody has is answered with, and web pages. Headers alone never decide: they are easily claimed.
"""

from __future__ import annotations

from collections.abc import Mapping

from results.manifest import known, unknown
from stacks.serving.base import Answer, Ask
from stacks.serving.bystanders import NOBODYS, behind, gateway, is_page, unreachable, unrecognised
from stacks.serving.reading import MODELS, entries
from stacks.serving.registry import all_stacks, serving_stack
from stacks.serving.weighing import GENERIC, Fingerprint, State, Weighed, weigh

__all__ = ["ASKS", "FIRST_ASK", "Fingerprint", "confirming", "fingerprint"]

_PATHS = (
    "/",
    MODELS,
    "/props",
    "/version",
    "/api/version",
    "/api/tags",
    "/model_info",
    "/server_info",
    "/openapi.json",
    "/api/v1/models",
    "/api/v0/models",
    NOBODYS,
)
ASKS: tuple[Ask, ...] = tuple(Ask("GET", path, purpose="fingerprint", seconds=4.0) for path in _PATHS)
"""All are GETs that read, and may be sent at once. /health is none of them: on a gateway it can call every model."""

FIRST_ASK = ASKS[1]
"""The one that most servers answer: what is no HTTP server at all needs no further ones."""


_CONFIRMING = {
    "llamacpp": ("/props",),
    "vllm": ("/version", "/openapi.json"),
    "sglang": ("/", "/server_info"),
    "llamacpp_python": ("/openapi.json",),
    "ollama": ("/", "/api/version", "/api/tags"),
    "mlx_inprocess": ("/",),
    "mlx_server": ("/",),
    "lmstudio": ("/api/v1/models", "/api/v0/models"),
}


def confirming(first: Answer) -> list[Ask]:
    """The requests that decide whether it is the stack that the first answer speaks for most; none where it does for
    none."""
    totals: dict[str, int] = {}
    for stack in all_stacks():
        for clue in stack.clues({FIRST_ASK.path: first}):
            totals[clue.stack] = totals.get(clue.stack, 0) + clue.weight
    likely = max((name for name in totals if name != GENERIC), key=lambda name: totals[name], default="")
    paths = (*_CONFIRMING.get(likely, ()), NOBODYS)
    return [ask for ask in ASKS if ask.path in paths] if likely else []


def fingerprint(answers: Mapping[str, Answer]) -> Fingerprint:
    """Weigh the answers to `ASKS` (by path; some may be missing). Pure; never raises."""
    absent = unreachable(answers)
    if absent is not None:
        return absent
    front = gateway(answers)
    telling = _telling(answers)
    weighed = weigh(clue for stack in all_stacks() for clue in stack.clues(telling))
    if weighed is None:
        return unrecognised(answers, front)
    claims = tuple(f"claims of {serving_stack(name).title} are not borne out ({why})" for name, why in weighed.claimed)
    notes = (*claims, *_replayed(answers))
    if weighed.stack == GENERIC:
        return _generic(answers, front, weighed, notes)
    return Fingerprint(
        weighed.stack,
        weighed.version,
        weighed.confidence,
        serving_stack(weighed.stack).title,
        _state(answers),
        front,
        weighed.clues,
        (*notes, *behind(front)),
    )


def _telling(answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """The answers that can be evidence: not what an unknown route answers too, and no web pages.

    An error answer stays: its form is evidence.
    """
    nobodys = answers.get(NOBODYS)
    same = nobodys.body if nobodys is not None and nobodys.ok else None
    return {
        path: answer
        for path, answer in answers.items()
        if not answer.ok or path == NOBODYS or (answer.body != same and not is_page(answer))
    }


def _replayed(answers: Mapping[str, Answer]) -> tuple[str, ...]:
    """A note where the answers are a replay's (`proxy.replay` labels them): what is found out is of the recordings."""
    told = any(answer.header("x-stacktap-replayed") for answer in answers.values())
    return ("replayed: true captures stand in for a server here",) if told else ()


def _state(answers: Mapping[str, Answer]) -> State:
    listed = answers.get(MODELS)
    statuses = {answer.status for answer in answers.values()}
    if statuses <= {503, None, 404} and 503 in statuses:
        return "loading"
    if listed is not None and listed.status in (401, 403):
        return "locked"
    return "ready"


def _generic(answers: Mapping[str, Answer], front: str, weighed: Weighed, notes: tuple[str, ...]) -> Fingerprint:
    described = answers.get("/openapi.json")
    title = str(described.get("info", "title") or "") if described is not None and described.ok else ""
    title = "" if title == "FastAPI" else title
    owner = next((str(entry["owned_by"]) for entry in entries(answers.get(MODELS)) if entry.get("owned_by")), "")
    what = serving_stack("openai").title
    if title:
        what += f" that calls itself {title}"
    elif owner:
        what += f" (its models are owned by {owner})"
    said = described.get("info", "version") if title and described is not None else None
    version = known(said, "/openapi.json") if isinstance(said, str) and said else unknown("the server tells none")
    hidden = (f"{front} stands in front: what is behind it does not show",) if front else ()
    return Fingerprint("openai", version, "medium", what, _state(answers), front, weighed.clues, (*notes, *hidden))
