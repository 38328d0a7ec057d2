"""From the numbers of an experiment to one document. Pure."""

from __future__ import annotations

from checklists.dense import results
from checklists.dense.opening import opening, title, tone
from checklists.dense.plots import plots
from checklists.dense.technical import technical
from checklists.report.blocks import Document, Fold, Paragraph, Section
from harness.dense.experiment.records import Experiment

QUESTION = "Does quantisation change whether an agent finishes its task?"


def document(found: Experiment) -> Document:
    """The whole report: plain words first, the technical part behind a switch."""
    drawn = plots(found)
    plain = [
        results.completion(found, drawn),
        results.tasks(found, drawn),
        results.failures(found, drawn),
        results.families(found),
        results.serving(found),
        results.non_claims(found),
    ]
    details = Section(
        "technical",
        ["The technical part"],
        [
            Paragraph(["Numbers, intervals, settings and weights, for whoever wants to check or repeat this."]),
            Fold(["Open the technical part"], technical(found, drawn)),
        ],
    )
    return Document(
        kicker=f"{QUESTION} · run {found.run or 'without a name'}",
        title=title(found),
        tone=tone(found),
        opening=opening(found),
        sections=[*(one for one in plain if one is not None), details],
        footer=[[f"Made by stacktap {found.stacktap} from the run folder alone."]],
    )
