"""Every capture, blind and sighted, against facts that share no code with the classifier."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from proxy.classify import Classified, RunMemory, judge
from proxy.classify.sighted import sighted
from proxy.exchange_files import FileExchange, captures
from results.outcomes import Outcome, check
from tests.captures.comparator import Fact, fact_of
from tests.support.corpus import capture_files, shared
from tests.support.reading_back import reads_back


@dataclass(frozen=True, slots=True)
class Pair:
    """One capture with its blind verdict, and with fact and sighted verdict where its text is known."""

    where: str
    exchange: FileExchange
    classified: Classified
    fact: Fact | None
    sighted: Outcome | None

    @property
    def blind(self) -> Outcome:
        """The verdict by the wire alone."""
        return self.classified.outcome


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    found: list[Pair] = []
    for name, lines in capture_files():
        if name.startswith("agents-"):
            continue
        records = [json.loads(line) for line in lines]
        server = str(records[0].get("server") or "") if records[0].get("kind") == "meta" else ""
        records = [record for record in records if "response_raw" in record or "response_raw_base64" in record]
        memory = RunMemory()
        for exchange, record in zip(captures(lines), records, strict=True):
            classified = judge(exchange.view, memory)
            classified.remember(memory)
            fact = fact_of(record, server)
            seen = (
                sighted(classified.facts, classified.outcome, exchange.known_text or "") if fact is not None else None
            )
            found.append(Pair(f"{name}/{exchange.id}", exchange, classified, fact, seen))
    assert len(found) > 1000
    return found


def test_the_whole_corpus_is_there() -> None:
    folder = shared()
    if folder is None or not (folder / "captures").is_dir():
        pytest.skip("no shared captures (set STACKTAP_SHARED): only the carried selection was tested")
    assert len(list((folder / "captures").glob("*.jsonl"))) > 50


def _fits(name: str, allowed: set[str]) -> bool:
    return any(name == each or (each.endswith(".*") and name.startswith(each[:-1])) for each in allowed)


def test_sighted_equals_the_fact(pairs: list[Pair]) -> None:
    wrong = [
        (pair.where, pair.sighted.name, pair.sighted.delivery, pair.fact)
        for pair in pairs
        if pair.fact is not None
        and pair.sighted is not None
        and not (_fits(pair.sighted.name, pair.fact.outcomes) and pair.sighted.delivery in pair.fact.deliveries)
    ]
    assert not wrong, (len(wrong), wrong[:5])


def test_blind_never_blames_the_model_for_a_lost_call(pairs: list[Pair]) -> None:
    wronged = [
        (pair.where, pair.blind.name)
        for pair in pairs
        if pair.fact is not None and pair.fact.lost and pair.blind.layer == "model"
    ]
    assert not wronged, wronged[:5]


_ALSO_TRUE = {"protocol.choice_ignored", "truncation.output_budget"}
"""What may be said of an answer that came as written: a required call was not enforced, or a limit was met."""


def test_blind_finds_no_fault_in_a_faithful_answer(pairs: list[Pair]) -> None:
    wronged = [
        (pair.where, pair.blind.name, pair.blind.at_fault)
        for pair in pairs
        if pair.fact is not None
        and pair.fact.faithful
        and pair.blind.layer != "ok"
        and pair.blind.name not in _ALSO_TRUE
    ]
    assert not wronged, wronged[:5]


def test_a_constrained_call_is_not_praised_as_the_models_own(pairs: list[Pair]) -> None:
    praised = [
        pair.where
        for pair in pairs
        if pair.fact is not None
        and pair.fact.deliveries == {"constrained"}
        and pair.blind.name == "ok.native_call"
        and ("engine.constrained" not in pair.blind.flags or pair.blind.wrote == "valid_call")
        and pair.fact.why != "one call, as asked"
    ]
    assert not praised, praised[:5]


def test_blind_leaves_the_fault_open_only_with_a_way_to_decide(pairs: list[Pair]) -> None:
    for pair in pairs:
        check(pair.blind)
        if pair.sighted is not None:
            check(pair.sighted)


def test_evidence_reads_back_from_the_raw_bytes(pairs: list[Pair]) -> None:
    by_attempt: dict[str, dict[int, FileExchange]] = {}
    for pair in pairs:
        by_attempt.setdefault(pair.where.partition("/")[0], {})[pair.exchange.view.attempt] = pair.exchange
    for pair in pairs:
        group = by_attempt[pair.where.partition("/")[0]]
        for cited in pair.blind.evidence:
            exchange = group[cited.attempt]
            raw = exchange.request_raw if cited.direction == "request" else exchange.response_raw
            assert reads_back(cited, raw), (pair.where, cited)


def test_every_exchange_of_a_real_agent_that_finished_is_ok() -> None:
    seen = 0
    for name, lines in capture_files():
        if name.startswith("agents-"):
            for exchange in captures(lines):
                seen += 1
                assert judge(exchange.view).outcome.layer == "ok", (name, exchange.id)
    if not seen:
        pytest.skip("no recorded agents in the carried selection")


def test_figures(pairs: list[Pair], record_property: Callable[[str, object], None]) -> None:
    known = [pair for pair in pairs if pair.fact is not None]
    blind = Counter(pair.blind.undetermined for pair in known)
    record_property("exchanges", len(pairs))
    record_property("known", len(known))
    record_property("undetermined", blind[True])
    assert len(known) > 800
