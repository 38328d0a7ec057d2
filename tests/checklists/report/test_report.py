"""Reports of runs in every state: their three forms agree, nothing in a recording becomes markup, and none fails."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from checklists.facts import gather
from checklists.facts.records import Report
from checklists.report.compose import PARTS, document
from checklists.report.html import html, policy
from checklists.report.markdown import code, escaped, fenced, markdown
from checklists.report.schema import SCHEMA_FILE, schema, written
from checklists.report.writing import ReportError, decoded, encoded, rendered, without_homes
from results.manifest import UpstreamFacts, known, new_manifest, write_manifest
from tests.support.journalled import Raw
from tests.support.reported import CALL, EMPTY, REFUSED, SERVICE, TEXT, answer, refusal, request, run_of

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></mark></code><svg/onload=alert(1)>",
    "[x](javascript:alert(1)) ![y](http://127.0.0.1/z)",
    "```\n# heading\n```",
    "`a` ``b`` | c | d",
    "{{ 7*7 }} {% raw %}",
    "\x1b[2J\x1b]0;t\x07 \u202eevil\u2066 \u200b",
    "http://example.com www.example.com <a@example.com>",
    "- list\n1. list\n> quote\n---\n| a | b |",
    "\ud800".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
)


class _Page(HTMLParser):
    """Elements of a page, with their attributes, and that each is closed."""

    VOID = frozenset({"meta", "br", "hr", "rect", "line", "circle", "path"})

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))
        if name not in self.VOID:
            self.open.append(name)

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name


def page_of(text: str) -> _Page:
    page = _Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


def broken(folder: Path) -> Path:
    run_of(folder, [CALL, TEXT], manifest=False)
    with (folder / "wire.jsonl").open("ab") as journal:
        journal.write(b'{not json}\n{"event":"request","attempt":9')
    return folder


def several_servers(folder: Path) -> Path:
    run_of(folder, [CALL, REFUSED])
    servers = [UpstreamFacts(name, f"http://{name}", {"stack": known("vllm", "t")}) for name in ("up", "b", "c")]
    write_manifest(folder, new_manifest("run-2", upstreams=servers))
    return folder


STATES: dict[str, Callable[[Path], Path]] = {
    "mixed": lambda at: run_of(at, [CALL, TEXT, REFUSED, EMPTY, SERVICE, Raw(request(), b"", "refused")]),
    "refused": lambda at: run_of(at, [REFUSED] * 12),
    "clean": lambda at: run_of(at, [CALL, CALL]),
    "empty": lambda at: run_of(at, []),
    "service": lambda at: run_of(at, [SERVICE]),
    "prose": lambda at: run_of(at, [Raw(request(tools=[]), answer("Hello."))]),
    "damaged": broken,
    "several": several_servers,
    "not http": lambda at: run_of(at, [Raw(request(), b"SSH-2.0-x\r\n")]),
}


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_its_three_forms(state: str, tmp_path: Path) -> None:
    folder = STATES[state](tmp_path)
    report = gather([folder])
    forms = rendered(report)
    jsonschema.validate(json.loads(forms.json), schema())
    assert rendered(gather([folder])) == forms
    assert rendered(decoded(forms.json)) == forms
    page = page_of(forms.html.decode())
    names = [name for name, _ in page.elements]
    assert names.count("h1") == 1
    levels = [int(name[1]) for name in names if re.fullmatch(r"h[1-6]", name)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for _, attributes in page.elements if "href" in attributes]
    assert all(str(link)[1:] in ids for link in links)
    for form in (forms.md, forms.html, forms.json):
        assert str(tmp_path).encode() not in form


def test_the_page_loads_and_runs_nothing(tmp_path: Path) -> None:
    page = page_of(html(document(gather([run_of(tmp_path, [CALL, REFUSED, TEXT])]))))
    names = {name for name, _ in page.elements}
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "form", "input", "base", "use", "image"}
    metas = [attributes for name, attributes in page.elements if name == "meta"]
    assert {"http-equiv": "Content-Security-Policy", "content": policy()} in metas
    assert policy().startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy()
    for name, attributes in page.elements:
        assert not [key for key in attributes if key.startswith("on") or key in ("style", "src")], name
        if name == "svg":
            assert attributes["role"] == "img"
            assert attributes.get("aria-label") or attributes.get("aria-labelledby")
        if name == "th":
            assert attributes["scope"] in ("col", "row")


def hostile_run(folder: Path, words: str) -> Path:
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": ' + json.dumps(words) + "}}\n</tool_call>"
    exchanges = [
        Raw(request(model=words), answer(call)),
        Raw(request(), refusal(words)),
        Raw(request(), refusal(f"tools param requires --jinja flag {words}")),
        Raw(request(tools=[{"type": "function", "function": {"name": words, "parameters": {}}}]), answer(words)),
        Raw(request(target="/v1/" + words.encode("ascii", "replace").hex()), answer(call={"city": words})),
    ]
    run_of(folder, exchanges)
    facts = {name: known(words, words) for name in ("stack", "version", "model", "launch_flags")}
    made = new_manifest(words, command=(words, words), upstreams=[UpstreamFacts("up", words, facts)])
    write_manifest(folder, made)
    said = {"headline": words, "remedy": words, "explained": [words], "decide_by": words, "outcome": {"layer": words}}
    (folder / "diagnosis.json").write_bytes(json.dumps(said).encode())
    return folder


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_nothing_in_a_recording_becomes_markup(number: int, tmp_path: Path) -> None:
    """The same run with harmless words in the same places has the same elements."""
    words = HOSTILE[number]
    hostile = rendered(gather([hostile_run(tmp_path / "a", words)]))
    page = page_of(hostile.html.decode())
    allowed = {"html", "head", "meta", "title", "style", "body", "a", "header", "p", "b", "nav", "details", "summary"}
    allowed |= {
        "ul",
        "ol",
        "li",
        "main",
        "section",
        "h1",
        "h2",
        "h3",
        "dl",
        "dt",
        "dd",
        "div",
        "span",
        "strong",
        "code",
    }
    allowed |= {"abbr", "svg", "desc", "rect", "line", "text", "figure", "figcaption", "pre", "mark", "i", "table"}
    allowed |= {"caption", "thead", "tbody", "tr", "th", "td", "footer", "br"}
    assert {name for name, _ in page.elements} <= allowed
    for form in (hostile.html, hostile.md):
        shown = form.decode()
        for char in "\x1b\x07\u202e\u2066\u200b":
            assert char not in shown
    plain = re.sub(r"(`{3,})text\n.*?\n\1\n", "", hostile.md.decode(), flags=re.DOTALL)
    plain = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", plain)
    assert not re.search(r"<(?!br>)", plain)
    assert not re.search(r"(?<!\\)\]\(", plain)
    assert "://" not in plain
    assert not re.search(r"^# heading", hostile.md.decode().replace("```", ""), re.MULTILINE) or "```" in words


def test_markdown_that_text_cannot_leave() -> None:
    assert escaped("a *b* [c](d) <e> `f` | ~g~ _h_") == r"a \*b\* \[c\](d) &lt;e&gt; \`f\` \| \~g\~ \_h\_"
    assert code("a `` b") == "```a `` b```"
    assert code("`") == "`` ` ``"
    assert code("a|b", in_table=True) == r"`a\|b`"
    assert fenced("x\n````\ny")[0] == "`````text"
    assert escaped("two\nlines\x1b") == r"two lines\\x1b"


def test_rows_of_tables_have_their_columns(tmp_path: Path) -> None:
    text = markdown(document(gather([hostile_run(tmp_path, "a | b")])))
    tables: list[list[int]] = [[]]
    for line in text.splitlines():
        if line.startswith("| "):
            tables[-1].append(len(re.findall(r"(?<!\\)\|", line)))
        elif tables[-1]:
            tables.append([])
    assert len(tables) > 4
    assert all(len(set(table)) <= 1 for table in tables)


def test_strong_words_end_before_their_space(tmp_path: Path) -> None:
    text = markdown(document(gather([run_of(tmp_path, [REFUSED])])))
    assert "\n**Change:** start llama-server with `--jinja`" in text


def test_every_footnote_is_there_once(tmp_path: Path) -> None:
    text = markdown(document(gather([run_of(tmp_path, [CALL, REFUSED, TEXT, EMPTY])])))
    used = re.findall(r"(?<!^)\[\^(\d+)\]", text, re.MULTILINE)
    given = re.findall(r"^\[\^(\d+)\]: ", text, re.MULTILINE)
    assert used
    assert sorted(used, key=int) == given


def test_numbers_drawn_are_in_the_json(tmp_path: Path) -> None:
    forms = rendered(gather([STATES["mixed"](tmp_path)]))
    found = json.loads(forms.json)
    numbers: set[float] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers.update((value, round(100 * value, 1)))

    walk(found)
    drawn = re.findall(r"<(?:text|desc|title)[^>]*>([^<]*)<", forms.html.decode())
    for text in drawn[1:]:
        for number in re.findall(r"\d+(?:\.\d+)?", text):
            assert float(number) in numbers, text


def test_the_order_of_parts_is_the_readers() -> None:
    names = [part.__name__ for part in PARTS]
    assert names == ["rates", "fault", "way", "checklist", "cells", "faults", "figures", "questions"]


def test_several_runs_stand_side_by_side(tmp_path: Path) -> None:
    folders = [run_of(tmp_path / "a", [REFUSED] * 3), run_of(tmp_path / "b", [CALL] * 3)]
    forms = rendered(gather(folders))
    text = forms.md.decode()
    assert "# 1 of 2 runs show faults." in text
    assert re.search(
        r"^\| of the answers that arrived\[\^\d+\] \| rej\[\^\d+\] \| 100.0 % .*\(3/3\) \|$", text, re.MULTILINE
    )
    page = page_of(forms.html.decode())
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert rendered(decoded(forms.json)) == forms


def test_the_schema_is_the_committed_one() -> None:
    assert SCHEMA_FILE.read_bytes() == written()


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"{", "no report"),
        (b"[]", "no report"),
        (b'{"schema": 99}', "update stacktap"),
        (b'{"schema": 1, "stacktap": "1", "runs": []}', "holds no run"),
        (b'{"schema": 1}', "no report"),
        (b"[" * 100_000, "no report"),
    ],
)
def test_what_is_no_report_is_refused(raw: bytes, said: str) -> None:
    with pytest.raises(ReportError, match=said):
        decoded(raw)


def test_a_report_reads_back_as_it_was(tmp_path: Path) -> None:
    report = gather([STATES["mixed"](tmp_path)])
    assert encoded(decoded(encoded(report))) == encoded(report)


def test_half_a_surrogate_is_written_as_its_escape(tmp_path: Path) -> None:
    report = gather([run_of(tmp_path, [CALL])])
    odd = msgspec.structs.replace(report.runs[0], command="a\ud800b")
    forms = rendered(Report(report.schema, report.stacktap, (odd,)))
    assert "a\\ud800b" in json.loads(forms.json)["runs"][0]["command"]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("/root/models/x.gguf", "~/models/x.gguf"),
        ("-m /home/eve/m --log /Users/adam/l", "-m ~/m --log ~/l"),
        ("in /home/eve", "in ~"),
        ("--path=/root/x", "--path=~/x"),
        ("http://127.0.0.1/root/x", "http://127.0.0.1/root/x"),
        ("/rooted/x /srv/home/x", "/rooted/x /srv/home/x"),
    ],
)
def test_home_folders_are_not_told(said: str, shown: str) -> None:
    assert without_homes({"a": [said], "evidence": [said]}) == {"a": [shown], "evidence": [said]}


@pytest.mark.slow
def test_a_long_run_has_no_longer_report(tmp_path: Path) -> None:
    """Whatever differs between exchanges, what is kept of them has its bounds."""

    def odd(number: int) -> Raw:
        words = "".join(chr(97 + (number >> shift) % 16) for shift in (0, 4, 8))
        return Raw(request(model=words, stop=[words]), refusal(f"{words} " * 300), tags=(("task", words),))

    sizes = []
    for count in (350, 700):
        forms = rendered(gather([run_of(tmp_path / str(count), [odd(number) for number in range(count)])]))
        sizes.append(sum(map(len, forms.files().values())))
    assert sizes[1] < 1.05 * sizes[0]
    assert sizes[1] < 600_000
