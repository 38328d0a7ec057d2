"""Publishes a run of `presets/dense-small.yaml`: `python -m tests.support.publish_dense RUN MODELS`; without either the
report is made again from the journal that is published.

The journal and its recordings go in as they are: the run has to be made where no path tells of a machine.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from checklists.dense.writing import forms, write
from harness.dense.experiment.gathering import experiment
from harness.quantize.record import MANIFEST
from tests.support.servers import ROOT

FOLDER = ROOT / "results" / "published" / "dense-cpu"
RECORDED = ("run.json", "status.json", "wire.jsonl")


def publish(run: Path, models: Path) -> None:
    """Copy journal, recordings and the manifest of the models."""
    shutil.copyfile(run / "episodes.jsonl", FOLDER / "episodes.jsonl")
    shutil.copyfile(models / MANIFEST, FOLDER / MANIFEST)
    for recording in sorted((run / "recordings").iterdir()):
        place = FOLDER / "recordings" / recording.name
        place.mkdir(parents=True, exist_ok=True)
        for name in RECORDED:
            shutil.copyfile(recording / name, place / name)


def report() -> dict[str, bytes]:
    """The report and its plots, from what is published."""
    return forms(experiment(FOLDER))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        publish(Path(sys.argv[1]), Path(sys.argv[2]))
    write(report(), FOLDER)
    for written in FOLDER.glob("dense*"):
        written.chmod(0o644)
