"""The commands of docs/workbench.md, one after the other, on the real models and a few cases of the shipped pack."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from harness.quantize.tools import ToolError, llama_quantize
from stacktap.cli import cli
from tests.stacks_real.test_inprocess_real import require
from tests.support.real_models import present
from tests.support.servers import ROOT

PAGE = ROOT / "docs" / "workbench.md"
STRUCTURED = ROOT / "harness" / "workbench" / "structured" / "pack.yaml"
pytestmark = [pytest.mark.real, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]


def few(folder: Path) -> None:
    """Six orders of each half of the pack: enough for the examples of a rung."""
    pack = yaml.safe_load(STRUCTURED.read_text("utf-8"))
    halves: dict[str, list[object]] = {"dev": [], "test": []}
    for task in pack["tasks"]:
        if task["category"] == "order":
            halves[task["labels"]["half"]].append(task)
    pack["tasks"] = [task for half in halves.values() for task in half[:6]]
    folder.mkdir()
    (folder / "pack.yaml").write_text(yaml.safe_dump(pack, sort_keys=False), "utf-8")


def test_the_page_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("llamacpp")
    small, large = present("smollm2"), present("gemma3")
    if small is None or large is None:
        pytest.skip("the models are not there: make models")
    try:
        llama_quantize()
    except ToolError as missing:
        pytest.skip(str(missing))
    lines = re.findall(r"^\$ stacktap (quant .*?)(?:  +#.*)?$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [line.split()[1] for line in lines] == ["family", "make", "profile", "prescribe", "confirm", "compare"]
    monkeypatch.chdir(tmp_path)
    few(tmp_path / "few")
    shutil.copy(small, lines[1].split()[2])
    for line in lines:
        # So few orders clear no bar: one that everything clears leaves something to confirm.
        words = line.replace("--threshold 0.9", "--threshold 0").split()
        if words[1] not in ("family", "make"):
            words += ["--pack", "few", "--max-tokens", "24"]
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, (line, done.output, done.exception)
        if words[1] == "make":
            shutil.copy(large, tmp_path / "weights" / "gemma-3-270m-q4_k_m.gguf")
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"profile.md", "prescribe.md", "confirm.md", "compare.md", "ledger.jsonl", "episodes.jsonl"} <= left
