"""report.html in a real browser: it asks for nothing, nothing in it runs, and it can be read anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from checklists.facts import gather
from checklists.report.writing import rendered, write
from tests.browser.axe import violations
from tests.browser.looks import colours, focus_shows, open_folds, seen, too_wide
from tests.browser.test_the_watch_itself import markdown
from tests.browser.watch import only, skeleton
from tests.support.injection import ORDINARY, PAYLOADS, hostile_names, injected_run

pytestmark = pytest.mark.xdist_group("report")
ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "results" / "published" / "example"
SCHEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with a report each: an ordinary run, a hostile one, several beside each other, hostile names."""
    base = tmp_path_factory.mktemp("reports")
    injected_run(base / "ordinary", ORDINARY)
    injected_run(base / "hostile")
    some = PAYLOADS[::12]
    names = [base / name for name in hostile_names()]
    for folder in names:
        injected_run(folder, some)
    runs = {
        "ordinary": [base / "ordinary"],
        "hostile": [base / "hostile"],
        "beside": [base / "ordinary", *names[:2]],
        "named": [names[-1]],
    }
    for name, folders in runs.items():
        (base / f"report-{name}").mkdir()
        write(rendered(gather(folders)), base / f"report-{name}")
    return {name: base / f"report-{name}" for name in runs}


@pytest.fixture(params=["ordinary", "hostile", "beside", "named", "example"])
def report(request: pytest.FixtureRequest, reports: dict[str, Path]) -> Path:
    """Each of the reports, and the committed example."""
    if request.param == "example":
        if not (EXAMPLE / "report.html").is_file():
            pytest.skip(f"no example in {EXAMPLE}")
        return EXAMPLE
    return reports[request.param]


def _of(folder: Path) -> tuple[str, Callable[[str], bool]]:
    address = (folder / "report.html").as_uri()
    return address, only(address)


@SCHEMES
def test_it_loads_nothing_and_nothing_runs(open_page: Callable, report: Path, dark: bool) -> None:
    page, watch = open_page(*_of(report), dark=dark)
    open_folds(page)
    page.mouse.move(300, 300)
    page.keyboard.press("Tab")
    assert not watch.problems(page)


def test_a_hostile_run_makes_no_other_page(open_page: Callable, reports: dict[str, Path]) -> None:
    plain, _ = open_page(*_of(reports["ordinary"]))
    hostile, watch = open_page(*_of(reports["hostile"]))
    more = skeleton(hostile) - skeleton(plain)
    assert more <= {"i"}, "an <i> stands where a long citation is shortened"
    assert not watch.problems(hostile)


def test_the_policy_forbids_scripts_even_if_one_got_in(open_page: Callable, tmp_path: Path, reports: dict) -> None:
    page_file = tmp_path / "report.html"
    text = (reports["ordinary"] / "report.html").read_text("utf-8")
    page_file.write_text(
        text.replace("</main>", "<script>stacktapCanary(1)</script><img src=x onerror=stacktapCanary(2)></main>"),
        "utf-8",
    )
    page, watch = open_page(page_file.as_uri(), only(page_file.as_uri()))
    page.wait_for_timeout(50)
    assert not watch.fired
    assert any("script-src" in error for error in watch.errors)
    assert watch.problems(page)


def test_its_markdown_is_as_harmless(open_page: Callable, tmp_path: Path, report: Path) -> None:
    page_file = tmp_path / "report.html"
    body = markdown((report / "report.md").read_text("utf-8"))
    page_file.write_text(f"<!doctype html><meta charset=utf-8><title>t</title>{body}", "utf-8")
    page, watch = open_page(page_file.as_uri(), only(page_file.as_uri()))
    page.wait_for_timeout(50)
    assert page.locator("h1").count() == 1
    assert page.locator("h2").count() > 2
    assert not watch.problems(page)


@SCHEMES
def test_accessibility(open_page: Callable, report: Path, dark: bool) -> None:
    if report.name == "report-hostile":
        pytest.skip("the same page as the others, of fifty times the size")
    page, _ = open_page(*_of(report), dark=dark)
    open_folds(page)
    assert not violations(page)


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (360, 740)])
def test_the_verdict_is_on_the_first_screen(open_page: Callable, report: Path, width: int, height: int) -> None:
    page, _ = open_page(*_of(report), width=width, height=height)
    assert seen(page, "h1")
    assert page.locator("h1").inner_text().strip()


def test_a_phone_scrolls_one_way_only(open_page: Callable, report: Path) -> None:
    page, _ = open_page(*_of(report), width=360, height=740)
    assert not too_wide(page)
    open_folds(page)
    assert not too_wide(page)


def test_light_and_dark_differ(open_page: Callable, reports: dict[str, Path]) -> None:
    light, _ = open_page(*_of(reports["ordinary"]))
    dark, _ = open_page(*_of(reports["ordinary"]), dark=True)
    assert not set(colours(light)) & set(colours(dark))


def test_it_prints(open_page: Callable, reports: dict[str, Path]) -> None:
    page, watch = open_page(*_of(reports["ordinary"]), width=720, dark=True)
    page.emulate_media(media="print", color_scheme="light")
    assert not too_wide(page)
    cut = page.evaluate(
        "[...document.querySelectorAll('.scroll, pre')].filter(node => node.scrollWidth > node.clientWidth + 1).length"
    )
    assert cut == 0, "what scrolls on a screen is cut off on paper"
    assert page.pdf(format="A4").startswith(b"%PDF")
    assert not watch.problems(page)


def test_links_lead_somewhere_and_the_evidence_is_marked(open_page: Callable, reports: dict[str, Path]) -> None:
    page, _ = open_page(*_of(reports["ordinary"]))
    dead = page.evaluate(
        "[...document.querySelectorAll('a[href]')].map(link => link.getAttribute('href'))"
        ".filter(to => !to.startsWith('#') || !document.getElementById(to.slice(1)))"
    )
    assert not dead
    mark = page.locator("mark").first
    mark.scroll_into_view_if_needed()
    assert mark.inner_text().strip()
    looks = mark.evaluate(
        "node => [getComputedStyle(node).backgroundColor, getComputedStyle(node.parentNode).backgroundColor]"
    )
    assert looks[0] != looks[1]


def test_the_keyboard_gets_everywhere_and_shows_where_it_is(open_page: Callable, reports: dict[str, Path]) -> None:
    page, _ = open_page(*_of(reports["ordinary"]))
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent.trim().slice(0, 40)"))
        assert focus_shows(page), reached[-1]
    assert len(set(reached)) > 4
    assert reached[0].startswith("Skip")


@pytest.fixture(scope="module", autouse=True)
def _pictures(browser: object, reports: dict[str, Path], shots: Path) -> Iterator[None]:
    """Screenshots for people, after the tests."""
    yield
    for name, width, dark in (("report", 1000, False), ("report-dark", 1000, True), ("report-phone", 360, False)):
        source = EXAMPLE if (EXAMPLE / "report.html").is_file() else reports["ordinary"]
        context = browser.new_context(  # type: ignore[attr-defined]
            viewport={"width": width, "height": 700}, color_scheme="dark" if dark else "light"
        )
        page = context.new_page()
        page.goto((source / "report.html").as_uri())
        page.screenshot(path=shots / f"{name}.png")
        context.close()
