"""The published run of SmolLM2: its reports come out of its data byte for byte, and its data out of its answers."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec
import pytest
import zstandard

from checklists.workbench.writing import report_files, to_markdown
from harness.structured.questions import Calling
from harness.workbench.collecting import Comparable, judged, pack_row
from harness.workbench.files import run_at
from harness.workbench.ledger import read_ledger
from harness.workbench.record import Comparison, Confirmation, Prescription, Profile, Run
from harness.workbench.registry import shipped_registry
from results.episodes import EpisodeRecord, decode_episode_line
from tests.support.workbench_runs import structured_pack

FOLDER = Path(__file__).parents[3] / "results/published/profile-smollm2"
RUNS = sorted(path.name for path in FOLDER.glob("*.json"))
NO_CALLS = Calling(None, "the template writes no calls")
ECOSYSTEMS = {
    "gguf": re.compile(r"\bgguf\b|\b[IT]?Q\d_\w+|\bF16\b|llama", re.I),
    "mlx": re.compile(r"\bmlx\b|\d+bit\b", re.I),
}


@cache
def run(name: str) -> Run:
    found = run_at(FOLDER / name)
    assert found is not None
    return found


@cache
def episodes() -> list[EpisodeRecord]:
    raw = zstandard.ZstdDecompressor().decompress((FOLDER / "episodes.jsonl.zst").read_bytes(), max_output_size=1 << 26)
    lines = [decode_episode_line(line) for line in raw.splitlines()]
    return [line for line in lines if isinstance(line, EpisodeRecord)]


def answers(model: str, cell: str, rung: str) -> list[EpisodeRecord]:
    key = (model, cell, rung)
    return [one for one in episodes() if (one.cell.model, one.cell.stack, one.cell.condition) == key]


def test_a_profile_is_published() -> None:
    assert "profile.json" in RUNS


@pytest.mark.parametrize("name", RUNS)
def test_reports_byte_for_byte_with_every_picture(name: str) -> None:
    files = report_files(run(name))
    for file, data in files.items():
        assert (FOLDER / file).read_bytes() == data, f"{file} is not what {name} gives"
    linked = re.findall(r"!\[[^]]*\]\(([^)]*)\)", to_markdown(run(name)))
    assert all((FOLDER / link).is_file() for link in linked)


@pytest.mark.parametrize("name", RUNS)
def test_not_stale(name: str) -> None:
    assert run(name).pack == pack_row(structured_pack()), "the pack changed: measure and publish again"


@pytest.mark.parametrize("name", RUNS)
def test_no_line_names_two_ecosystems(name: str) -> None:
    for line in to_markdown(run(name)).replace("\\", "").splitlines():
        named = [one for one, words in ECOSYSTEMS.items() if words.search(line)]
        assert len(named) < 2, line


def test_the_scan_finds_a_line_that_names_two() -> None:
    line = "Q4_K_M is worse than 4bit"
    assert all(words.search(line) for words in ECOSYSTEMS.values())


def test_the_profiles_cases_come_out_of_the_answers() -> None:
    profile = run("profile.json")
    assert isinstance(profile, Profile)
    for chain in profile.chains:
        for tier in chain.tiers:
            for cell in tier.rungs:
                found = answers(profile.model.name, f"{chain.name}/{tier.tier}", cell.rung)
                places = {row.at for row in cell.cases}
                rows = judged(structured_pack(), [one for one in found if one.seed in places], NO_CALLS)
                assert tuple(rows) == cell.cases, f"{tier.tier} {cell.rung}"


def test_an_interval_comes_out_of_the_cases() -> None:
    profile = run("profile.json")
    assert isinstance(profile, Profile)
    tier = profile.chains[0].tiers[0]
    drawn = Comparable(structured_pack(), {"one": tier.rungs[0].cases})
    assert drawn.shares("one") == tier.rungs[0].shares


def test_the_gguf_ladder_is_whole_and_its_tensor_types_are_listed() -> None:
    profile = run("profile.json")
    assert isinstance(profile, Profile)
    chain = profile.chain("gguf")
    assert chain is not None
    declared = shipped_registry().member(profile.model.name).chain("gguf")
    assert tuple(tier.tier for tier in chain.tiers) == declared.tiers
    assert chain.cases == 250 and all(len(tier.rungs[0].cases) == 250 for tier in chain.tiers)  # noqa: PT018
    assert "dequantised Q4_1" in to_markdown(profile).replace("\\", "")
    types = {tier.tier: tier.weights.types for tier in chain.tiers}
    assert "Q2_K" not in types["Q2_K"], "576 columns: every K-quant of 2 bits fell back"
    assert sum(types["Q2_K"].values()) == 272


def test_a_small_chain_is_marked_underpowered() -> None:
    profile = run("profile.json")
    assert isinstance(profile, Profile)
    for chain in profile.chains:
        marked = f"## Chain {chain.name} (underpowered)" in to_markdown(profile)
        assert marked == (chain.cases < 200)


def test_looks_at_the_held_out_half_are_on_the_ledger() -> None:
    looks = read_ledger(FOLDER)
    assert looks
    for name in RUNS:
        found = run(name)
        if isinstance(found, Confirmation):
            assert found.ledger == looks
            assert all(any(f"{cell.tier} {cell.rung}" in look.what for look in looks) for cell in found.cells)


def test_post_hoc_is_printed_where_the_bar_moved() -> None:
    for name in RUNS:
        found = run(name)
        if isinstance(found, Prescription | Confirmation):
            assert ("Post-hoc" in to_markdown(found)) == (found.threshold != found.registered)
        if isinstance(found, Comparison):
            assert found.half == "dev"


def test_small_enough_to_ship() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 3_000_000
    assert msgspec.json.decode((FOLDER / "profile.json").read_bytes())["schema"] == 1
