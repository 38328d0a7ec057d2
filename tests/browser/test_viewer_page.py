"""The viewer in a real browser, used as a person does: look through runs, filter, open, find the evidence, go back."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from results.reader import RunReader
from tests.browser.axe import violations
from tests.browser.looks import colours, focus_shows, seen, too_wide
from tests.browser.viewing import Viewer, part, runs_of, viewer, wait_found, wait_judged
from tests.browser.watch import Watch, same_server, skeleton
from tests.support.injection import ORDINARY, PAYLOADS, Payload, hostile_names, injected_run

ORDINARY_RUN, HOSTILE_RUN, EVERY_RUN = "20260101-000000-aaaa", "20260102-000000-bbbb", "20260103-000000-cccc"
EXAMPLE_RUN = "20260104-000000-dddd"
EXAMPLE = Path(__file__).resolve().parents[2] / "results" / "published" / "example"
TABS = ("turn", "wire", "prompt", "beside", "record")
EVERYTHING = Payload("everything", "html", " ".join(each.text for each in PAYLOADS if len(each.text) < 2000))
"""All hostile texts in one."""
SCHEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """A viewer over an ordinary run, hostile ones, and runs of hostile names."""
    home = tmp_path_factory.mktemp("viewer")
    runs = runs_of(home)
    injected_run(runs / ORDINARY_RUN, ORDINARY)
    injected_run(runs / HOSTILE_RUN, PAYLOADS[::3])
    injected_run(runs / EVERY_RUN, (EVERYTHING,))
    for name in hostile_names():
        injected_run(runs / name, ORDINARY)
    if (EXAMPLE / "wire.jsonl").is_file():
        (runs / EXAMPLE_RUN).mkdir()
        for name in ("wire.jsonl", "run.json"):
            shutil.copy(EXAMPLE / name, runs / EXAMPLE_RUN)
    with viewer(home) as running:
        yield running


@pytest.fixture
def go(open_page: Callable, shown: Viewer) -> Callable:
    """Open an address of the viewer in a profile of its own."""

    def opened(address: str, **more: object) -> tuple:
        page, watch = open_page(address, same_server(shown.base), **more)
        part(page, "main").locator("h1, h2").first.wait_for()
        return page, watch

    return opened


def _exchange(page, shown: Viewer, run: str, number: int, tab: str) -> None:
    page.goto(shown.link(run, x=str(number), tab=tab))
    page.wait_for_function(
        "([title, tab]) => document.querySelector('[data-testid=detail-title]')?.textContent === title"
        " && document.querySelector(`[data-testid=panel-${tab}]`)?.childElementCount",
        arg=[f"Exchange {number}", tab],
    )


# What recordings may not do.


def test_nothing_of_a_hostile_run_runs_or_makes_another_page(go: Callable, shown: Viewer) -> None:
    page, watch = go(shown.link(EVERY_RUN))
    wait_judged(page)
    assert not watch.problems(page)
    made: dict[str, set[str]] = {ORDINARY_RUN: set(), EVERY_RUN: set()}
    for run, into in made.items():
        page.goto(shown.link(run))
        page.get_by_role("heading", name=run).wait_for()
        wait_judged(page)
        into.update(skeleton(page))
        for number in range(1, 25):
            for tab in TABS:
                _exchange(page, shown, run, number, tab)
                into.update(skeleton(page))
                if run == EVERY_RUN:
                    assert not watch.problems(page), (number, tab)
    more = made[EVERY_RUN] - made[ORDINARY_RUN]
    assert more <= {"details[open]"}, "long texts are folded, short ones are not"


def test_lists_of_hostile_texts(go: Callable, shown: Viewer) -> None:
    page, watch = go(shown.link(HOSTILE_RUN))
    wait_judged(page)
    assert not watch.problems(page)
    for _ in range(12):
        part(page, "list").evaluate("node => node.scrollBy(0, node.clientHeight * 2)")
        page.wait_for_timeout(60)
        assert not watch.problems(page)
    for facet in part(page, "facet").all()[-6:]:
        facet.hover()
    assert not watch.problems(page)


@pytest.mark.parametrize("number", range(len(hostile_names())))
def test_a_run_of_a_hostile_name(go: Callable, shown: Viewer, number: int) -> None:
    name = hostile_names()[number]
    page, watch = go(shown.link())
    link = page.locator(f"[data-testid=run]:nth-child({_place(page, name)}) [data-testid=run-link]")
    link.click()
    part(page, "row").first.wait_for()
    assert not watch.problems(page)
    assert page.locator("h1").inner_text()


def _place(page, name: str) -> int:
    part(page, "run").first.wait_for()
    names = page.locator("[data-testid=run-link]").evaluate_all("links => links.map(link => link.hash)")
    wanted = [at for at, each in enumerate(names, 1) if decoded(each) == name]
    assert wanted, names
    return wanted[0]


def decoded(address: str) -> str:
    """The run's name within an address."""
    from urllib.parse import unquote

    return unquote(address.removeprefix("#/runs/"))


