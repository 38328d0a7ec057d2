"""Which serving stack answered, by what stands in recorded traffic. Pure.

One exchange may hold a mark that only one stack writes; a whole run adds up what its exchanges show, and what GETs of
the run (`/v1/models`, `/props` ...) were answered is weighed as `fingerprint` weighs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from stacks.dialects import Assembled, WireExchange, header
from stacks.serving.base import Answer, Ask, Clue
from stacks.serving.registry import all_stacks
from stacks.serving.weighing import Weighed, weigh

_LLAMA_BUILD = re.compile(r"\Ab\d+-[0-9a-z]{6,}\Z")
_MLX = re.compile(r"\A(\d+\.\d+\.\d+-\d+\.\d+\.\d+)-")
_VLLM = re.compile(r"\Avllm-(\d+(?:\.\w+)+)")
_ALONE = 6
"""Weight from which one clue names the stack of a single exchange."""
_VLLM_ERRORS = ("BadRequestError", "NotFoundError", "InternalServerError", "PermissionDeniedError")


def stack_of_exchange(wire: WireExchange, assembled: Assembled) -> str:
    """The serving stack's name by one exchange, or "" (the sources of these marks are listed in docs/outcomes.md)."""
    strongest = max(_clues(wire, assembled), key=lambda clue: clue.weight, default=None)
    return strongest.stack if strongest is not None and strongest.weight >= _ALONE else ""


def stack_of_run(exchanges: Iterable[tuple[WireExchange, Assembled]]) -> Weighed | None:
    """The stack behind a whole recording of one upstream; None where the traffic does not tell."""
    clues: list[Clue] = []
    gets: dict[str, Answer] = {}
    for wire, assembled in exchanges:
        clues.extend(_clues(wire, assembled))
        path = wire.target.partition("?")[0]
        if wire.method == "GET" and wire.status and path not in gets:
            gets[path] = _answer(path, wire)
    clues.extend(clue for stack in all_stacks() for clue in stack.clues(gets))
    weighed = weigh(clues)
    return None if weighed is None or weighed.stack == "openai" else weighed


def _answer(path: str, wire: WireExchange) -> Answer:
    given = wire.response_headers
    headers = tuple(given.items() if isinstance(given, Mapping) else given)
    return Answer(Ask("GET", path), wire.status, headers, wire.response_body)


def _clues(wire: WireExchange, assembled: Assembled) -> list[Clue]:
    found = list(_by_fingerprint(assembled))
    found.extend(_by_fields(assembled))
    found.extend(_by_errors(assembled))
    found.extend(_by_headers(wire, assembled))
    return found


def _by_fingerprint(assembled: Assembled) -> Iterator[Clue]:
    turn = assembled.turn
    mark = (turn.fingerprint or "") if turn is not None else ""
    if not mark:
        return
    vllm, mlx = _VLLM.match(mark), _MLX.match(mark)
    if mark == "fp_ollama":
        yield Clue("ollama", 9, "system_fingerprint fp_ollama")
    elif mark.startswith("vllm-"):
        yield Clue("vllm", 9, "system_fingerprint vllm-", version=vllm.group(1) if vllm else "")
    elif _LLAMA_BUILD.match(mark):
        yield Clue("llamacpp", 9, "system_fingerprint is a build of llama.cpp", version=mark)
    elif mlx:
        yield Clue("mlx_server", 9, "system_fingerprint of mlx_lm", version=mlx.group(1))
    elif mark.startswith("stacktap-"):
        yield Clue("mlx_inprocess", 9, "system_fingerprint stacktap-")


def _by_headers(wire: WireExchange, assembled: Assembled) -> Iterator[Clue]:
    server = header(wire.response_headers, "server") or ""
    timed = header(wire.response_headers, "openai-processing-ms")
    if server.startswith("llama.cpp"):
        yield Clue("llamacpp", 8, "the Server header says llama.cpp")
    elif server.startswith("BaseHTTP/"):
        yield Clue("mlx_server", 7, "the Server header is that of Python's http.server")
    elif server == "stacktap":
        yield Clue("mlx_inprocess", 7, "the Server header says stacktap")
    elif server == "uvicorn" and timed:
        yield Clue("llamacpp_python", 6, "uvicorn with the header openai-processing-ms")
    if b"registry.ollama.ai" in wire.response_body[:2048]:
        yield Clue("ollama", 7, "its registry's name stands in the answer")
    elif assembled.route.startswith("api_"):
        # Ollama sends no Server header; SGLang's imitation of these routes runs on uvicorn.
        facade = server == "uvicorn" and not timed
        yield Clue("sglang", 3, "an Ollama route on uvicorn") if facade else Clue("ollama", 7, "an Ollama route")


def _by_fields(assembled: Assembled) -> Iterator[Clue]:
    turn = assembled.turn
    if turn is None:
        return
    extra = turn.extra
    if "timings" in extra:
        yield Clue("llamacpp", 6, "the field timings")
    if "matched_stop" in extra:
        yield Clue("sglang", 4, "the field matched_stop")
    if isinstance(extra.get("metadata"), dict) and "weight_version" in extra["metadata"]:  # type: ignore[operator]
        yield Clue("sglang", 5, "the field metadata.weight_version")
    if "kv_transfer_params" in extra or "routed_experts" in extra:
        yield Clue("vllm", 4, "the field kv_transfer_params")
    if {"stats", "runtime"} <= extra.keys() or {"stats", "model_info"} <= extra.keys():
        yield Clue("lmstudio", 6, "the fields stats and model_info")
    if any((call.id or "").startswith("chatcmpl-tool-") for call in turn.tool_calls):
        yield Clue("vllm", 3, "ids of calls begin with chatcmpl-tool-")


def _by_errors(assembled: Assembled) -> Iterator[Clue]:
    for error in assembled.errors:
        if "--enable-auto-tool-choice" in error.message:
            yield Clue("vllm", 5, "the refusal names vLLM's flags")
        if error.type in _VLLM_ERRORS and isinstance(error.code, int):
            # SGLang's error object is the whole body, vLLM's stands under `error`.
            flat = isinstance(error.raw, dict) and error.raw.get("object") == "error"
            yield Clue("sglang" if flat else "vllm", 3, f"an error of type {error.type}")
        if "Unexpected endpoint or method" in error.message:
            yield Clue("lmstudio", 6, "unknown routes are answered in its words")
