"""Profile, prescribe, confirm and compare on models whose every layer, tier and rung is known in advance."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from checklists.workbench.writing import report_files, to_markdown, write_report
from harness.running import GridChangedError
from harness.workbench.comparing import comparison
from harness.workbench.files import keep, run_at
from harness.workbench.ledger import LEDGER, LedgerError, note, read_ledger
from harness.workbench.measuring import places
from harness.workbench.prescribing import confirmation, prescription
from harness.workbench.profiling import profile
from harness.workbench.record import Confirmation, Prescription, Profile, RunError, decode_run, encode_run
from harness.workbench.workflows import WorkbenchError
from tests.support.workbench_runs import CASES, MEMBER, Weights, little_pack, right

RUNGS = ("L0", "L1", "L2", "L3")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    return Weights(tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def measured(weights: Weights, out: Path) -> Profile:
    pack = little_pack(out / "pack")
    return profile(weights.bench(pack, out), [(weights.ladder(), places(pack))], ("L0", "L1"))


@pytest.fixture(scope="module")
def chosen(weights: Weights, out: Path, measured: Profile) -> Prescription:
    return prescription(weights.bench(little_pack(out / "pack"), out), [weights.ladder()], RUNGS, 0.6)


def cell(run: Profile, tier: str, rung: str = "L0"):  # type: ignore[no-untyped-def]
    found = run.chains[0].tier(tier)
    assert found is not None
    return found.rung(rung)


def test_known_answers_have_known_layers(measured: Profile) -> None:
    assert [tier.tier for tier in measured.chains[0].tiers] == ["Q2_K", "Q4_K_M", "F16"]
    bad, good = cell(measured, "Q2_K"), cell(measured, "F16")
    assert good.died["strict"]["right"] == good.died["lenient"]["right"] == CASES
    assert bad.died["lenient"] == {"right": 6, "content": 0, "schema": 0, "parse": 6, "truncated": 0}
    assert bad.died["strict"]["parse"] == CASES
    assert bad.moved == {"right to parse": 6}


def test_differences_are_from_the_chains_own_baseline(measured: Profile) -> None:
    bad, same = cell(measured, "Q2_K").against_baseline, cell(measured, "Q4_K_M").against_baseline
    assert (bad["lenient"].value, bad["lenient"].verdict, bad["lenient"].lost) == (-0.5, "credible", 6)
    assert (same["lenient"].verdict, same["lenient"].low, same["lenient"].high) == ("exact agreement", 0, 0)
    assert cell(measured, "F16").against_baseline == {}


def test_a_grammar_forces_values_and_calls_stay_inexpressible_without_an_envelope(measured: Profile) -> None:
    bad = cell(measured, "Q2_K", "L1")
    assert bad.coverage == {"build_unexpressible": 3, "ok": 9}
    sizes = [row for row in bad.cases if row.grammar == "ok"]
    assert all(row.strict in ("", "content") for row in sizes), "what a grammar held validates"
    assert "grammar held" not in to_markdown(measured)
    assert "constrained 9 of 12 (3 build\\_unexpressible)" in to_markdown(measured)


def test_weights_are_measured_and_types_listed(measured: Profile) -> None:
    row = measured.chains[0].tiers[0].weights
    assert row.types["Q4_1"] > 0
    assert row.tensor_bits < row.file_bits
    assert {guard.state for guard in measured.chains[0].guards} == {"ok"}


def test_a_tier_that_a_guard_refuses_is_left_out_with_its_reason(tmp_path: Path) -> None:
    other = Weights(tmp_path / "w", ("F16",))
    from tests.support.tiny_gguf import tiny_gguf

    tiny_gguf(tmp_path / "w" / "tiny.Q2_K.gguf")
    bench = other.bench(little_pack(tmp_path / "p"), tmp_path / "out")
    load = other.load

    class Otherwise(type(load("llamacpp", other.folder / "tiny.F16.gguf", None))):  # type: ignore[misc]
        def encode(self, text: str) -> tuple[int, ...]:
            return (*super().encode(text), 1)

    bench.load = lambda scheme, place, context: Otherwise({}) if "Q2_K" in place.name else load(scheme, place, context)
    run = profile(bench, [(other.ladder(("Q2_K", "F16")), (0, 1))], ("L0",))
    assert [tier.tier for tier in run.chains[0].tiers] == ["F16"]
    assert "tokenizer_equivalence" in run.chains[0].excluded["Q2_K"]
    assert "Excluded: Q2\\_K" in to_markdown(run)


def test_the_lowest_rung_that_clears_the_bar(chosen: Prescription) -> None:
    by_tier = {one.tier: one for one in chosen.cells}
    assert (by_tier["F16"].rung, by_tier["F16"].strength) == ("L0", "firm")
    rungs = {one.rung: one for one in by_tier["Q2_K"].rungs}
    assert by_tier["Q2_K"].rung != "L0"
    assert rungs["L0"].lenient.value == 0.5
    against = rungs["L1"].against_bare
    assert against is not None
    assert against.cases == 5, "only the cases that the grammar held"
    assert all(one.cases == CASES // 2 for one in rungs.values())


def test_no_rung_clears_a_bar_that_is_too_high(weights: Weights, out: Path, chosen: Prescription) -> None:
    run = prescription(weights.bench(little_pack(out / "pack"), out), [weights.ladder(("Q2_K",))], RUNGS[:2], 1.0)
    assert (run.cells[0].rung, run.cells[0].strength) == ("", "none")
    assert "none (ceiling below the bar)" in to_markdown(run)


def test_a_moved_threshold_is_post_hoc(weights: Weights, out: Path, chosen: Prescription) -> None:
    assert "ost-hoc" not in to_markdown(chosen)
    again = prescription(weights.bench(little_pack(out / "pack"), out), [weights.ladder()], RUNGS, 0.4, chosen)
    assert again.post_hoc
    assert again.registered == 0.6
    assert "Post-hoc: the bar was 0.60" in to_markdown(again)


def test_confirm_looks_at_the_other_half_at_that_rung_alone(
    weights: Weights, chosen: Prescription, tmp_path: Path
) -> None:
    pack = little_pack(tmp_path / "pack")
    bench = weights.bench(pack, tmp_path)
    one = msgspec.structs.replace(chosen, cells=tuple(c for c in chosen.cells if c.tier in ("F16", "Q4_K_M")))
    run = confirmation(bench, [weights.ladder()], one)
    assert [(found.tier, found.rung, found.held, found.cases) for found in run.cells] == [
        ("Q4_K_M", "L0", True, 6),
        ("F16", "L0", True, 6),
    ] or {found.tier for found in run.cells} == {"Q4_K_M", "F16"}
    assert len(run.ledger) == 2
    assert "L0" in run.ledger[0].what
    again = confirmation(weights.bench(pack, tmp_path), [weights.ladder()], one)
    assert again == run, "reading again what is on record is no look"


def test_a_point_above_the_bar_does_not_hold_where_the_lower_end_is_below(
    weights: Weights, out: Path, chosen: Prescription
) -> None:
    bench = weights.bench(little_pack(out / "pack"), out)
    low = msgspec.structs.replace(chosen, threshold=0.4)
    bad = next(one for one in chosen.cells if one.tier == "Q2_K")
    low = msgspec.structs.replace(low, cells=(msgspec.structs.replace(bad, rung="L0"),))
    run = confirmation(bench, [weights.ladder(("Q2_K",))], low)
    assert run.cells[0].lenient.value == 0.5
    assert not run.cells[0].held
    assert "not held" in to_markdown(run)


def test_the_ledger_comes_before_the_first_answer(weights: Weights, chosen: Prescription, tmp_path: Path) -> None:
    bench = weights.bench(little_pack(tmp_path / "pack"), tmp_path)
    seen: list[int] = []
    load = weights.load

    def watched(scheme: str, place: Path, context: int | None):  # type: ignore[no-untyped-def]
        seen.append(len(read_ledger(tmp_path)))
        return load(scheme, place, context)

    bench.load = watched
    confirmation(bench, [weights.ladder(("F16",))], chosen)
    assert seen
    assert seen[0] == 1
    (tmp_path / LEDGER).write_text("{broken}\n")
    with pytest.raises(LedgerError, match="line 1 is damaged"):
        read_ledger(tmp_path)


def test_a_torn_ledger_line_is_cut_off(tmp_path: Path) -> None:
    note(tmp_path, "quant confirm", "one")
    with (tmp_path / LEDGER).open("ab") as file:
        file.write(b'{"at": "tor')
    assert len(read_ledger(tmp_path)) == 1
    note(tmp_path, "quant confirm", "two")
    assert [row.what for row in read_ledger(tmp_path)] == ["one", "two"]


def test_a_small_model_under_a_scaffold_against_a_large_one(weights: Weights, out: Path) -> None:
    pack = little_pack(out / "pack")
    large = msgspec.structs.replace(MEMBER, name="large", parameters="twice as many")
    run = comparison(
        weights.bench(pack, out),
        weights.ladder(("Q2_K",)),
        "L1",
        weights.bench(pack, out, large),
        weights.ladder(("F16",)),
    )
    assert run.large.lenient.value == 1.0
    assert run.difference.value < 0
    assert run.difference.cases == 6
    assert run.small_bare is not None
    assert run.small_bare.lenient.value == 0.5
    assert "tiny under L1 against large bare" in to_markdown(run)


def test_arms_of_another_runtime_are_refused(weights: Weights, tmp_path: Path) -> None:
    other = Weights(tmp_path / "w", ("F16", "Q2_K"))
    other.runtime = {"Q2_K": "2"}
    bench = other.bench(little_pack(tmp_path / "p"), tmp_path / "out")
    with pytest.raises(WorkbenchError, match="runtime differs"):
        profile(bench, [(other.ladder(("Q2_K", "F16")), (0, 1))], ("L0",))


def test_a_changed_pack_is_refused_aloud(weights: Weights, out: Path, measured: Profile) -> None:
    changed = little_pack(out / "changed", "1.0.1")
    bench = weights.bench(changed, out)
    with pytest.raises(GridChangedError, match="pack_hash"):
        bench.measure(weights.ladder(), ("L0",), (0,))
    with pytest.raises(WorkbenchError, match="changed since the run"):
        profile(bench, [(weights.ladder(), (0,))], ("L0",), measured)


def test_changed_software_is_refused_aloud(weights: Weights, out: Path, measured: Profile) -> None:
    weights.runtime = dict.fromkeys(("Q2_K", "Q4_K_M", "F16"), "9")
    try:
        with pytest.raises(GridChangedError, match="runtime"):
            weights.bench(little_pack(out / "pack"), out).measure(weights.ladder(), ("L0",), (0,))
    finally:
        weights.runtime = {}


def test_answers_on_record_are_used_again(weights: Weights, out: Path, measured: Profile) -> None:
    before = (out / "episodes.jsonl").read_bytes()
    pack = little_pack(out / "pack")
    again = profile(weights.bench(pack, out), [(weights.ladder(), places(pack))], ("L0", "L1"))
    assert encode_run(again) == encode_run(measured)
    assert (out / "episodes.jsonl").read_bytes() == before


def test_missing_answers_make_no_run(weights: Weights, tmp_path: Path) -> None:
    bench = weights.bench(little_pack(tmp_path / "p"), tmp_path)
    bench.measure(weights.ladder(("F16",)), ("L0",), (0, 1))
    with pytest.raises(WorkbenchError, match="has 2 of 3 answers"):
        bench.rows(weights.ladder().chain, "F16", "L0", (0, 1, 2))


def test_reports_are_pure_and_ship_what_they_link(measured: Profile, chosen: Prescription, tmp_path: Path) -> None:
    for run in (measured, chosen):
        again = decode_run(encode_run(run))
        assert report_files(again) == report_files(run)
        keep(tmp_path / f"{run.kind}.json", run)
        assert run_at(tmp_path / f"{run.kind}.json") == run
        names = {path.name for path in write_report(tmp_path, run)}
        linked = set(re.findall(r"!\[[^]]*\]\(([^)]*)\)", to_markdown(run)))
        assert linked
        assert linked == {name for name in names if name.endswith(".svg")}


def test_runs_from_elsewhere(tmp_path: Path) -> None:
    assert run_at(tmp_path / "none.json") is None
    for raw, said in ((b"{", "damaged"), (b'{"kind": "x"}', "no run of the workbench"), (b'{"schema": 99}', "update")):
        with pytest.raises(RunError, match=said):
            decode_run(raw)
    with pytest.raises(RunError):
        decode_run(b"[" * 5000)


def test_a_confirmation_needs_a_prescription_of_this_pack(
    weights: Weights, chosen: Prescription, tmp_path: Path
) -> None:
    bench = weights.bench(little_pack(tmp_path / "p", "2.0.0"), tmp_path)
    with pytest.raises(WorkbenchError, match="prescribe again"):
        confirmation(bench, [weights.ladder()], chosen)
    bench = weights.bench(little_pack(tmp_path / "p"), tmp_path)
    with pytest.raises(WorkbenchError, match="nothing to confirm"):
        confirmation(bench, [weights.ladder()], msgspec.structs.replace(chosen, cells=()))
    assert isinstance(chosen, Prescription)
    assert not isinstance(chosen, Confirmation)
    assert right(0)