def test_hostile_filters_and_addresses(go: Callable, shown: Viewer) -> None:
    page, watch = go(shown.link(ORDINARY_RUN))
    wait_judged(page)
    for payload in PAYLOADS[::4]:
        text = re.sub(r"\s+", " ", payload.text)[:300]
        part(page, "filter").fill(text.encode("utf-8", "replace").decode())
        page.wait_for_timeout(30)
    page.wait_for_timeout(300)
    for payload in PAYLOADS[::9]:
        text = payload.text[:300].encode("utf-8", "replace").decode()
        page.goto(shown.link(ORDINARY_RUN, x=text, tab=text, at=text, filter=text, order=text))
        page.wait_for_timeout(60)
        page.goto(shown.link(text or "x"))
        page.wait_for_timeout(60)
    # An address that leads nowhere is answered by 400 or 404, which the browser notes on its console.
    wrong = [one for one in watch.problems(page) if not re.search(r"the server responded with a status of 40[04]", one)]
    assert not wrong


def test_without_the_key_nothing_is_shown(open_page: Callable, shown: Viewer) -> None:
    for address in (f"{shown.base}#/runs/{ORDINARY_RUN}", f"{shown.base}#/runs/{ORDINARY_RUN}?key=wrong"):
        page, watch = open_page(address, same_server(shown.base))
        part(page, "problem").wait_for()
        assert "ordinary" not in page.content()
        assert not watch.fired


# What a person does.


def test_the_list_of_runs(go: Callable, shown: Viewer) -> None:
    page, watch = go(shown.link())
    part(page, "run").first.wait_for()
    assert part(page, "run").count() == len(list(shown.runs.iterdir()))
    part(page, "runs-filter").fill("aaaa")
    page.wait_for_function("() => document.querySelectorAll('[data-testid=run]').length === 1")
    part(page, "run-link").click()
    wait_judged(page)
    assert page.locator("h1").inner_text() == ORDINARY_RUN
    page.go_back()
    part(page, "run").first.wait_for()
    assert not watch.problems(page)


def test_filtering(go: Callable, shown: Viewer) -> None:
    page, watch = go(shown.link(ORDINARY_RUN))
    wait_judged(page)
    wait_found(page, "24 exchanges")
    part(page, "filter").fill("layer:parser")
    page.wait_for_function(
        "() => { const rows = [...document.querySelectorAll('[data-testid=row] .c-outcome')];"
        " return rows.length && rows.every(row => row.textContent.startsWith('parser.')) }"
    )
    found = int(part(page, "found").inner_text().split()[0])
    assert 0 < found < 24
    assert "filter=layer" in page.url
    part(page, "filter").fill("no such word anywhere")
    part(page, "empty").wait_for()
    part(page, "filter").fill("")
    wait_found(page, "24 exchanges")
    facet = page.locator("[data-testid=facet][data-facet='layer:parser']")
    facet.click()
    wait_found(page, f"{found} exchange")
    assert page.locator("[data-testid=facet][aria-pressed=true]").count() == 1
    part(page, "order").select_option("last")
    first = page.locator("[data-testid=row]").first
    page.wait_for_function(
        "() => { const keys = [...document.querySelectorAll('[data-testid=row]')].map(row => Number(row.dataset.key));"
        " return keys.length > 1 && keys.every((key, at) => !at || key < keys[at - 1]) }"
    )
    first.click()
    part(page, "detail-title").wait_for()
    assert not watch.problems(page)


