"""A run full of hostile texts, printed by every command that prints runs: nothing reaches the terminal that acts."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from proxy.exchange_view import classify_run
from proxy.explain import ANSI, explain
from proxy.served import servers_of
from results.reader import RunReader
from stacktap.cli import cli, main
from tests.support.injection import PAYLOADS, hostile_names, injected_run

CHOSEN = tuple(
    each
    for each in PAYLOADS
    if each.harm == "terminal" or each.name in ("script", "null", "controls", "broken-utf8", "jinja", "percent")
)
_ACTS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_OWN_MARKS = re.compile(r"\x1b\[(?:0|1|2|7|27)m")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: one full of hostile texts, and copies of it under hostile names."""
    folder = tmp_path_factory.mktemp("data") / "stacktap" / "runs"
    injected_run(folder / "20260101-000000-aaaa", CHOSEN)
    for name in hostile_names():
        (folder / name).mkdir()
        for file in (folder / "20260101-000000-aaaa").iterdir():
            shutil.copy(file, folder / name)
    return folder


@pytest.fixture(autouse=True)
def _home(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(base.parent.parent))


def acting(text: str) -> list[str]:
    """Lines of a text that would do something to a terminal."""
    return [line for line in text.split("\n") if _ACTS.search(line)]


class _Terminal(io.BytesIO):
    """Keeps what is written, and says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def _said(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What the program writes to a terminal, output and errors, its own marks taken out."""
    written = _Terminal()
    with monkeypatch.context() as patch:
        streams = [io.TextIOWrapper(written, encoding="utf-8", write_through=True) for _ in range(2)]
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        patch.setattr(sys, "argv", ["stacktap", *arguments])
        with pytest.raises(SystemExit):
            main()
        sys.stdout.flush()
        sys.stderr.flush()
        text = written.getvalue().decode()
    assert "Traceback" not in text
    return _OWN_MARKS.sub("", text)


def _piped(*arguments: str) -> str:
    """What the program writes into a pipe."""
    return CliRunner().invoke(cli, arguments).output


def test_the_check_itself_would_notice() -> None:
    for payload in PAYLOADS:
        if payload.harm == "terminal" and payload.name != "rich-markup":
            assert acting(payload.text), payload.name


RUN = "20260101-000000-aaaa"
WHOLE = [("show", RUN), ("classify", RUN), ("runs",), ("show", RUN, "--json"), ("classify", RUN, "--json")]


@pytest.mark.parametrize("arguments", WHOLE, ids=" ".join)
def test_a_whole_run(monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    said = _said(monkeypatch, *arguments)
    assert len(said) > 300
    assert not acting(said), acting(said)[:3]
    if "--json" not in arguments:  # JSON in a pipe is for programs.
        assert not acting(_piped(*arguments)), acting(_piped(*arguments))[:3]


@pytest.mark.parametrize("name", hostile_names(), ids=range(len(hostile_names())))
@pytest.mark.parametrize("command", ["show", "classify", "explain", "replay"])
def test_a_run_of_a_hostile_name(base: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: str) -> None:
    said = _said(monkeypatch, command, str(base / name), "99999")
    assert said
    assert not acting(said), acting(said)[:3]


def test_each_exchange_shown(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = [exchange.attempt for exchange in RunReader(base / RUN)]
    assert len(attempts) > 300
    for attempt in attempts[::11]:
        for more in ((), ("--raw",), ("--json",), ("--json", "--raw")):
            said = _said(monkeypatch, "show", RUN, str(attempt), *more)
            assert not acting(said), (attempt, more, acting(said)[:3])
            if "--json" in more:
                assert json.loads(said)["attempt"] == attempt
            else:
                assert not acting(_piped("show", RUN, str(attempt), *more)), (attempt, more)


def test_each_verdict_explained(base: Path) -> None:
    wires = {
        (exchange.attempt, direction): exchange.wire(direction)
        for exchange in RunReader(base / RUN)
        for direction in ("request", "response")
    }
    for judged in classify_run(RunReader(base / RUN), servers_of(base / RUN)):
        said = _OWN_MARKS.sub("", explain(judged, lambda attempt, direction: wires.get((attempt, direction)), ANSI))
        assert not acting(said), (judged.attempt, acting(said)[:3])


@pytest.mark.parametrize("form", ["curl", "pytest", "jsonl"])
def test_exports_to_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: str) -> None:
    monkeypatch.chdir(tmp_path)
    said = _said(monkeypatch, "export", RUN, "--to", form, "--attempt", "5", "--attempt", "30", "--out", "-")
    assert said
    assert not acting(said), acting(said)[:3]


def test_bug_reports(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = [exchange.attempt for exchange in RunReader(base / RUN)]
    for attempt in attempts[::23]:
        for more in ((), ("--json",)):
            said = _said(monkeypatch, "issue", RUN, str(attempt), *more)
            assert len(said) > 100
            assert not acting(said), (attempt, more, acting(said)[:3])
        # In a pipe it goes into a tracker's form or a file, which people look at, too.
        assert not acting(_piped("issue", RUN, str(attempt))), attempt


_MOVES = re.compile(r"\x1b\[(?:[0-9;]*[mABGHJK]|\?25[lh]|\?1049[lh])|\r")


def test_top(monkeypatch: pytest.MonkeyPatch) -> None:
    said = _said(monkeypatch, "top", RUN)
    assert "\\u001b" not in said, "its own moves of the cursor reach the terminal"
    assert "\x1b]" not in said
    assert "\x1b[3J" not in said
    assert not acting(_MOVES.sub("", said)), acting(_MOVES.sub("", said))[:3]
    assert not acting(_piped("top", RUN))


def test_an_exchange_explained_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    said = _said(monkeypatch, "explain", RUN, "5")
    assert "bytes" in said
    assert not acting(said)
