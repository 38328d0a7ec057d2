"""The shared generation loop: text, stop strings, limits, cancellation, the logits hook."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacks.decoding import PROMPT_CHUNK, DecodingLoop, StopScanner
from stacks.engine import ContextExceededError, EngineError, PromptError, Sampling

END = 0


class PieceModel:
    """SIMULATED model: its tokens are the given pieces in order, then the end token."""

    def __init__(self, pieces):
        self.pieces = [b"<end>", *pieces]
        self.vocabulary_size = len(self.pieces) + 1  # one row of padding without a piece
        self.fed = []
        self.next = 0

    prompt_chunk = PROMPT_CHUNK
    kept = 0

    def begin(self, prompt):
        self.fed, self.next = [], 0
        return self.kept

    def feed(self, token_ids):
        self.fed.append(list(token_ids))

    def logits_after(self, token_id):
        self.fed.append([token_id])
        self.next += 1
        logits = np.zeros(self.vocabulary_size, np.float32)
        logits[self.next if self.next < len(self.pieces) else END] = 30
        return logits

    def piece(self, token_id):
        return self.pieces[token_id] if token_id < len(self.pieces) else b""

    def ends_turn(self, token_id):
        return token_id == END

    def peak_memory_bytes(self):
        return None


def run(pieces, *, stop=(), prompt=(1,), context=None, hook=None, **sampling):
    loop = DecodingLoop(PieceModel(pieces), prompt, Sampling(**sampling), stop, hook, context_length=context)
    return list(loop), loop.report()


def cut(data, sizes):
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [p for p in [*pieces, data[at:]] if p]


@given(st.text(max_size=40), st.lists(st.integers(1, 3), max_size=60))
def test_any_cut_of_any_text_comes_out_whole(text, sizes):
    tokens, report = run(cut(text.encode(), sizes))
    assert "".join(t.text for t in tokens) == text == report.text
    assert b"".join(t.piece for t in tokens if not t.end) == text.encode() == report.raw
    assert all("\ufffd" not in t.text or "\ufffd" in text for t in tokens)
    assert (report.finish_reason, report.end_token) == ("stop", "<end>")
    assert [t.end for t in tokens] == [False] * (len(tokens) - 1) + [True]


@given(st.binary(max_size=30), st.lists(st.integers(1, 3), max_size=40))
def test_invalid_bytes_are_replaced_in_text_and_kept_in_raw(data, sizes):
    tokens, report = run(cut(data, sizes))
    assert report.raw == data
    assert "".join(t.text for t in tokens) == data.decode("utf-8", "replace")


STOPS = st.lists(st.text("ab", min_size=1, max_size=3), max_size=3)


@given(st.text("ab", max_size=20), st.lists(st.integers(1, 3), max_size=20), STOPS)
def test_text_ends_at_the_first_stop_string(text, sizes, stop):
    tokens, report = run(cut(text.encode(), sizes), stop=stop)
    delivered = "".join(t.text for t in tokens)
    assert delivered == report.text
    if not any(s in text for s in stop):
        assert (delivered, report.finish_reason) == (text, "stop")
        return
    assert report.finish_reason == "stop_string"
    assert not any(s in delivered for s in stop)
    assert text.startswith(delivered)
    assert any(text[len(delivered) :].startswith(s) for s in stop)


def test_text_that_may_become_a_stop_string_is_held_back():
    scanner = StopScanner(["STOP"])
    assert scanner.push("go ST") == "go "
    assert scanner.push("ART") == "START"
    assert scanner.push(" STO") == " "
    assert scanner.flush() == "STO"
    assert scanner.hit is None
    assert scanner.push("xSTOPy") == "x"
    assert scanner.hit == "STOP"
    assert scanner.push("more") == ""


def test_max_tokens_gives_length_and_delivers_what_was_held():
    tokens, report = run([b"S", b"T", b"O", b"P"], stop=["STOP"], max_tokens=3)
    assert [t.text for t in tokens] == ["", "", "STO"]
    assert (report.finish_reason, report.text, report.token_ids) == ("length", "STO", (1, 2, 3))


def test_half_a_character_at_the_limit_becomes_a_replacement():
    _, report = run([b"a", b"\xe2\x98", b"\x80"], max_tokens=2)
    assert (report.text, report.raw) == ("a\ufffd", b"a\xe2\x98")


def test_a_stop_string_in_the_last_token_counts():
    _, report = run([b"a", b"STOP"], stop=["STOP"], max_tokens=2)
    assert (report.finish_reason, report.text) == ("stop_string", "a")


def test_full_context_is_told_apart_from_max_tokens():
    _, report = run([b"a"] * 9, prompt=(1, 1, 1), context=8)
    assert (report.finish_reason, len(report.token_ids)) == ("context", 5)
    assert report.sampling.max_tokens == 5
    _, report = run([b"a"] * 9, prompt=(1, 1, 1), context=8, max_tokens=5)
    assert report.finish_reason == "length"
    _, report = run([b"a"] * 9, prompt=(1, 1, 1), context=8, max_tokens=6)
    assert report.finish_reason == "context"


def test_prompts_that_cannot_be_evaluated_are_refused_before_anything_runs():
    with pytest.raises(ContextExceededError, match="the prompt has 8 tokens and the context holds 8"):
        run([b"a"], prompt=(1,) * 8, context=8)
    with pytest.raises(PromptError, match="empty"):
        run([b"a"], prompt=())
    with pytest.raises(PromptError, match="token id 9 is outside"):
        run([b"a"], prompt=(1, 9))
    with pytest.raises(PromptError, match="token id -1 is outside"):
        run([b"a"], prompt=(-1,))


def test_a_long_prompt_is_fed_in_pieces_and_all_of_it():
    prompt = [i % 2 for i in range(PROMPT_CHUNK * 2 + 10)]
    loop = DecodingLoop(model := PieceModel([b"a"]), prompt, Sampling())
    assert model.fed == []
    next(loop)
    assert [i for piece in model.fed for i in piece] == prompt
    assert len(model.fed[0]) == PROMPT_CHUNK
    assert len(model.fed[-1]) == 1


def test_cancel_between_prompt_pieces_and_between_tokens():
    class CancelsItself(PieceModel):
        def feed(self, token_ids):
            super().feed(token_ids)
            loop.cancel()

    loop = DecodingLoop(model := CancelsItself([b"a"]), [1] * (PROMPT_CHUNK * 3), Sampling())
    assert list(loop) == []
    assert len(model.fed) == 1
    assert loop.report().finish_reason == "cancelled"
    assert loop.report().prompt_seconds > 0
    loop = DecodingLoop(PieceModel([b"a"] * 5), [1], Sampling())
    next(loop)
    loop.cancel()
    assert list(loop) == []
    assert (loop.report().finish_reason, loop.report().raw) == ("cancelled", b"a")


def test_an_abandoned_generation_reads_running_and_then_cancelled():
    loop = DecodingLoop(PieceModel([b"a"] * 5), [1], Sampling())
    next(loop)
    assert loop.report().finish_reason == "running"
    loop._tokens.close()
    assert loop.report().finish_reason == "cancelled"


def test_the_hook_sees_all_tokens_and_decides():
    seen = []

    def forbid(token_ids, logits):
        seen.append(list(token_ids))
        logits[2] = -np.inf
        return logits

    tokens, report = run([b"a", b"b", b"c"], hook=forbid, prompt=(3, 1))
    assert seen[0] == [3, 1]
    assert seen[1] == [3, 1, 1]
    assert 2 not in report.token_ids
    assert tokens[1].logprob == pytest.approx(-np.log(4), abs=1e-6)


def test_a_hook_that_breaks_the_logits_is_an_error():
    with pytest.raises(EngineError, match="returned shape"):
        run([b"a"], hook=lambda ids, logits: logits[:2])
    with pytest.raises(EngineError, match="unusable"):
        run([b"a"], hook=lambda ids, logits: np.full_like(logits, -np.inf))


def test_a_failing_model_leaves_a_report():
    class Fails(PieceModel):
        def logits_after(self, token_id):
            if self.next == 2:
                raise RuntimeError("device lost")
            return super().logits_after(token_id)

    loop = DecodingLoop(Fails([b"a", b"b", b"c"]), [1], Sampling())
    with pytest.raises(RuntimeError, match="device lost"):
        list(loop)
    assert (loop.report().finish_reason, loop.report().raw) == ("error", b"ab")


def test_a_token_without_a_piece_is_counted():
    class Padding(PieceModel):
        def logits_after(self, token_id):
            logits = super().logits_after(token_id)
            if self.next == 1:
                logits[:] = 0
                logits[-1] = 5
            return logits

    loop = DecodingLoop(Padding([b"a", b"b"]), [1], Sampling())
    assert [t.text for t in loop] == ["", "b", ""]
    assert len(loop.report().token_ids) == 3


def test_what_is_kept_of_a_prompt_is_not_read_again():
    model = PieceModel([b"a"])
    model.prompt_chunk, model.kept = 4, 8
    prompt = [i % 2 for i in range(15)]
    loop = DecodingLoop(model, prompt, Sampling())
    next(loop)
    assert model.fed == [prompt[8:12], prompt[12:14], [prompt[14]]]
    assert loop.report().kept_prompt_tokens == 8
    assert loop.report().prompt_token_ids == tuple(prompt)
