"""Models of our own on a user's Ollama: created for an experiment, removed after it whatever happens.

Only where the user allowed that (`--disruptive`). I/O through the official `ollama` client, which is imported when it
is first needed. Sources: Ollama's API (`/api/blobs`, `/api/create`, `/api/delete`, `keep_alive`), `server/create.go`.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from probe.asking import NotAllowedError
from probe.canary.build import BuiltCanary
from probe.canary.ollama_files import BARE_GGUF, OllamaWay, bare_gguf

PREFIX = "stacktap-canary-"
"""Every model that is created here has a name that begins so, or with another prefix; no other is ever removed."""
_UNFIT = re.compile(r"[^a-z0-9.]+")
_SECONDS = 60.0
_LATE_SECONDS = 1.0


class OllamaModelsError(Exception):
    """The server could not be reached, or refused; the message says what was tried and what to do."""


class OllamaModels:
    """The models of one Ollama server, and those that were created on it here. Use it as a context manager: leaving it,
    also on an error or Ctrl-C, unloads and removes what was created."""

    def __init__(
        self,
        base_url: str,
        *,
        disruptive: bool = False,
        headers: Mapping[str, str] | None = None,
        seconds: float = _SECONDS,
        prefix: str = PREFIX,
    ) -> None:
        """`base_url` is the server's, or a relay's in front of it; `seconds` limits each request; `prefix` begins the
        names of what is created."""
        try:
            import ollama  # noqa: PLC0415 - an optional dependency
        except ImportError:
            raise OllamaModelsError("creating models on Ollama needs its client: pip install ollama") from None
        self.base_url = base_url
        self.prefix = prefix
        self.created: list[str] = []
        self._unsure: set[str] = set()
        self._disruptive = disruptive
        # What the client raises, and what it does not translate.
        self._failures: tuple[type[Exception], ...] = (
            ollama.ResponseError,
            ConnectionError,
            httpx.HTTPError,
            ValueError,
        )
        self._client = ollama.Client(host=base_url, headers=dict(headers or {}), timeout=seconds, trust_env=False)
        self._send: Any = self._client._request_raw

    def __enter__(self) -> OllamaModels:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unload and remove every model created here. Raises OllamaModelsError naming those that are still there."""
        left: dict[str, str] = {}
        for name in chain(list(self.created), self._again()):
            try:
                self.remove(name)
            except OllamaModelsError as failure:
                left[name] = str(failure)
        with contextlib.suppress(AttributeError):
            self._client._client.close()
        if left:
            reasons = "; ".join(dict.fromkeys(left.values()))
            raise OllamaModelsError(f"still on {self.base_url}: `ollama rm {' '.join(left)}` removes them ({reasons})")

    def version(self) -> str:
        """The server's version."""
        with self._told("ask for the version"):
            answer = self._send("GET", "/api/version").json()
        return str(answer.get("version", "")) if isinstance(answer, dict) else ""

    def names(self) -> list[str]:
        """The models on the server."""
        with self._told("list the models"):
            return [str(model.model) for model in self._client.list().models]

    def loaded(self) -> dict[str, int | None]:
        """The models in memory, with the context in force (tokens)."""
        with self._told("list the loaded models"):
            running = self._client.ps().models
        return {str(model.model): getattr(model, "context_length", None) for model in running}

    def show(self, name: str) -> dict[str, Any]:
        """What the server tells of a model: template, modelfile, capabilities and more."""
        with self._told(f"show {name}"):
            answer: dict[str, Any] = self._send("POST", "/api/show", json={"model": name}).json()
        return answer

    def new_name(self, way: OllamaWay) -> str:
        """A name of ours that says the way and was never given before."""
        return f"{self.prefix}{_UNFIT.sub('-', way.name.lower()).strip('-')}-{secrets.token_hex(4)}"

    def create(self, canary: BuiltCanary, way: OllamaWay, name: str | None = None) -> str:
        """Install a canary in one way under a new name of ours, and return the name. A name that exists already is
        refused: creating it would replace it. Raises NotAllowedError, OllamaModelsError, and ValueError for a name
        that is not ours; what was begun is removed on leaving."""
        self._allowed(f"create a model on {self.base_url}")
        name = self._free(self.new_name(way) if name is None else name)
        path = _gguf(canary, way)
        # Noted before it is asked for: a request that is cut off may have been carried out.
        self.created.append(name)
        self._unsure.add(name)
        with self._told(f"create {name}"):
            digest = self._client.create_blob(path)
            body: dict[str, Any] = {"model": name, "files": {path.name: digest}, "stream": False}
            wanted = {"template": way.template_text, "renderer": way.renderer, "parser": way.parser}
            body |= {key: value for key, value in wanted.items() if value}
            body |= {"parameters": dict(way.parameters)} if way.parameters else {}
            # The client's own create() knows no renderer and no parser.
            answer = self._send("POST", "/api/create", json=body).json()
        status = answer.get("status") if isinstance(answer, dict) else None
        if status != "success":
            raise OllamaModelsError(f"{self.base_url} did not create {name}: {answer}")
        self._unsure.discard(name)
        return name

    def load(self, name: str) -> None:
        """Take a model into memory without asking it anything. Raises NotAllowedError, OllamaModelsError."""
        self._allowed(f"load {name}")
        with self._told(f"load {name}"):
            self._send("POST", "/api/chat", json={"model": name, "messages": [], "stream": False})

    def unload(self, name: str) -> None:
        """Take a model out of memory (also one whose runner is stuck). Raises NotAllowedError, OllamaModelsError."""
        self._allowed(f"unload {name}")
        with self._told(f"unload {name}"):
            self._send("POST", "/api/chat", json={"model": name, "keep_alive": 0})

    def remove(self, name: str) -> None:
        """Unload and delete a model of ours; one that is gone already is fine. Raises OllamaModelsError, and ValueError
        for a name that is not ours."""
        if not name.startswith(self.prefix):
            raise ValueError(f"{name} was not created by stacktap: it is not removed")
        with contextlib.suppress(OllamaModelsError, NotAllowedError):
            self.unload(name)
        try:
            with self._told(f"remove {name}"):
                self._client.delete(name)
        except OllamaModelsError as failure:
            if "not found" not in str(failure):
                raise
        if name in self.created:
            self.created.remove(name)

    def leftovers(self) -> list[str]:
        """Models of ours that an earlier run could not remove (it was killed)."""
        ours = [name for name in self.names() if name.startswith(self.prefix)]
        return [name for name in ours if name.removesuffix(":latest") not in self.created]

    def _free(self, name: str) -> str:
        if not name.startswith(self.prefix):
            raise ValueError(f"{name} does not begin with {self.prefix}: it could not be removed again")
        if name in {taken.removesuffix(":latest") for taken in self.names()}:
            raise OllamaModelsError(
                f"{self.base_url} has a model {name} already, and it is not replaced: give another name, or remove it "
                f"with `ollama rm {name}`"
            )
        return name

    def _again(self) -> Iterator[str]:
        """Names whose creation was cut off: the server may still have finished it after the first removal."""
        if self._unsure:
            time.sleep(_LATE_SECONDS)
        yield from sorted(self._unsure)

    def _allowed(self, what: str) -> None:
        if not self._disruptive:
            raise NotAllowedError(what)

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._failures as failure:
            said = getattr(failure, "error", None) or str(failure) or type(failure).__name__
            raise OllamaModelsError(f"could not {what} on {self.base_url}: {said}") from failure


def _gguf(canary: BuiltCanary, way: OllamaWay) -> Path:
    if not way.bare:
        return canary.gguf
    path = canary.folder / BARE_GGUF
    partial = path.with_name(BARE_GGUF + ".partial")
    partial.write_bytes(bare_gguf(canary))
    return partial.replace(path)