def test_from_a_row_to_the_evidence_in_the_bytes(go: Callable, shown: Viewer) -> None:
    page, watch = go(shown.link(ORDINARY_RUN, filter="outcome:parser.left_as_text"))
    wait_judged(page)
    part(page, "row").first.click()
    part(page, "verdict").wait_for()
    number = int(part(page, "detail-title").inner_text().split()[-1])
    link = part(page, "evidence-link").first
    direction, start, end = re.fullmatch(r"(\w+) bytes (\d+)–(\d+)", link.inner_text()).groups()
    link.click()
    mark = part(page, "evidence-now").first
    mark.wait_for()
    assert seen(page, "[data-testid=evidence-now]")
    exchange = RunReader(shown.runs / ORDINARY_RUN).read(number)
    cited = exchange.wire(direction)[int(start) : int(end)].decode()
    assert "".join(part(page, "evidence-now").all_inner_texts()).split() == cited.split()
    background = mark.evaluate("node => getComputedStyle(node).backgroundColor")
    assert background not in ("rgba(0, 0, 0, 0)", colours(page)[0])
    assert not watch.problems(page)


def test_the_keyboard_alone(go: Callable, shown: Viewer) -> None:
    page, watch = go(shown.link(ORDINARY_RUN))
    wait_judged(page)
    page.keyboard.press("j")
    part(page, "detail-title").wait_for()
    assert part(page, "detail-title").inner_text() == "Exchange 1"
    for _ in range(4):
        page.keyboard.press("j")
    page.get_by_text("Exchange 5", exact=True).wait_for()
    page.keyboard.press("k")
    page.get_by_text("Exchange 4", exact=True).wait_for()
    page.keyboard.press("G")
    page.get_by_text("Exchange 24", exact=True).wait_for()
    page.keyboard.press("g")
    page.get_by_text("Exchange 1", exact=True).wait_for()
    for number, tab in enumerate(TABS, 1):
        page.keyboard.press(str(number))
        part(page, f"panel-{tab}").wait_for()
    page.keyboard.press("n")
    part(page, "evidence-now").first.wait_for()
    page.keyboard.press("Escape")
    part(page, "detail").wait_for(state="hidden")
    page.keyboard.press("/")
    page.keyboard.type("status:500")
    page.wait_for_function("() => location.hash.includes('status')")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    part(page, "help").wait_for()
    page.keyboard.press("Escape")
    part(page, "help").wait_for(state="hidden")
    assert not watch.problems(page)


def test_tab_shows_where_it_is(go: Callable, shown: Viewer) -> None:
    page, _ = go(shown.link(ORDINARY_RUN, x="5"))
    wait_judged(page)
    page.mouse.click(5, 5)
    for _ in range(14):
        page.keyboard.press("Tab")
        assert focus_shows(page), page.evaluate("document.activeElement.outerHTML.slice(0, 200)")


def _view(page) -> dict:
    return {
        "address": page.url,
        "title": part(page, "detail-title").inner_text(),
        "filter": part(page, "filter").input_value(),
        "order": part(page, "order").input_value(),
        "found": part(page, "found").inner_text(),
        "tab": page.locator("[role=tab][aria-selected=true]").inner_text(),
        "panel": page.locator("[role=tabpanel]").inner_text(),
        "mark": part(page, "evidence-now").first.inner_text(),
        "current": page.locator("[data-testid=row][aria-selected=true]").get_attribute("data-key"),
    }


def test_a_link_leads_to_the_same_view(go: Callable, shown: Viewer) -> None:
    page, watch = go(shown.link(ORDINARY_RUN, filter="layer:parser", order="last"))
    wait_judged(page)
    part(page, "row").nth(1).click()
    part(page, "verdict").wait_for()
    page.keyboard.press("n")
    part(page, "evidence-now").first.wait_for()
    before = _view(page)
    assert "key=" not in page.url
    page.reload()
    part(page, "evidence-now").first.wait_for()
    page.locator("[data-testid=row][aria-selected=true]").wait_for()
    assert _view(page) == before
    elsewhere, _ = go(f"{page.url}&key={shown.key}")
    part(elsewhere, "evidence-now").first.wait_for()
    elsewhere.locator("[data-testid=row][aria-selected=true]").wait_for()
    assert _view(elsewhere) == before
    assert not watch.problems(page)


# How it looks.

STATES = {
    "runs": {},
    "models": {"page": "models"},
    "start": {"page": "start"},
    "run": {"run": ORDINARY_RUN},
    "nothing found": {"run": ORDINARY_RUN, "filter": "nosuchword"},
    "no such run": {"run": "nowhere"},
    **{tab: {"run": ORDINARY_RUN, "x": "5", "tab": tab} for tab in TABS},
    "evidence": {"run": ORDINARY_RUN, "x": "5", "tab": "wire", "at": "response:100-140"},
}


