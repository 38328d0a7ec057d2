"""Requests that repeat earlier ones are searched for secrets only where they are new, and no secret slips through."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.recording.rebuild import Rebuilder
from proxy.recording.redact import Redactor
from proxy.recording.secrets import Secrets
from proxy.tap import RequestStarted
from results.window import RequestWindow, Stored

SECRET = b"Sk9f3c1a7e"
HISTORY = b'{"model":"m","messages":[' + b'{"role":"user","content":"look around"},' * 60
TOOLS = b'],"tools":[' + b'{"type":"function","name":"look"},' * 20 + b"{}]}"


def lines_of(bodies: list[bytes], *, learn_before: int = 0) -> bytes:
    """The journal of requests with these bodies; the secret is learned before the one numbered `learn_before`."""
    redactor = Redactor()
    rebuilder = Rebuilder(redactor, RequestWindow(8, 1 << 20))
    for number, body in enumerate(bodies):
        if number == learn_before:
            redactor.learn(SECRET)
        head = b"POST /v1 HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
        rebuilder.handle(RequestStarted(1, number, "up", (), head, body, b"/v1", True))
    return b"".join(rebuilder.lines)


@given(
    st.lists(st.sampled_from([b"x", b"Sk9f", SECRET, SECRET[:-1], SECRET[1:], b"3c1a7e"]), max_size=4),
    st.sampled_from([HISTORY, HISTORY + SECRET[:4], HISTORY + SECRET]),
    st.sampled_from([TOOLS, SECRET[4:] + TOOLS, SECRET + TOOLS]),
    st.integers(0, 2),
)
def test_no_secret_is_stored_with_what_is_new(
    news: list[bytes], before: bytes, after: bytes, learn_before: int
) -> None:
    bodies = [before + b"??" + after, before + b"".join(news) + after, before + b"".join(news[:2]) + after]
    stored = lines_of(bodies, learn_before=learn_before)
    told = stored.split(b"\n")[learn_before:]
    assert not any(SECRET in line for line in told)


def test_only_what_is_new_is_searched() -> None:
    window = RequestWindow(8, 1 << 20)
    window.add(Stored(1, b"HEAD" + HISTORY + TOOLS, 4, 3))
    body = HISTORY + b"new" + TOOLS
    assert window.news(body, 3) == (len(HISTORY), len(HISTORY) + 3)
    assert window.news(body, 4) == (0, len(body))
    assert window.news(b"other", 3) == (0, 5)
    assert window.news(HISTORY + TOOLS, 3)[0] == len(HISTORY + TOOLS)


def test_search_looks_past_the_edges_of_what_is_new() -> None:
    secrets = Secrets()
    assert not secrets.may_hold_within(SECRET, 0, len(SECRET))
    secrets.learn(SECRET)
    data = b"." * 3000 + SECRET + b"." * 3000
    assert secrets.may_hold_within(data, 3009, 3010)
    assert secrets.may_hold_within(data, 3000, 3001)
    assert secrets.may_hold_within(data, 3005, 3005)
    assert not secrets.may_hold_within(data, 5000, 5010)
