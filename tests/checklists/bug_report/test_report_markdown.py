"""Whatever was recorded, nothing of it becomes Markdown: checked with a CommonMark parser."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from checklists.bug_report.markdown import code, cut, fenced, longest_run, prose, visible

HOSTILE = [
    "@torvalds fixes #12",
    "owner/repo#12 GH-7 closes deadbeef1234567",
    "<script>alert(1)</script> <img src=x onerror=alert(1)>",
    "![x](http://evil.example/x.png) [y](javascript:alert(1))",
    "```\n# title\n````\n@all",
    "~~~\n</details>",
    "`a`x`@torvalds",
    "``@a` `b`` c`@d",
    "http://evil.example www.evil.example evil.example.com",
    "*bold* _em_ ~~gone~~ | a | b |",
    "\x1b[31mred\x1b[0m \u202egnp.exe \u200b\u2066 \ud800",
    "1. one\n- two\n> three\n# four\n---",
    "&lt;b&gt; &#64;name \\@name",
    ":smile: $x^2$ ${7*7} {{7*7}}",
]
ANY = st.text("`@#a <>[]()*_~|\\!:/.1-&;h\n\t\u202e", max_size=60) | st.text(max_size=60) | st.sampled_from(HOSTILE)
PARSER = MarkdownIt("gfm-like", {"linkify": False})


def outside_code(text: str) -> tuple[str, set[str]]:
    """The text outside of code, and the kinds of tokens."""
    said, kinds = "", set()

    def walk(tokens: list[Token]) -> None:
        nonlocal said
        for token in tokens:
            kinds.add(token.type)
            if token.type == "text":
                said += token.content + " "
            if token.children:
                walk(token.children)

    walk(PARSER.parse(text))
    return said, kinds


@given(ANY)
def test_a_sentence_stays_a_sentence(text: str) -> None:
    said, kinds = outside_code(f"Seen: {prose(text)}.")
    assert kinds <= {"paragraph_open", "inline", "text", "paragraph_close", "code_inline", "softbreak"}
    assert not re.search(r"[@#<>\[\]*_~|\\]|://|www\.|\w\.com|[0-9a-f]{7}|(?i:gh-\d)", said), said


@given(ANY)
def test_a_fence_holds_everything(text: str) -> None:
    blocks = PARSER.parse(f"before\n\n{fenced(text)}\n\nafter")
    assert [token.type for token in blocks] == [
        "paragraph_open", "inline", "paragraph_close", "fence", "paragraph_open", "inline", "paragraph_close",
    ]  # fmt: skip
    # A parser reads \r, NUL and the like in its own way; they are written out before.
    assert blocks[3].content.rstrip("\n") == visible(text).rstrip("\n")


@given(ANY)
def test_a_code_span_holds_everything(text: str) -> None:
    said, kinds = outside_code(f"x {code(text)} y")
    assert said.split() == ["x", "y"]
    assert kinds == {"paragraph_open", "inline", "text", "paragraph_close", "code_inline"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the server was started with `--jinja`.", "the server was started with `--jinja`."),
        ("1 call (get_weather) is left", "1 call (`get_weather`) is left"),
        ("plain words, all of them; 50 %", "plain words, all of them; 50 %"),
        ("", ""),
        ("ask @name", "ask `@name`"),
    ],
)
def test_plain_words_stay_readable(text: str, shown: str) -> None:
    assert prose(text) == shown


def test_what_cannot_be_seen_is_written_out() -> None:
    assert visible("a\x1b[1mb\u202ec\r\nd\ud800\x00") == "a\\x1b[1mb\\u202ec\nd\\ud800\\x00"
    assert longest_run("a``b````c") == 4


def test_a_long_text_is_cut_in_the_middle_with_a_note() -> None:
    shown, note = cut("a" * 500 + "b" * 500, 100)
    assert shown.startswith("a" * 75 + "\n[... 900 characters left out ...]\n")
    assert shown.endswith("b" * 25)
    assert "900 of 1,000" in note
    assert cut("short", 100) == ("short", "")