def _opened(go: Callable, shown: Viewer, state: str, **more: object) -> tuple:
    page, watch = go(shown.link(**STATES[state]), **more)
    if STATES[state].get("run") == ORDINARY_RUN:
        if state == "nothing found":
            part(page, "empty").wait_for()
        else:
            wait_judged(page)
        if "x" in STATES[state]:
            part(page, f"panel-{STATES[state]['tab']}").wait_for()
    page.wait_for_timeout(100)
    return page, watch


@SCHEMES
@pytest.mark.parametrize("state", STATES)
def test_accessibility(go: Callable, shown: Viewer, state: str, dark: bool) -> None:
    page, _ = _opened(go, shown, state, dark=dark)
    assert not violations(page)


@SCHEMES
def test_accessibility_of_the_help(go: Callable, shown: Viewer, dark: bool) -> None:
    page, _ = go(shown.link(ORDINARY_RUN), dark=dark)
    part(page, "help-button").click()
    part(page, "help").wait_for()
    assert not violations(page)


@pytest.mark.parametrize("state", STATES)
def test_a_phone_scrolls_one_way_only(go: Callable, shown: Viewer, state: str) -> None:
    page, watch = _opened(go, shown, state, width=360, height=740)
    assert not too_wide(page)
    if state == "run":
        part(page, "row").nth(4).click()
        part(page, "verdict").wait_for()
        assert seen(page, "[data-testid=detail-title]")
        part(page, "close").click()
        part(page, "row").nth(4).wait_for()
        assert seen(page, "[data-testid=row][data-key='5']")
        assert not watch.problems(page)


def test_a_hostile_run_on_a_phone(go: Callable, shown: Viewer) -> None:
    page, _ = go(shown.link(EVERY_RUN, x="5"), width=360, height=740)
    part(page, "verdict").wait_for()
    page.wait_for_timeout(100)
    assert not too_wide(page)


@pytest.mark.parametrize("width", [800, 1000, 1100, 1280, 1920])
def test_outcomes_are_in_sight_beside_an_open_exchange(go: Callable, shown: Viewer, width: int) -> None:
    page, _ = go(shown.link(ORDINARY_RUN, x="5"), width=width)
    wait_judged(page)
    part(page, "verdict").wait_for()
    cut = page.evaluate(
        """() => {
          const side = document.querySelector('[data-testid=list]').getBoundingClientRect();
          return [...document.querySelectorAll('[data-testid=row] .c-outcome > *')]
            .map(badge => badge.getBoundingClientRect()).filter(box => box.right > side.right + 1).length;
        }"""
    )
    assert cut == 0


def test_light_and_dark_differ(go: Callable, shown: Viewer) -> None:
    light, _ = go(shown.link(ORDINARY_RUN))
    dark, _ = go(shown.link(ORDINARY_RUN), dark=True)
    assert not set(colours(light)) & set(colours(dark))


def test_the_list_stays_in_sight_whatever_a_manifest_says(go: Callable, shown: Viewer) -> None:
    for width, height in ((1280, 900), (360, 740)):
        page, _ = go(shown.link(EVERY_RUN), width=width, height=height)
        part(page, "row").first.wait_for()
        assert seen(page, "[data-testid=row]")


@pytest.fixture(scope="module", autouse=True)
def _pictures(browser: object, shown: Viewer, shots: Path) -> Iterator[None]:
    """Screenshots for people, after the tests."""
    yield
    best = EXAMPLE_RUN if (shown.runs / EXAMPLE_RUN).is_dir() else ORDINARY_RUN
    for name, width, dark, query, step in (
        ("viewer", 1100, False, {"run": best, "filter": "layer:parser"}, "j"),
        ("viewer-evidence", 1100, True, {"run": best, "filter": "layer:parser"}, "jn"),
        ("viewer-phone", 360, False, {"run": best}, ""),
        ("viewer-hostile", 1100, False, {"run": EVERY_RUN, "x": "5"}, ""),
    ):
        context = browser.new_context(  # type: ignore[attr-defined]
            viewport={"width": width, "height": 700}, color_scheme="dark" if dark else "light"
        )
        Watch(context, same_server(shown.base))
        page = context.new_page()
        page.goto(shown.link(**query))
        wait_judged(page)
        for key in step:
            page.keyboard.press(key)
            part(page, "verdict").wait_for()
        page.wait_for_timeout(500)
        page.screenshot(path=shots / f"{name}.png")
        context.close()
