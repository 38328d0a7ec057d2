"""The models that packs are run on: AQBE's registry file read unchanged, with fields of our own, or named targets.

Untrusted input: unknown fields are refused, and `${VARIABLE}` is filled into headers only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from harness.grid import Target
from harness.packs.document import MOST_BYTES, Document, read_document
from harness.packs.family import Asking, Thinking
from harness.packs.model import PackError
from probe.compare.targets import TargetError, TargetSpec, parse_target

NAME = re.compile(r"[\w.+-]+")
_PLAIN = re.compile(r"[^\w.+-]+")


class ModelRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One entry of a registry. AQBE's: `label`, `url` (with `/v1`), `model`, `headers`, `temperature`, `max_tokens`,
    `timeout` in seconds, `group` (models of one group run one after the other; without one, each runs by itself).
    Ours: `up`, `path`, `flags`, `context_length` (a server started here) instead of `url`; `api`, `cacert`, `top_p`,
    `seed` as in grids; `thinking` (`default`, `off`, `no_think`); `request`: fields put into each request."""

    label: str = ""
    url: str = ""
    model: str = ""
    headers: dict[str, str] | None = None
    temperature: float = 0.1
    max_tokens: int = 1024
    timeout: float = 60.0
    group: str = ""
    up: str = ""
    path: str = ""
    flags: tuple[str, ...] = ()
    context_length: int | None = None
    api: str = "openai"
    cacert: str = ""
    top_p: float = 1.0
    seed: int | None = None
    thinking: Thinking = "default"
    request: dict[str, Any] = msgspec.field(default_factory=dict)


class RegistryModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model to run: its key in the registry, the target that a grid would have, and how it is asked."""

    key: str
    label: str
    group: str
    target: Target
    asking: Asking
    temperature: float = 0.1
    top_p: float = 1.0
    max_tokens: int = 1024
    timeout: float = 60.0
    seed: int | None = None

    @property
    def models_path(self) -> str:
        """Where its server lists its models."""
        return self.asking.path.removesuffix("/chat/completions") + "/models"


def read_registry(path: Path) -> list[RegistryModel]:
    """The models of a registry file. Raises PackError with the line."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise PackError(f"cannot read the registry {path}: {error.strerror or error}") from None
    document = read_document(raw, str(path))
    rows = document.value.get("models") if isinstance(document.value, dict) else None
    if not isinstance(rows, dict) or not rows:
        raise document.error((), "a registry of models begins with `models:`, and below it one name for each model")
    return [_model(document, key, row) for key, row in rows.items()]


def _model(document: Document, key: str, raw: Any) -> RegistryModel:
    where = ("models", key)
    if isinstance(raw, dict) and raw.get("thinking") is False:
        raw = {**raw, "thinking": "off"}  # YAML 1.1 reads the bare word as a truth value
    try:
        row = msgspec.convert(raw, ModelRow, strict=True)
    except msgspec.ValidationError as wrong:
        raise document.error(where, f"model {key!r}: {wrong}") from None
    if not NAME.fullmatch(key):
        raise document.error(where, f"model {key!r}: a name is letters, digits, '.', '_', '+' and '-'")
    problem = _problem(row)
    if problem:
        raise document.error(where, f"model {key!r}: {problem}")
    url, route = _split_url(row.url) if row.url else ("", "/v1/chat/completions")
    target = Target(
        name=key,
        url=url,
        up=row.up,
        path=row.path,
        flags=row.flags,
        context_length=row.context_length,
        model=row.model,
        headers=row.headers or {},
        api=row.api,
        cacert=row.cacert,
    )
    return RegistryModel(
        key=key,
        label=row.label or row.model or key,
        group=row.group or f"={key}",
        target=target,
        asking=Asking("/api/chat" if row.api == "ollama" else route, row.thinking, row.request),
        temperature=row.temperature,
        top_p=row.top_p,
        max_tokens=row.max_tokens,
        timeout=row.timeout,
        seed=row.seed,
    )


def _problem(row: ModelRow) -> str:
    if bool(row.url) == bool(row.up):
        return "give url (a running server) or up (a stack to start, with path), one of the two"
    if row.up and not row.path:
        return "up needs path, the model's file or folder"
    if row.url and not row.url.startswith(("http://", "https://")):
        return "url must begin with http:// or https://"
    if row.api not in ("openai", "ollama"):
        return f"api is openai or ollama, not {row.api!r}"
    if row.max_tokens < 1 or row.timeout <= 0 or row.temperature < 0:
        return "max_tokens and timeout must be above 0, temperature 0 or more"
    return ""


def _split_url(url: str) -> tuple[str, str]:
    """AQBE appends `/chat/completions` to what stands there: the server, and the route below it."""
    parts = urlsplit(url)
    prefix = parts.path.rstrip("/")
    if prefix.endswith("/v1") or not prefix:
        return url.rstrip("/").removesuffix("/v1"), "/v1/chat/completions"
    return url.rstrip("/"), "/chat/completions"


def models_of_targets(targets: Sequence[str]) -> list[RegistryModel]:
    """Targets as the command line names them (`URL`, `up:STACK:MODEL`, `mlx:DIR`). Raises PackError."""
    try:
        found = [_of_target(parse_target(text), group=str(at)) for at, text in enumerate(targets)]
    except TargetError as wrong:
        raise PackError(str(wrong)) from None
    keys = [one.key for one in found]
    doubled = next((key for key in keys if keys.count(key) > 1), None)
    if doubled:
        raise PackError(f"two targets are called {doubled!r}: name them (a=URL b=URL)")
    return found


_STACKS = {"mlx": "mlx_inprocess", "llamacpp": "llamacpp_inprocess"}


def _of_target(spec: TargetSpec, group: str) -> RegistryModel:
    key = _PLAIN.sub("-", spec.name).strip("-") or f"target-{group}"
    kind, _, place = spec.where.partition(":")
    if kind in _STACKS:
        target = Target(name=key, up=_STACKS[kind], path=place)
    elif spec.stack:
        target = Target(name=key, up=spec.stack, path=str(spec.model_path), flags=spec.flags)
    else:
        base, route = _split_url(spec.where)
        return RegistryModel(
            key=key, label=key, group=f"={key}", target=Target(name=key, url=base), asking=Asking(route)
        )
    # What is started here shares this machine: one after the other.
    return RegistryModel(key=key, label=key, group="this machine", target=target, asking=Asking())


def filtered(models: Sequence[RegistryModel], keys: Sequence[str]) -> list[RegistryModel]:
    """Only the models of these keys. Raises PackError for one that is not there."""
    there = {model.key: model for model in models}
    for key in keys:
        if key not in there:
            raise PackError(f"--model-filter {key}: the registry has no such model; it has {', '.join(there)}")
    return [model for model in models if not keys or model.key in keys]
