"""The report on each kind of fault: whose it is, what stands in it, and that nothing recorded becomes Markdown."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from checklists.bug_report import Case, Report, Smaller, report_of
from checklists.bug_report.destination import USERS_OWN, WAITING, agent_profile, client_name
from checklists.bug_report.expectations import expected
from checklists.bug_report.page import LONGEST
from results.taxonomy import CODES
from stacks.serving.registry import serving_stack
from stacks.signatures import rows
from stacks.stack_names import STACKS
from stacks.trackers import TRACKERS, Issue, issues_named, tracker_of
from tests.support.bug_cases import case, left_in_text, manifest, refused, with_outcome
from tests.support.recorded import CALL_TEXT, TOOL, answer, response

GOLDEN = Path(__file__).parent / "golden"
HISTORY = [
    {"role": "user", "content": "Look into /home/maria/plans, mail to maria@mail.example.org"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{bad"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "token=abcdef123456 of maria"},
]


def _server_error(folder: Path) -> Case:
    return refused(folder, f"Failed to parse input at pos 0: {CALL_TEXT}", b"500 Internal Server Error")


def _history(folder: Path) -> Case:
    words = "Failed to parse tool call arguments as JSON"
    return refused(folder, words, b"500 X", messages=HISTORY, stated=manifest(agent="opencode"))


def _smaller(folder: Path) -> Case:
    made = _server_error(folder)
    request = {"model": "m", "messages": [{"role": "user", "content": ""}], "tools": [TOOL]}
    return dataclasses.replace(made, smaller=Smaller(27_000, 140, 21, True, request=request))


MAKERS: dict[str, Callable[[Path], Case]] = {
    "stack": _server_error,
    "client": _history,
    "config": lambda folder: left_in_text(folder, stated=manifest("vllm", "0.32.0")),
    "model": lambda folder: case(folder, answer(content='<tool_call>{"name": "get_wea')),
    "network": lambda folder: case(folder, response(b"<h1>502 Bad Gateway</h1>", b"502 Bad Gateway", b"text/html")),
    "undetermined": lambda folder: case(folder, answer(content="")),
    "nothing": lambda folder: case(folder, answer(content="Hello."), tools=[]),
    "smaller": _smaller,
}
KINDS = {"stack": "bug", "client": "bug", "config": "setting", "smaller": "bug"}


@pytest.mark.parametrize("name", list(MAKERS))
def test_the_text_is_as_it_was(name: str, tmp_path: Path) -> None:
    """`REGOLD=1 pytest ...` writes the files anew."""
    report = report_of(MAKERS[name](tmp_path))
    assert report.destination.kind == KINDS.get(name, name)
    golden = GOLDEN / f"{name}.md"
    if os.environ.get("REGOLD"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(report.markdown, encoding="utf-8")
    assert report.markdown == golden.read_text(encoding="utf-8")
    for private in ("maria", "/opt/llama", "abcdef123456"):
        assert private not in json.dumps(report.facts())


def test_a_report_has_everything_that_the_makers_ask_for(tmp_path: Path) -> None:
    report = report_of(_server_error(tmp_path))
    for said in (
        "b11434", "llama-server -m tiny.gguf --jinja", "3fa48df854ca", "curl -sS", "Failed to parse input", "4096",
        "stacktap: `0.1.0`", "## What was expected", "confidence: high", "seen in the recorded traffic",
    ):  # fmt: skip
        assert said in report.markdown, said
    assert report.facts()["tracker"] == "https://github.com/ggml-org/llama.cpp/issues"
    assert (
        report.title == "llama-server b11434: the server failed while reading the model's output (parser.server_error)"
    )


@pytest.mark.parametrize("at_fault", ["stack", "client", "config", "model", "network", "undetermined"])
def test_every_outcome_gets_a_text_for_every_party(at_fault: str, shown: Case) -> None:
    decide = "wire: send it without tools" if at_fault == "undetermined" else None
    for name in CODES:
        layer, code = name.split(".")
        if layer in ("ok", "checker"):
            continue
        fields = {"layer": layer, "code": code, "at_fault": at_fault, "decide_by": decide, "signature": None}
        report = report_of(with_outcome(shown, **fields))
        bug = (at_fault == "stack" and name not in WAITING) or (
            at_fault == "client" and name not in USERS_OWN | WAITING
        )
        assert report.is_bug == bug, name
        assert expected(name, at_fault).endswith(".")
        assert (expected(name, at_fault) in report.markdown) == bug, name
        assert name in report.markdown
        if decide and name not in WAITING:
            assert "without tools" in report.markdown, name


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return _server_error(tmp_path_factory.mktemp("case"))


HOSTILE = (
    "@torvalds #12 a/b#3 <img src=x onerror=y> ![z](http://evil.example) ```\n````\n# big\n</details>\x1b[31m\u202e`x"
)


def test_hostile_text_stays_in_code_wherever_it_stands(tmp_path: Path) -> None:
    body = {"model": HOSTILE, "messages": [{"role": "user", "content": HOSTILE * 900}], "user": HOSTILE}
    tool = {"type": "function", "function": {"name": HOSTILE, "description": HOSTILE, "parameters": {"type": "object"}}}
    made = refused(
        tmp_path,
        f"Failed to parse {HOSTILE} input at pos 0: {CALL_TEXT}",
        b"500 @torvalds",
        stated=manifest("llamacpp", HOSTILE, HOSTILE),
        tools=[TOOL, tool],
        **body,
    )
    for at_fault in ("stack", "client", "config", "undetermined"):
        decide = f"wire: {HOSTILE}" if at_fault == "undetermined" else None
        changed = with_outcome(made, at_fault=at_fault, detail=HOSTILE, remedy=HOSTILE, decide_by=decide)
        changed = dataclasses.replace(changed, run=HOSTILE, attempt="7")
        _inert(report_of(changed))


def _inert(report: Report) -> None:
    text = report.markdown
    assert "\x1b" not in text + report.title
    assert "\u202e" not in text + report.title
    allowed = ("<details>", "</details>", "<!--", "<summary>")

    def walk(tokens: Any) -> None:
        for token in tokens:
            if token.type in ("html_block", "html_inline"):
                assert token.content.startswith(allowed), token.content
                assert "@" not in token.content
            assert token.type not in ("link_open", "image", "heading_open") or token.tag in ("h1", "h2")
            if token.type == "text":
                assert "@" not in token.content, token.content
                assert "evil" not in token.content
                assert "#" not in token.content
            walk(token.children or ())

    walk(MarkdownIt("gfm-like", {"linkify": False}).parse(text))
    assert "@" not in report.title
    assert len(text) <= LONGEST


def test_a_long_request_is_told_in_outline_and_a_long_answer_is_cut(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "word " * 30_000}]
    made = refused(
        tmp_path, f"Failed to parse input at pos 0: {CALL_TEXT} {'tail ' * 20_000}", b"500 X", messages=messages
    )
    text = report_of(made).markdown
    assert len(text) <= LONGEST
    assert "--minimise URL" in text
    assert "messages: 1: user" in text
    assert "characters left out" in text


def test_no_response_and_no_http(tmp_path: Path) -> None:
    silent = with_outcome(case(tmp_path / "a", ended="upstream"), at_fault="stack", decide_by=None)
    assert "No HTTP response came" in report_of(silent).markdown
    noise = with_outcome(case(tmp_path / "b", b"\x00\xffnoise @x", ended="upstream"), at_fault="stack", decide_by=None)
    assert "\\x00" in report_of(noise).markdown


def test_without_a_manifest_everything_is_unknown_with_its_reason(tmp_path: Path) -> None:
    text = report_of(dataclasses.replace(_server_error(tmp_path), manifest=None)).markdown
    assert "Version: unknown (the run's manifest cannot be read)" in text


# ---------------------------------------------------------------------- where to
def test_every_stack_with_a_name_of_its_own_has_a_tracker() -> None:
    assert set(TRACKERS) == set(STACKS) - {"openai"}
    assert tracker_of("llama.cpp") == TRACKERS["llamacpp"]
    assert tracker_of("openai") is tracker_of("") is tracker_of(None) is None
    assert all(tracker.source and serving_stack(name) for name, tracker in TRACKERS.items() if name != "mlx_inprocess")


def test_issues_in_the_sources_of_signatures() -> None:
    assert issues_named("[D] ollama/ollama#11781, #11704; continuedev/continue#9528") == (
        Issue("ollama/ollama", 11781), Issue("ollama/ollama", 11704), Issue("continuedev/continue", 9528),
    )  # fmt: skip
    assert issues_named("`server/routes.go:252`; measured on Ollama 0.32.15; #7") == ()
    named = [issue for row in rows() for issue in issues_named(row.source)]
    assert len(named) > 30
    assert Issue("ollama/ollama", 11781).url == "https://github.com/ollama/ollama/issues/11781"


def test_a_known_issue_is_named_by_address_on_its_own_tracker_and_in_code_elsewhere(tmp_path: Path) -> None:
    (row,) = [row for row in rows() if "ollama/ollama#10920" in row.source]
    stated = manifest("ollama", "0.30.8")
    made = with_outcome(
        refused(tmp_path, "x", b"500 X", stated=stated), at_fault="stack", decide_by=None, signature=row.id
    )
    report = report_of(made)
    assert "https://github.com/ollama/ollama/issues/10920" in report.markdown
    assert "`continuedev/continue number 9528`" in report.markdown
    assert "https://github.com/continuedev/continue/issues/9528" in report.known


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("aider", "aider"), ("Claude Code", "claude-code"), ("claude-cli", "claude-code"), ("codex_cli_rs", "codex"),
        ("opencode", "opencode"), ("QwenCode", "qwen-code"), ("OpenAI", None), ("python-httpx", None), ("", None),
        ("curl", None), ("mini", "mini-swe-agent"),
    ],
)  # fmt: skip
def test_agents_by_what_they_call_themselves(name: str, found: str | None) -> None:
    profile = agent_profile(name)
    assert (profile.name if profile is not None else None) == found


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("bash", "the client"),
        ("/bin/sh", "the client"),
        ("python3.11", "the client"),
        ("", "the client"),
        ("my-agent", "my-agent"),
        ("bashful", "bashful"),
    ],
)
def test_a_shell_is_not_the_one_at_fault(stated: str, said: str) -> None:
    assert client_name(stated) == said
