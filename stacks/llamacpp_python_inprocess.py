"""llama.cpp in this process through llama-cpp-python: an engine over its low-level calls, logits on the outside.

Seen with llama-cpp-python 0.3.36. Its own chat handlers are not used: its template rendering escapes HTML characters in
JSON and its detokenizer drops tokens of more than 32 bytes. Its ``verbose=False`` is not used either: it points the
process's own standard streams at nothing while a model loads, and a child started meanwhile would inherit that.
"""

# ruff: noqa: PLC0415 - an engine's library is imported only when that engine is loaded
from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np

from stacks.chat_template import render_adapted, render_template, template_hash
from stacks.decoding import PROMPT_CHUNK, DecodingLoop
from stacks.engine import (
    CompiledGrammar,
    EngineError,
    EngineIdentity,
    EngineMissingError,
    Generation,
    GrammarState,
    Logits,
    LogitsHook,
    Message,
    Rendered,
    RenderError,
    Sampling,
    Tool,
    how_to_get,
)
from stacks.gbnf_sampler import compile_gbnf
from stacks.grammars.language import Grammar
from stacks.launching.recipe import LaunchError, require_gguf_file
from stacks.memory import LARGEST_DEFAULT_CONTEXT, check_memory
from stacks.model_files import model_digest

ENGINE = "llamacpp_python_inprocess"


class _LlamaModel:
    """The model half that the decoding loop drives."""

    prompt_chunk = PROMPT_CHUNK

    def __init__(self, llama: Any) -> None:
        import llama_cpp

        self._library = llama_cpp
        self._open: Any = llama
        self._vocabulary_pointer = llama_cpp.llama_model_get_vocab(llama.model)
        self.vocabulary_size = int(llama.n_vocab())

    @property
    def _llama(self) -> Any:
        # Its memory is freed by close(): a call into the library after that would end the process.
        if self._open is None:
            raise EngineError("the engine is closed")
        return self._open

    @property
    def _vocabulary(self) -> Any:
        assert self._llama is not None
        return self._vocabulary_pointer

    def begin(self, prompt: Sequence[int]) -> int:
        self._llama.reset()
        self._library.llama_memory_clear(self._library.llama_get_memory(self._llama.ctx), True)
        return 0

    def feed(self, token_ids: Sequence[int]) -> None:
        self._llama.eval(list(token_ids))

    def logits_after(self, token_id: int) -> Logits:
        self._llama.eval([token_id])
        pointer = self._library.llama_get_logits_ith(self._llama.ctx, -1)
        # The library reuses this memory at its next call.
        return np.ctypeslib.as_array(pointer, shape=(self.vocabulary_size,)).astype(np.float32, copy=True)

    def constrained_logits_after(self, token_id: int, state: GrammarState) -> Logits:
        masked: Logits = state.masked(self.logits_after(token_id))
        return masked

    def compiled(self, grammar: Grammar) -> CompiledGrammar:
        return compile_gbnf(self._library, self._vocabulary, self.vocabulary_size, grammar, self.piece)

    def piece(self, token_id: int) -> bytes:
        vocabulary = self._vocabulary
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            written = int(self._library.llama_token_to_piece(vocabulary, token_id, buffer, size, 0, True))
            if written >= 0:
                return buffer.raw[:written]
            size = -written  # a negative answer is the size that is needed

    def ends_turn(self, token_id: int) -> bool:
        return bool(self._library.llama_vocab_is_eog(self._vocabulary, token_id))

    def peak_memory_bytes(self) -> int | None:
        return _peak_resident_bytes()

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._llama.tokenize(text.encode(), add_bos=False, special=True))

    def free(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


class LlamaCppPythonEngine:
    """A GGUF file run by llama-cpp-python; satisfies ``stacks.engine.Engine``."""

    def __init__(self, model_path: Path, context_length: int | None = None) -> None:
        """Load the model; ``context_length`` is in tokens, None takes what the file declares, up to 32,768.

        Raises :class:`EngineMissingError` without the extra, :class:`EngineError` for a model that does not load or
        does not fit into memory.
        """
        try:
            import llama_cpp
        except ImportError as error:
            raise EngineMissingError(
                f"llama-cpp-python cannot be imported ({error})\n  -> {how_to_get('llamacpp')}"
            ) from error
        model_path = model_path.expanduser().absolute()
        try:
            require_gguf_file(ENGINE, model_path)
            check_memory(model_path, context_length)
            log = _collect_log(llama_cpp)
            with _quiet_thread():
                wanted = context_length or _default_context(llama_cpp, model_path)
                llama = llama_cpp.Llama(str(model_path), n_ctx=wanted, verbose=True)
        except EngineError:
            raise
        except LaunchError as error:
            raise EngineError(str(error)) from error
        except Exception as error:  # ValueError, RuntimeError, AssertionError: the library has no error type of its own
            said = "".join(f"\n  | {line}" for line in "".join(log).splitlines()[-5:])
            raise EngineError(f"llama.cpp cannot load {model_path}: {type(error).__name__}: {error}{said}") from error
        self._model = _LlamaModel(llama)
        metadata = llama.metadata
        self._template = metadata.get("tokenizer.chat_template")
        self._tool_template = metadata.get("tokenizer.chat_template.tool_use")
        self._bos = self._special(llama.token_bos())
        self._eos = self._special(llama.token_eos())
        self._identity = EngineIdentity(
            engine=ENGINE,
            library_version=f"llama-cpp-python {llama_cpp.__version__}",
            model_path=str(model_path),
            model_digest=model_digest(model_path),
            template_hash=template_hash(self._template),
            context_length=int(llama.n_ctx()),
            kernel_backend="ggml: " + llama_cpp.llama_print_system_info().decode("utf-8", "replace").strip(" |"),
        )

    @property
    def identity(self) -> EngineIdentity:
        """What this engine is and which model it holds."""
        return self._identity

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] | None = None, **template: Any) -> Rendered:
        """Render by the template in the GGUF file (its ``tool_use`` variant when there are tools and it has one)."""
        source = self._tool_template if tools and self._tool_template else self._template
        if not source:
            raise RenderError(f"the model {self._identity.model_path} has no chat template; use /v1/completions")
        variables = {"bos_token": self._bos, "eos_token": self._eos, **template}
        text, adaptations = render_adapted(
            messages, lambda adapted: render_template(source, adapted, list(tools) if tools else None, variables)
        )
        return Rendered(text, self.encode(text), adaptations)

    def _special(self, token_id: int) -> str:
        return self._model.piece(token_id).decode("utf-8", "replace") if token_id >= 0 else ""

    def compile_grammar(self, grammar: Grammar) -> CompiledGrammar:
        """Make a grammar ready as GBNF; see ``stacks.engine.Engine.compile_grammar``."""
        return self._model.compiled(grammar)

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the token ids of ``text``; special tokens written in it are recognised, none is added."""
        return self._model.encode(text)

    def generate(
        self,
        token_ids: Sequence[int],
        sampling: Sampling,
        stop: Sequence[str] = (),
        logits_hook: LogitsHook | None = None,
        constraint: CompiledGrammar | None = None,
    ) -> Generation:
        """Start a generation; see ``stacks.engine.Engine.generate``."""
        context = self._identity.context_length
        return DecodingLoop(
            self._model, token_ids, sampling, stop, logits_hook, context_length=context, constraint=constraint
        )

    def close(self) -> None:
        """Free the model's memory; the engine cannot be used afterwards."""
        self._model.free()


