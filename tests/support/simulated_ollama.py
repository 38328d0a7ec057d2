"""A SIMULATED Ollama on loopback: it holds canaries by what they are known to write, and treats requests as the
captures of 0.30.8 and 0.32.15 show real ones do.

It keeps blobs and models as Ollama's API does, so that a canary can be installed on it like on a real server; the way
to a model (native, Go template, built-in parser) is read from what was created, by `stacks.serving.ollama_modes`.
Simulated are: the tools gate; the default context, messages dropped from the front, the refusal of native mode in its
two envelopes, the silent cut of the other modes; what each parser makes of a text; the runner that is stuck after a
parser's error before 0.32.15; the runner that names of one weights file share. Not simulated (501): malformed calls
under a grammar, other parsers, images, structured output. Output budgets are not looked at, and the Responses and
Messages APIs are no routes of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from probe.canary import CanaryError, open_canary
from probe.canary.spec import CanarySpec
from probe.canary.tokenizer import CanaryTokenizer
from probe.canary.verify import render_template
from stacks.chat_template import adapt_messages
from stacks.serving.ollama_modes import mode_of
from tests.support.simulated import http_server, json_answer
from tests.support.simulated_ollama_reading import NotSimulatedError, read
from tests.support.simulated_ollama_wire import Reply, refusal, written

DEFAULT_CONTEXT = 4096
_WEDGES_BEFORE = _CUTS_TO_HALF = _ROLE_ONCE = (0, 32, 15)
_KEPT = 4
_NOT_READ = ("logprobs", "format", "response_format", "think", "reasoning_effort", "stop", "_debug_render_only")
"""Fields that a real one reads and this one does not."""


@dataclass
class Weights:
    """A canary as far as a server shows it: its spec, and its tokenizer (bytes where there is none)."""

    spec: CanarySpec
    tokenizer: CanaryTokenizer | None = None

    def size(self, text: str) -> int:
        """Tokens of a text."""
        return len(self.tokenizer.encode(text)) if self.tokenizer is not None else len(text.encode())

    def tail(self, text: str, tokens: int) -> str:
        """About the last `tokens` tokens of a text."""
        if self.tokenizer is None:
            return text.encode()[-tokens:].decode("utf-8", "replace")
        kept = self.tokenizer.encode(text)[-tokens:]
        return b"".join(self.tokenizer.token_bytes(token) for token in kept).decode("utf-8", "replace")

    def write(self, prompt: str) -> str:
        """What it writes: the script of the latest trigger in the prompt."""
        found = [(prompt.rfind(trigger), name) for trigger, name in self.spec.all_triggers().items()]
        at, name = max(found)
        return self.spec.script(name if at >= 0 else self.spec.default_script).text


Library = Callable[[str], Weights | None]
"""The weights of an uploaded file, by its digest (`sha256:...`)."""


def library_of(*folders: Path) -> Library:
    """The canaries that are built in these folders, at any depth, by the digest of their GGUF files."""

    def find(digest: str) -> Weights | None:
        for manifest in (path for folder in folders for path in folder.rglob("canary.json")):
            with contextlib.suppress(CanaryError, OSError):
                files = manifest.parent.glob("*.gguf")
                if any(f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}" == digest for file in files):
                    tokenizer = CanaryTokenizer.from_file(manifest.parent / "tokenizer.json")
                    return Weights(open_canary(manifest.parent).spec, tokenizer)
        return None

    return find


@dataclass
class Installed:
    """A model on the server: as it was created, and its weights."""

    weights: Weights
    digest: str
    template: str = ""
    renderer: str = ""
    parser: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    bare: bool = False

    def shown(self) -> dict[str, Any]:
        """`/api/show`."""
        jinja = "" if self.bare else self.weights.spec.template
        template = self.template or jinja or "{{ .Prompt }}"
        lines = [f"FROM /srv/blobs/{self.digest.replace(':', '-')}", f'TEMPLATE """{self.template}"""']
        lines += [f"{word} {name}" for word, name in (("RENDERER", self.renderer), ("PARSER", self.parser)) if name]
        tools = bool(self.parser) or "tools" in template.lower()
        return {
            "modelfile": "\n".join(lines) + "\n",
            "template": "{{ .Prompt }}" if self.renderer else template,
            "parameters": "\n".join(f"{name} {value}" for name, value in self.parameters.items()),
            "details": {"format": "gguf", "family": "llama"},
            "model_info": {
                "general.architecture": "llama",
                "llama.context_length": self.weights.spec.context,
            },
            "capabilities": ["completion", *(["tools"] if tools else [])],
        }


class SimulatedOllama:
    """The server's state. `asked` logs (method, path, body); `context` is the default one in tokens."""

    def __init__(self, library: Library, *, version: str = "0.32.15", context: int = DEFAULT_CONTEXT) -> None:
        self.library = library
        self.version = version
        self.context = context
        self.url = ""
        self.blobs: dict[str, bool] = {}
        self.models: dict[str, Installed] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.loaded: dict[str, tuple[str, int, str]] = {}
        """Digest of the weights -> name that started the runner, context, way."""
        self.stuck: set[str] = set()
        self._number = 0

    def generations(self) -> list[dict[str, Any]]:
        """The bodies of the requests that asked for text, in order."""
        chats = [body for _, path, body in self.asked if path in ("/api/chat", "/v1/chat/completions")]
        return [body for body in chats if body.get("messages")]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        data = await request.content.read()
        if request.path.startswith("/api/blobs/"):
            return self._blob(request.method, request.path.rpartition("/")[2], data)
        try:
            body = json.loads(data) if data else {}
        except ValueError:
            return refusal(request.path.startswith("/api/"), 400, "invalid character in the body")
        self.asked.append((request.method, request.path, body))
        told = self._about_itself(request.method, request.path)
        if told is not None:
            return told
        if request.path in ("/api/chat", "/v1/chat/completions") and request.method == "POST":
            return await self._chat(request.path == "/api/chat", body)
        return self._models(request.method, request.path, body)

    def _blob(self, method: str, digest: str, data: bytes) -> web.Response:
        self.asked.append((method, "/api/blobs", digest))
        if method == "HEAD":
            return web.Response(status=200 if digest in self.blobs else 404)
        if digest != f"sha256:{hashlib.sha256(data).hexdigest()}":
            return refusal(True, 400, "digest mismatch")
        self.blobs[digest] = b"tokenizer.chat_template" not in data
        return web.Response(status=201)

    def _about_itself(self, method: str, path: str) -> web.Response | None:
        if path == "/" and method in ("GET", "HEAD"):
            return web.Response(text="Ollama is running")
        if path == "/api/version":
            return json_answer({"version": self.version})
        if path == "/v1/models" and method == "GET":
            entries = [{"id": name, "object": "model", "created": 1, "owned_by": "library"} for name in self.models]
            return json_answer({"object": "list", "data": entries})
        if path == "/api/tags":
            details = {"format": "gguf", "family": "llama"}
            entries = [{"name": name, "model": name, "size": 1, "details": details} for name in self.models]
            return json_answer({"models": entries})
        if path == "/api/ps":
            running = [(name, context) for name, context, _ in self.loaded.values()]
            return json_answer(
                {"models": [{"name": n, "model": n, "size": 1, "context_length": c} for n, c in running]}
            )
        return None

    def _models(self, method: str, path: str, body: dict[str, Any]) -> web.Response:
        name = _full(body.get("model"))
        if (method, path) == ("POST", "/api/create"):
            return self._create(name, body)
        if (method, path) not in (("POST", "/api/show"), ("DELETE", "/api/delete")):
            return web.Response(status=404, text="404 page not found")
        if name not in self.models:
            return refusal(True, 404, f"model '{body.get('model')}' not found")
        if path == "/api/show":
            return json_answer(self.models[name].shown())
        self._unload(self.models.pop(name).digest)
        return json_answer({})

    def _create(self, name: str, body: dict[str, Any]) -> web.Response:
        (digest,) = body["files"].values()
        weights = self.library(digest)
        if digest not in self.blobs or weights is None:
            return refusal(True, 400, f"the simulated server knows no canary with the blob {digest}")
        parts = {part: body.get(part) or "" for part in ("template", "renderer", "parser")}
        self.models[name] = Installed(
            weights, digest, **parts, parameters=body.get("parameters") or {}, bare=self.blobs[digest]
        )
        return json_answer({"status": "success"})

    def _unload(self, digest: str) -> None:
        self.loaded.pop(digest, None)
        self.stuck.discard(digest)

    async def _chat(self, api: bool, body: dict[str, Any]) -> web.StreamResponse:
        name = _full(body.get("model"))
        model = self.models.get(name)
        if model is None:
            return refusal(api, 404, f"model '{body.get('model')}' not found")
        if api and not body.get("messages"):
            return self._residence(name, model, body)
        if body.get("tools") and "tools" not in model.shown()["capabilities"]:
            return refusal(api, 400, f"registry.ollama.ai/library/{name} does not support tools")
        wrong = _wrong_history(api, body.get("messages") or [])
        if wrong:
            return refusal(api, 400, wrong)
        if model.digest in self.stuck:
            await asyncio.sleep(600)
        try:
            return self._generate(api, name, model, body)
        except NotSimulatedError as what:
            return refusal(api, 501, f"not simulated: {what}")

    def _residence(self, name: str, model: Installed, body: dict[str, Any]) -> web.Response:
        unload = body.get("keep_alive") in (0, "0", "0s")
        if unload:
            self._unload(model.digest)
        else:
            self._load(name, model, None)
        ends = {"done": True, "done_reason": "unload" if unload else "load"}
        return json_answer({"model": body.get("model"), "message": {"role": "assistant", "content": ""}, **ends})

    def _load(self, name: str, model: Installed, asked: object) -> tuple[int, str]:
        """The context in force and the way that the runner was started for."""
        wanted = asked or model.parameters.get("num_ctx") or self.context
        context = min(int(wanted), model.weights.spec.context)
        running = self.loaded.get(model.digest)
        if running is None or running[1] != context:
            self.loaded[model.digest] = running = (name, context, mode_of(model.shown()).way)
        return context, running[2]

    def _generate(self, api: bool, name: str, model: Installed, body: dict[str, Any]) -> web.Response:
        mode = mode_of(model.shown())
        odd = [name for name in _NOT_READ if body.get(name) or body.get("truncate") is False]
        if odd:
            raise NotSimulatedError(", ".join(odd))
        options = body.get("options") or {}
        context, started = self._load(name, model, options.get("num_ctx") if api else None)
        tools = body.get("tools") or []
        native = mode.way == "native"
        if native and tools and started != "native":
            inner = {"code": 500, "message": "tools param requires --jinja flag", "type": "server_error"}
            return refusal(api, 500, json.dumps({"error": inner}, separators=(",", ":")))
        prompt = _fitting(model, body["messages"], tools, context, native=native)
        size = model.weights.size(prompt)
        if size > context and native:
            return refusal(api, 400, _too_large(size, context))
        if size > context:
            # Measured: 0.30.8 fills the context but for one token, 0.32.15 keeps half of it behind the kept first ones.
            size = context - 1 if self._version < _CUTS_TO_HALF else _KEPT + (context - _KEPT) // 2
            prompt = model.weights.tail(prompt, size)
        text = model.weights.write(prompt)
        reading = read(mode, text, tools)
        if reading.error and self._version < _WEDGES_BEFORE:
            self.stuck.add(model.digest)
        self._number += 1
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        reply = Reply(
            str(body["model"]),
            api,
            bool(body.get("stream", api)),
            native,
            self._version >= _ROLE_ONCE,
            usage,
            size,
            max(1, len(text) // 8),
            self._number,
            reading,
        )
        return written(reply)

    @property
    def _version(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.version.split("."))


@contextlib.asynccontextmanager
async def simulated_ollama(
    library: Library, *, version: str = "0.32.15", context: int = DEFAULT_CONTEXT
) -> AsyncIterator[SimulatedOllama]:
    """A running simulated server; its `url` says where."""
    server = SimulatedOllama(library, version=version, context=context)
    async with http_server(server.handle) as url:
        server.url = url
        yield server


def _full(name: object) -> str:
    return f"{name}" if ":" in str(name) else f"{name}:latest"


def _too_large(size: int, context: int) -> str:
    message = f"request ({size} tokens) exceeds the available context size ({context} tokens), try increasing it"
    inner = {"code": 400, "message": message, "type": "exceed_context_size_error"}
    whole = {"error": {**inner, "n_prompt_tokens": size, "n_ctx": context}}
    return json.dumps(whole, separators=(",", ":"))


def _wrong_history(api: bool, messages: list[dict[str, Any]]) -> str:
    """Arguments of past calls are objects on /api/chat and JSON text of an object on /v1."""
    for call in (call for message in messages for call in message.get("tool_calls") or []):
        arguments = call.get("function", {}).get("arguments")
        if api and isinstance(arguments, str):
            return "Value looks like object, but can't find closing '}' symbol"
        if not api and not isinstance(arguments, str):
            where = ".messages.tool_calls.function.arguments of type string"
            return f"json: cannot unmarshal object into Go struct field {where}"
        if not api:
            try:
                json.loads(arguments)
            except ValueError:
                return "invalid tool call arguments"
    return ""


def _fitting(
    model: Installed, messages: list[dict[str, Any]], tools: list[dict[str, Any]], context: int, *, native: bool
) -> str:
    """The prompt, after the oldest messages that are no system's were dropped until it fits; the last one stays."""
    prompt = ""
    for start in range(len(messages)):
        systems = [message for message in messages[:start] if message.get("role") == "system"]
        prompt = _prompt(model, [*systems, *messages[start:]], tools, native=native)
        if model.weights.size(prompt) <= context:
            break
    return prompt


def _prompt(model: Installed, messages: Iterable[dict[str, Any]], tools: list[dict[str, Any]], *, native: bool) -> str:
    adapted, _ = adapt_messages(list(messages))
    if native or not model.template:
        return render_template(model.weights.spec.template, adapted, tools)
    # As `probe/canary/data/ollama/tools-if.txt` says it.
    parts = [message["content"] for message in adapted if message.get("role") == "system"]
    parts += [json.dumps(tool) for tool in tools]
    parts = [f"<|im_start|>system\n{chr(10).join(parts)}<|im_end|>\n"] if parts else []
    for message in adapted:
        if message["role"] == "tool":
            parts.append(f"<|im_start|>user\n<tool_response>\n{message['content']}\n</tool_response><|im_end|>\n")
        elif message["role"] != "system":
            calls = "".join(json.dumps(call["function"]) for call in message.get("tool_calls") or [])
            parts.append(f"<|im_start|>{message['role']}\n{message['content']}{calls}<|im_end|>\n")
    return "".join(parts) + "<|im_start|>assistant\n"
