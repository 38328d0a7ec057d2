"""The text of a bug report in Markdown, or of the answer why there is none. Pure: the same case gives the same bytes.

Recorded text stands in code, or is made of words that mean nothing in Markdown; see `checklists.bug_report.markdown`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from checklists.bug_report import no_bug, sections
from checklists.bug_report.case import Case
from checklists.bug_report.destination import Destination, destination_of
from checklists.bug_report.known_bugs import known_bugs
from checklists.bug_report.markdown import prose
from checklists.bug_report.sections import Body, shown_body
from results.outcomes import Outcome
from results.taxonomy import info

VERSION = 1
"""Version of the JSON shape."""
LONGEST = 60_000
"""Characters of a whole report: GitHub takes 65,536 in an issue (GitHub's REST API answers a longer body with 422)."""

BEFORE_POSTING = (
    "Read it before you post it. Keys, home folders, user names, hosts and addresses were taken out where they "
    "could be recognised, but the request and the answer may still say what is nobody's business."
)


@dataclass(frozen=True, slots=True)
class Report:
    """`markdown` is the text, `title` the line for the tracker's title field (plain text)."""

    destination: Destination
    title: str
    markdown: str
    outcome: Outcome
    known: tuple[str, ...] = ()
    smaller: dict[str, Any] | None = None
    request: Any = None

    @property
    def is_bug(self) -> bool:
        """Whether there is something to report to somebody."""
        return self.destination.kind == "bug"

    def facts(self) -> dict[str, Any]:
        """As a JSON object."""
        tracker = self.destination.tracker
        return {
            "version": VERSION,
            "kind": self.destination.kind,
            "party": self.destination.party,
            "tracker": tracker.url if tracker is not None else None,
            "outcome": self.outcome.name,
            "at_fault": self.outcome.at_fault,
            "grade": self.outcome.grade,
            "confidence": self.outcome.confidence,
            "title": self.title,
            "known_issues": list(self.known),
            "smaller": self.smaller,
            "request": self.request,
            "before_posting": BEFORE_POSTING if self.is_bug else None,
            "markdown": self.markdown,
        }


def report_of(case: Case) -> Report:
    """The report on a case."""
    _learn(case)
    destination = destination_of(case)
    outcome = case.judged.outcome
    title = title_of(case, destination)
    body = shown_body(case)
    text = _bug(case, destination, title, body) if destination.kind == "bug" else no_bug.page(case, destination, body)
    smaller = None
    if case.smaller is not None:
        smaller = {name: getattr(case.smaller, name) for name in ("before", "after", "requests", "steady", "stopped")}
    known = tuple(issue.url for issue in known_bugs(outcome)) if destination.kind == "bug" else ()
    return Report(destination, title, text, outcome, known, smaller, body.value)


def _learn(case: Case) -> None:
    """Look for people and machines everywhere before the first line is written."""
    hide = case.hide
    for upstream in case.manifest.upstreams if case.manifest is not None else ():
        hide.learn_url(upstream.url)
    flags = case.fact("launch_flags").value
    for word in flags if isinstance(flags, list | tuple) else ():
        hide.learn(str(word))
    for message in (case.exchange.request, case.exchange.response):
        if message is not None:
            hide.learn(message.body.decode("utf-8", "replace"))
    if case.exchange.request is not None:
        hide.learn_url(f"http://{case.exchange.request.header('host')}")


def title_of(case: Case, destination: Destination) -> str:
    """One plain line: who, which version, what happened."""
    outcome = case.judged.outcome
    if destination.kind != "bug":
        return f"No bug report: {info(outcome.name).meaning} ({outcome.name})"
    version = case.server_version if outcome.at_fault == "stack" else ""
    who = " ".join(part for part in (destination.party, version) if part)
    said = "".join(char for char in case.hide.text(who) if char.isprintable() and char not in "`@#<>[]*_|")
    said = f"T{said[1:]}" if said.startswith("the ") else said
    return f"{said[:80]}: {info(outcome.name).meaning} ({outcome.name})"


def _bug(case: Case, destination: Destination, title: str, body: Body) -> str:
    text = ""
    for longest in (body.longest, body.longest // 3, 2_000, 0):
        text = "\n\n".join(_parts(case, destination, title, body, longest)) + "\n"
        if len(text) <= LONGEST:
            break
    return text


def _parts(case: Case, destination: Destination, title: str, body: Body, longest: int) -> Iterator[str]:
    outcome = case.judged.outcome
    yield from _head(destination)
    yield f"# {prose(title)}"
    yield from sections.what_happened(case)
    yield from sections.expected(outcome)
    yield from sections.why(case, destination)
    yield from sections.steps(case, body, longest)
    yield from sections.answer(case, longest)
    yield from sections.environment(case, destination)
    yield from sections.known(outcome, destination)
    yield from sections.remedy(case)
    yield sections.footer(case)


def _head(destination: Destination) -> Iterator[str]:
    where = "I do not know where its bugs are reported: look on the project's page."
    if destination.tracker is not None:
        where = f"Its bugs are reported at {destination.tracker.url}"
    yield f"<!-- {BEFORE_POSTING}\n{where}\nRemove this comment. -->"
