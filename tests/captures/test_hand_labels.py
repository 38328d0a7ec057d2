"""Two hundred exchanges labelled by reading them, against the comparator and the sighted classifier."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proxy.classify import RunMemory, judge
from proxy.classify.sighted import sighted
from proxy.exchange_files import captures
from results.outcomes import Outcome
from tests.captures.choose_labelled import choose
from tests.captures.comparator import Fact, fact_of
from tests.support.captured import shared_folder
from tests.support.corpus import carried

LABELS = Path(__file__).with_name("hand_labels.json")
WORDS = {
    "intact", "left_as_text", "dropped", "altered", "repaired", "in_reasoning", "refused", "cut", "phantom",
    "constrained", "unknown",
}  # fmt: skip

_SILENCE = "closed without a byte: the label says the text was lost, the others say it cannot be told; both are fair"
_SERVICE = (
    "a count or a rendering generates nothing: ok.service is the classifier's word, ok.no_call_needed the label's"
)

COMPARATOR_DISAGREES = {
    "mlx-canary/NOTOOLS-noargs": _SILENCE,
}
CLASSIFIER_DISAGREES = {
    "mlx-canary/NOTOOLS-noargs": _SILENCE,
    "vllm-hermes-canary/vllm1_canary_i_messages_count": _SERVICE,
    "vllm-hermes-canary/vllm1_canary_i_render_notools": _SERVICE,
}
"""Known disagreements with the reason. One that is settled must leave the table: the tests fail on a stale entry."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """One labelled exchange, with the comparator's fact and the verdict on it (sighted where its text is judged)."""

    label: dict[str, Any]
    record: dict[str, Any]
    fact: Fact | None
    verdict: Outcome

    @property
    def outcomes(self) -> set[str]:
        """The names that are right."""
        return {self.label["outcome"], *self.label.get("also_outcomes", ())}

    @property
    def deliveries(self) -> set[str]:
        """The delivery words that are right. An error in place of a written text may be called lost or refused."""
        words = {self.label["delivery"], *self.label.get("also_deliveries", ())}
        return words | {"refused"} if "dropped" in words and _failed(self.record) else words


def _failed(record: dict[str, Any]) -> bool:
    return str(record.get("response_raw")).split(" ", 2)[1:2] == ["500"]


def _files() -> dict[str, list[bytes]]:
    """The recordings with labels: whole from the shared folder, or as far as they are carried."""
    stems = {label["id"].partition("/")[0] for label in json.loads(LABELS.read_text(encoding="utf-8"))}
    folder = shared_folder()
    if folder is not None:
        return {stem: (folder / "captures" / f"{stem}.jsonl").read_bytes().split(b"\n") for stem in sorted(stems)}
    files: dict[str, list[bytes]] = {}
    name = ""
    for line in carried("captures/labelled.jsonl.zst"):
        record = json.loads(line)
        name = record["file"] if record.get("kind") == "meta" else name
        files.setdefault(name, []).append(line)
    return files


@pytest.fixture(scope="module")
def labelled() -> list[Labelled]:
    labels = {label["id"]: label for label in json.loads(LABELS.read_text(encoding="utf-8"))}
    found = []
    for stem, raw_lines in _files().items():
        lines = [line for line in raw_lines if line.strip()]
        records = [json.loads(line) for line in lines]
        server = str(records[0].get("server") or "")
        exchanges = [record for record in records if "response_raw" in record or "response_raw_base64" in record]
        memory = RunMemory()
        for exchange, record in zip(captures(lines), exchanges, strict=True):
            classified = judge(exchange.view, memory)
            classified.remember(memory)
            label = labels.get(f"{stem}/{exchange.id}")
            if label is None:
                continue
            fact = fact_of(record, server)
            verdict = classified.outcome
            if fact is not None:
                verdict = sighted(classified.facts, verdict, exchange.known_text or "")
            found.append(Labelled(label, record, fact, verdict))
    return found


def _named(name: str, allowed: set[str]) -> bool:
    return any(name == each or (each.endswith(".*") and name.startswith(each[:-1])) for each in allowed)


def test_the_labels_are_two_hundred_and_well_formed(labelled: list[Labelled]) -> None:
    assert len({each.label["id"] for each in labelled}) == len(labelled) == 200
    for each in labelled:
        assert each.deliveries <= WORDS, each.label
        assert all(name.count(".") == 1 for name in each.outcomes), each.label
        assert each.label["why"], each.label
        assert each.label["at_fault"], each.label
    assert len(Counter(each.label["delivery"] for each in labelled)) == len(WORDS)


def test_the_seed_chooses_the_labelled_exchanges() -> None:
    folder = shared_folder()
    if folder is None:
        pytest.skip("no shared captures (set STACKTAP_SHARED) to choose from")
    chosen = [f"{stem}/{record['id']}" for stem, record in choose(folder)]
    assert chosen == [label["id"] for label in json.loads(LABELS.read_text(encoding="utf-8"))]


def _disagreements(wrong: dict[str, object], known: dict[str, str]) -> None:
    new = {where: what for where, what in wrong.items() if where not in known}
    assert not new, new
    stale = sorted(set(known) - set(wrong))
    assert not stale, f"settled, so take them out of the table: {stale}"


def test_the_comparator_agrees_with_the_hand_labels(labelled: list[Labelled]) -> None:
    wrong: dict[str, object] = {}
    compared = 0
    for each in labelled:
        if each.fact is None:
            continue
        compared += 1
        named = any(_named(name, each.fact.outcomes) for name in each.outcomes)
        if not named or not each.deliveries & each.fact.deliveries:
            wrong[each.label["id"]] = (each.label, each.fact)
    assert compared >= 195
    _disagreements(wrong, COMPARATOR_DISAGREES)


def test_the_sighted_classifier_agrees_with_the_hand_labels(labelled: list[Labelled]) -> None:
    wrong: dict[str, object] = {}
    for each in labelled:
        if each.verdict.name not in each.outcomes or each.verdict.delivery not in each.deliveries:
            wrong[each.label["id"]] = (each.label, each.verdict.name, each.verdict.delivery)
    _disagreements(wrong, CLASSIFIER_DISAGREES)
