"""The harness notices: each hostile text, put into a page that trusts it, is found out."""

from __future__ import annotations

import html
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from jinja2 import Environment
from markdown_it import MarkdownIt

from tests.browser.watch import only
from tests.support.injection import PAYLOADS


def _styled(text: str) -> str:
    return f"<style>p {{ color: {text} }}</style><p>x</p><div style='color:{html.escape(text)}'>x</div>"


def markdown(text: str) -> str:
    """As a renderer shows it that lets HTML through."""
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


TRUSTING: dict[str, Callable[[str], str]] = {
    "html": lambda text: f"<p>{text}</p>",
    "attribute": lambda text: f"<p title=\"{text}\">x</p><p title='{text}'>y</p>",
    "script": lambda text: (
        f"<script>var a = \"{text}\";</script><script>var b = '{text}';</script><script>var c = `{text}`;</script>"
    ),
    "url": lambda text: f'<a id=go href="{html.escape(text)}">go</a>',
    "style": _styled,
    "comment": lambda text: f"<!-- {text} --><p>x</p>",
    "expression": lambda text: html.escape(Environment(autoescape=True).from_string(text).render()),
    "markdown": lambda text: markdown(f"```\n{text}\n```\n\n`{text}`\n\n{text}"),
}
_INERT = {"erb", "percent", "replacement", "dollar", "md-link", "md-link-entity", "md-autolink", "md-reference"}
"""Other engines than those at hand, or less careful renderers, are needed for these to do harm."""


@pytest.mark.parametrize("harm", TRUSTING)
def test_a_page_that_trusts_it_is_found_out(open_page: Callable, tmp_path: Path, harm: str) -> None:
    page_file = tmp_path / "page.html"
    page_file.write_text("<title>t</title>")
    first, watch = open_page(page_file.as_uri(), only(page_file.as_uri()))
    payloads = [each for each in PAYLOADS if each.harm == harm and each.name not in _INERT]
    unnoticed = []
    for payload in payloads:
        shown = TRUSTING[harm](payload.text)
        page_file.write_text(f"<!doctype html><meta charset=utf-8><title>t</title>{shown}", "utf-8", "replace")
        watch.forget()
        page = first.context.new_page()
        page.goto(page_file.as_uri())
        if harm == "url":
            page.locator("#go").click()
        page.wait_for_timeout(20)
        if not watch.problems(page):
            unnoticed.append(payload.name)
        page.close()
    assert len(payloads) > 1
    assert not unnoticed


def test_a_page_that_shows_all_as_text_is_clean(open_page: Callable, tmp_path: Path) -> None:
    page_file = tmp_path / "page.html"
    shown = "".join(
        f'<pre title="{html.escape(repr(payload.text))}">{html.escape(repr(payload.text))}</pre>'
        for payload in PAYLOADS
        if payload.harm != "terminal"
    )
    data = json.dumps([repr(payload.text) for payload in PAYLOADS]).replace("<", "\\u003c")
    page_file.write_text(
        f"<!doctype html><meta charset=utf-8><title>t</title>{shown}<script type=application/json>{data}</script>",
        "utf-8",
    )
    page, watch = open_page(page_file.as_uri(), only(page_file.as_uri()))
    assert not watch.problems(page)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("<script>alert(1)</script>", "ran: dialog"),
        ("<script>console.error('x')</script>", "console error"),
        ("<script>nothing()</script>", "exception"),
        ("<script>open('about:blank')</script>", "ran: window"),
        ("<script>fetch('//canary.invalid/')</script>", "asked for"),
        ("<script>new WebSocket('ws://canary.invalid/')</script>", "asked for"),
        ("<script>document.title = 'stacktap-canary'</script>", "title"),
        ("<p>a\u202eb</p>", "raw character U+202E"),
        ("<div><template shadowrootmode=open><stacktap-canary></stacktap-canary></template></div>", "element"),
        ("<p onclick=x()>a</p>", "handler"),
        (
            "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\"><script>1</script>",
            "blocked: script-src",
        ),
        (
            "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\"><img src=//canary.invalid/x>",
            "blocked: img-src",
        ),
    ],
)
def test_each_kind_of_harm_is_told(open_page: Callable, tmp_path: Path, body: str, told: str) -> None:
    page_file = tmp_path / "page.html"
    page_file.write_text(f"<!doctype html><meta charset=utf-8><title>t</title>{body}", "utf-8")
    page, watch = open_page(page_file.as_uri(), only(page_file.as_uri()))
    problems = watch.problems(page)
    until = time.monotonic() + 10
    while not any(told in problem for problem in problems) and time.monotonic() < until:
        page.wait_for_timeout(50)
        problems = watch.problems(page)
    assert any(told in problem for problem in problems), problems