def _default_context(library: Any, model_path: Path) -> int:
    """Return the context to load with: the declared one, bounded. 0 leaves it to llama.cpp where none is declared."""
    vocabulary = library.Llama(str(model_path), vocab_only=True, verbose=True)
    try:
        metadata = vocabulary.metadata
        declared = metadata.get(f"{metadata.get('general.architecture')}.context_length", "0")
        return min(int(declared), LARGEST_DEFAULT_CONTEXT)
    finally:
        vocabulary.close()


_LOG: deque[str] = deque(maxlen=200)
_LOG_CALLBACKS: list[Any] = []  # the library keeps a bare pointer: what it points at must live as long as the process


def _collect_log(library: Any) -> deque[str]:
    """Have llama.cpp log into memory, from now on and for the whole process; return the log, emptied."""
    if not _LOG_CALLBACKS:

        @library.llama_log_callback  # type: ignore[untyped-decorator]
        def keep(level: int, text: bytes, user_data: Any) -> None:
            _LOG.append(text.decode("utf-8", "replace"))

        _LOG_CALLBACKS.append(keep)
        library.llama_log_set(keep, ctypes.c_void_p(0))
    _LOG.clear()
    return _LOG


class _MutedForThread:
    """A stand-in for ``sys.stderr`` that drops what one thread writes and passes on what the others do."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._muted = threading.get_ident()

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() == self._muted else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _quiet_thread() -> Iterator[None]:
    """Drop what this thread prints to ``sys.stderr``: the library's chatter while it loads."""
    before = sys.stderr
    sys.stderr = cast(TextIO, _MutedForThread(before))
    try:
        yield
    finally:
        sys.stderr = before


def _peak_resident_bytes() -> int | None:
    """Return the largest resident size this process has had; it cannot be reset."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
