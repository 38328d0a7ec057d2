"""Markup that untrusted text cannot leave: whatever the text, the parsed page has the same elements."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checklists.markup import tag, visible


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.text = ""

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append((name, tuple(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


HOSTILE = st.one_of(
    st.text(),
    st.sampled_from(
        [
            "</p><script>alert(1)</script>",
            '"><img src=x onerror=alert(1)>',
            "<!-- -->",
            "]]><svg/onload=alert(1)>",
            "&lt;script&gt;",
            "{{ 7*7 }}{% raw %}",
            "\x1b[2J\x00\u202e",
        ]
    ),
)


@given(HOSTILE, HOSTILE)
def test_text_stays_text_and_values_stay_values(text: str, value: str) -> None:
    reader = _Reader()
    reader.feed(str(tag("p", text, tag("b", text), title=value)))
    reader.close()
    assert [name for name, _ in reader.seen] == ["p", "b"]
    assert reader.seen[0][1] == (("title", visible(value)),)
    assert reader.text == visible(text) * 2


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    shown = visible(text)
    assert not any(char < " " and char not in "\n\t" for char in shown)
    assert not any("\u202a" <= char <= "\u202e" or "\u2066" <= char <= "\u2069" for char in shown)
    assert not any(char in "\u200b\u200e\u200f\ufeff\u2028\u2029\u0085\x7f" for char in shown)


@pytest.mark.parametrize("name", ["onclick", "style", "src", "srcdoc", "action", "formaction", "a b"])
def test_attributes_that_run_or_load_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no attribute"):
        tag("p", **{name: "x"})


@pytest.mark.parametrize("target", ["javascript:alert(1)", "http://example.com", "//example.com", "data:text/html,x"])
def test_links_stay_on_the_page(target: str) -> None:
    with pytest.raises(ValueError, match="links"):
        tag("a", "x", href=target)


def test_no_script_and_no_broken_style_sheet() -> None:
    with pytest.raises(ValueError, match="no element"):
        tag("script", "alert(1)")
    with pytest.raises(ValueError, match="style sheet"):
        str(tag("style", "</style><script>"))
