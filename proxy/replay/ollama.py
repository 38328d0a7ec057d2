"""A stand-in for an Ollama server: answers by what a request means, from captures of real servers of one version.

Every recorded answer is served as its bytes were, with two lines added to its head: `x-stacktap-replayed` names the
capture, `x-stacktap-replay-differs` the fields of the request that differ from the captured one without changing the
answer. Answers about the server itself that no capture holds are built and say so (`x-stacktap-built`). What no
capture covers is refused with 501 and `x-stacktap-error: not_recorded`, naming what was asked; nothing is invented.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from proxy.replay.framing import labelled, pieces_of
from proxy.replay.ollama_built import listed, ps_of, show_of, shown_models
from proxy.replay.ollama_captures import Taken
from proxy.replay.ollama_match import differences, families_of
from proxy.replay.ollama_meaning import Meaning, meaning_of
from proxy.replay.ollama_runners import NEEDS_JINJA, Runners, wedging, weights_of
from proxy.replay.recordings import RecordedAnswer, Tags

REPLAYED = "x-stacktap-replayed"
DIFFERS = "x-stacktap-replay-differs"
_LISTED_DIFFERENCES = 12
_ROUTES = frozenset(
    {
        "/",
        "/api/version",
        "/api/status",
        "/api/tags",
        "/api/show",
        "/api/ps",
        "/api/generate",
        "/api/chat",
        "/api/embed",
    }
    | {
        "/api/embeddings",
        "/api/pull",
        "/api/push",
        "/api/create",
        "/api/copy",
        "/api/delete",
        "/api/me",
        "/api/signout",
    }
    | {"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/models", "/v1/responses", "/v1/messages"}
    | {"/v1/audio/transcriptions"}
)
"""The routes of `server/routes.go` (GenerateRoutes); every other path is answered 404 whatever it is."""
_ROUTE_TREES = ("/api/blobs/", "/api/experimental/", "/v1/models/")
_SEQUENCES = ("-wedge/", "-shared-runner/")


class OllamaReplay:
    """The answers of one Ollama version. It remembers which model was loaded first and which runner is stuck, as the
    server would; `restart` forgets that."""

    unseen_status = (501, "Not Implemented")
    upstreams: frozenset[str] = frozenset()

    def __init__(self, taken: Iterable[Taken], version: str) -> None:
        self.version = version
        self.answers = [one for one in taken if one.version == version]
        self._weights = weights_of(self.answers)
        self._families = families_of(self.answers)
        self._entries = listed(self.answers)
        self.models = frozenset(self._entries) | frozenset(self._weights)
        self._by_route: dict[tuple[str, str], list[Taken]] = {}
        # Sequences come last: their answers hang on what came before.
        for one in sorted(self.answers, key=lambda one: any(word in one.source for word in _SEQUENCES)):
            self._by_route.setdefault((one.meaning.method, one.meaning.path), []).append(one)
        self._can_wedge = wedging(self.answers, self._weights)
        self.restart()

    def restart(self) -> None:
        """As after a start of the server: nothing is loaded, nothing is stuck."""
        self.runners = Runners(self._weights, self._can_wedge)

    def __len__(self) -> int:
        return len(self.answers)

    def find(
        self, method: str, path: str, body: bytes, *, upstream: str | None = None, tags: Tags = ()
    ) -> tuple[RecordedAnswer, str] | None:
        """The answer and how it was found: `bytes`, `meaning`, `built` or `stuck`. None where no capture covers it.
        Captures are of one server, without tags."""
        asked = meaning_of(method, path, body)
        if self.runners.is_stuck(asked):
            return RecordedAnswer(method, path, body, (), "hang", "stuck after a parser error"), "stuck"
        if asked.path == "/api/ps":
            return self._loaded(asked, body)
        best = self._best(asked, body)
        if best is None:
            return self._built(asked, body)
        one, differs = best
        self.runners.after(asked, one)
        raw = labelled(one.raw, _labels(one, differs))
        ended = "close" if raw else "hang"
        how = "bytes" if one.body == body else "meaning"
        return RecordedAnswer(method, path, body, pieces_of(raw), ended, one.source), how

    def nearest(self, method: str, path: str, body: bytes) -> str:
        """What was asked, and which facts of the nearest capture are others."""
        asked = meaning_of(method, path, body)
        route = self._by_route.get((method, asked.path), [])
        same = [one for one in route if one.meaning.model == asked.model]
        said = _in_words(asked)
        if not route:
            routes = sorted({f"{one.meaning.method} {one.meaning.path}" for one in self.answers})
            return f"no capture of Ollama {self.version} covers {said}; captured routes: {', '.join(routes)}"
        if not same:
            models = sorted({one.meaning.model or "none" for one in route})
            return f"no capture of Ollama {self.version} covers {said}; captured there: {', '.join(models)}"
        best = min(same, key=lambda one: len(_apart(asked, one.meaning)))
        apart = ", ".join(_apart(asked, best.meaning)) or "words of the prompt, output budget or context"
        return f"no capture of Ollama {self.version} covers {said}; the nearest ({best.source}) has other: {apart}"

    def _best(self, asked: Meaning, body: bytes) -> tuple[Taken, list[str]] | None:
        if asked.path not in _ROUTES and not asked.path.startswith(_ROUTE_TREES):
            return self._no_route(asked)
        needs_jinja = self.runners.lacks_jinja(asked)
        best: tuple[Taken, list[str]] | None = None
        for one in self._by_route.get((asked.method, asked.path), []):
            cut_off = bool(one.raw) and not one.whole
            # A 403 was the answer to a foreign Host or Origin, which no body shows.
            if one.stuck or cut_off or one.status == 403 or (NEEDS_JINJA in one.payload) != needs_jinja:
                continue
            differs = differences(asked, one, self._families, self.models)
            if differs is None:
                continue
            if one.body == body:
                return one, []
            if best is None or len(differs) < len(best[1]):
                best = one, differs
        return best

    def _no_route(self, asked: Meaning) -> tuple[Taken, list[str]] | None:
        for one in self.answers:
            unknown = one.meaning.path not in _ROUTES and not one.meaning.path.startswith(_ROUTE_TREES)
            if unknown and one.status == 404 and one.meaning.method == asked.method:
                return one, [] if one.meaning.path == asked.path else ["path"]
        return None

    def _loaded(self, asked: Meaning, body: bytes) -> tuple[RecordedAnswer, str] | None:
        runners = list(self.runners.loaded.values())
        wanted = sorted((runner.model, runner.context) for runner in runners)
        for one in self._by_route.get((asked.method, asked.path), []):
            if sorted((name, context or 0) for name, context in shown_models(one.payload)) == wanted:
                raw = labelled(one.raw, _labels(one, []))
                return RecordedAnswer(asked.method, asked.path, body, pieces_of(raw), "close", one.source), "bytes"
        if asked.method != "GET":
            return None
        return RecordedAnswer("GET", asked.path, body, ((0, ps_of(runners, self._entries)),), "close", "built"), "built"

    def _built(self, asked: Meaning, body: bytes) -> tuple[RecordedAnswer, str] | None:
        if (asked.method, asked.path) != ("POST", "/api/show") or not asked.model:
            return None
        raw = show_of(asked.model, self.answers, self._entries.get(asked.model))
        if raw is None:
            return None
        return RecordedAnswer("POST", asked.path, body, ((0, raw),), "close", "built"), "built"


def _labels(one: Taken, differs: list[str]) -> list[tuple[str, str]]:
    labels = [(REPLAYED, one.source)]
    if differs:
        more = len(differs) - _LISTED_DIFFERENCES
        shown = differs[:_LISTED_DIFFERENCES] + ([f"and {more} more"] if more > 0 else [])
        labels.append((DIFFERS, ", ".join(shown)))
    return labels


def _in_words(asked: Meaning) -> str:
    parts = [f"{asked.method} {asked.path}"]
    if asked.model:
        parts.append(f"model {asked.model}")
    if asked.triggers:
        parts.append(f"trigger {asked.triggers[-1]}")
    tools = json.loads(asked.tools) if asked.tools else None
    if isinstance(tools, list):
        parts.append(f"{len(tools)} tools")
    parts += [f"{name} {value[:80]}" for name, value in asked.must]
    parts += [f"{name} {value}" for name, value in (("budget", asked.budget), ("num_ctx", asked.context)) if value]
    return ", ".join(parts)


def _apart(asked: Meaning, taken: Meaning) -> list[str]:
    mine, theirs = dict(asked.must), dict(taken.must)
    found = [name for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name)]
    pairs = {
        "trigger": (asked.triggers[-1:], taken.triggers[-1:]),
        "tools": (asked.tools, taken.tools),
        "shape of the messages": (asked.shape, taken.shape),
        "output budget": (asked.budget, taken.budget),
        "num_ctx": (asked.context, taken.context),
        "rendering": (asked.render, taken.render),
    }
    return found + [name for name, (mine_, theirs_) in pairs.items() if mine_ != theirs_]
