"""What only several exchanges of a walk show: ids that come again, streams held back, questions asked again. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from probe.pairing.gateway.side_plan import compare_in_run
from probe.pairing.records import Finding
from probe.pairing.verdict.case import Case
from probe.pairing.verdict.delivered import of_difference, usual_outcome
from probe.pairing.verdict.walk import Asked, Walk


def across(case: Case, walk: Walk) -> list[Finding]:
    """What only several exchanges show of the server: ids used again, prompts that shrink, streams held back."""
    return [*_in_run(case, walk), *_held_back(case, walk)]


def _in_run(case: Case, walk: Walk) -> Iterator[Finding]:
    """Ids that came for two calls, and prompts that shrink while the conversation grows."""
    by_attempt = {asked.attempt: asked for asked in walk.task}
    for difference in compare_in_run([asked.exchange for asked in walk.task]):
        asked = by_attempt.get(difference.attempt)
        if asked is not None:
            yield of_difference(case, asked, difference)


_FEWEST_EVENTS = 8
_FEWEST_STREAMS = 2


def _held_back(case: Case, walk: Walk) -> Iterator[Finding]:
    """Streams whose length was stated before their first event: somebody had all of it by then. (That all came in one
    read shows nothing: a canary's answer is short, and written at once.) Every stream must have come so."""
    streams = [
        asked
        for asked in walk.task
        if asked.facts.assembled.streamed and len(asked.facts.assembled.events) >= _FEWEST_EVENTS and not asked.failed
    ]
    if len(streams) < _FEWEST_STREAMS or not all(_length_stated(asked) for asked in streams):
        return
    first = streams[0]
    events = len(first.facts.assembled.events)
    said = (
        f"streams were held back on their way: {events} events came with their length stated before the first, in each "
        f"of {len(streams)} streams"
    )
    cited = first.facts.cite_head("the length of a stream")
    response = first.exchange.response
    if response is not None:
        cited = msgspec.structs.replace(cited, quote=f"Content-Length: {response.header('content-length')}")
    yield case.finding(first, usual_outcome("transport", "buffered", (cited,), "intact"), said)


def _length_stated(asked: Asked) -> bool:
    response = asked.exchange.response
    return response is not None and response.header("content-length") != ""


def asked_again(case: Case, walk: Walk) -> Iterator[Finding]:
    """The same request sent again, although the first answer was whole."""
    seen: dict[bytes, Asked] = {}
    for asked in walk.task:
        body = asked.facts.view.wire.request_body
        before = seen.setdefault(body, asked)
        if before is asked or before.came != "intact" or before.outcome.layer != "ok" or not body:
            continue
        cited = before.facts.cite_body("the answer that was whole")
        outcome = usual_outcome("task", "no_stop", (cited,))
        yield Finding(
            code=outcome.name,
            at_fault="client",
            who=case.agent,
            said=f"{case.agent} asked the same again (attempt {asked.attempt}), although attempt {before.attempt} "
            "was answered as it should be",
            step=case.step_of(asked),
            attempt=before.attempt,
            direction=cited.direction,
            wire=(cited.start, cited.end),
            quote=cited.quote,
            remedy=f"look into {case.agent}'s own log: why it did not take the answer",
        )
        return


def gist(findings: Sequence[Finding]) -> list[Finding]:
    """One finding for each kind of fault, the first of it, with how often it came."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.who), []).append(finding)
    return [
        group[0] if len(group) == 1 else replace(group[0], said=f"{group[0].said} ({len(group)} times)")
        for group in groups.values()
    ]
