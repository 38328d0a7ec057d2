"""C11, C12, C17 and C20: denominators, failures on the way, other servers, and the record itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

from checklists.items.answers import counts, joined, not_done, part, per_server, unknown, yes
from checklists.items.material import Grid, Material, Server, said
from checklists.items.of_calls import first_links, task_cells
from checklists.items.of_server import knows_stack
from checklists.items.records import Filled, Part
from results.plain_files import open_plain
from results.segments import LIVE, finished, numbered

_NOTHING = "no request asked for an answer of a model"


def c11_denominator(material: Material) -> Filled:
    """Of a grid: per cell; else over all recorded attempts."""
    grid = material.grid
    if grid is not None and not grid.unreadable and grid.cells:
        parts = [
            part(
                cell.cell.title,
                "yes",
                f"{cell.produced} turns with an answer of the model; outside: {counts(cell.nonresponses)}"
                + (f"; the rate is undefined ({cell.pooled.undefined}), not 0" if cell.pooled.value is None else ""),
            )
            for cell in grid.cells
        ]
        return joined("C11", parts)
    parts_of = []
    offering = any(server.traffic.counter.offered for server in material.used)
    for server in material.used:
        rates = server.traffic.rates(offering=offering)
        if not rates.attempts and not rates.without_tools:
            parts_of.append((server, part(server.name, "not_applicable", why=_NOTHING)))
            continue
        words = (
            f"{rates.fidelity.trials} of {rates.attempts} attempts brought an answer of the model; outside, by layer: "
        )
        words += counts(rates.outside)
        if rates.without_tools:
            words += f"; {rates.without_tools} that offered no tools are in no rate"
        if rates.fidelity.value is None:
            words += f"; the rate is undefined ({rates.fidelity.undefined}), not 0"
        parts_of.append((server, part(server.name, "yes", words)))
    return per_server("C11", material, parts_of)


def c12_transport(material: Material) -> Filled:
    """Failures on the way by name, requests sent again, and the policy where it is known."""
    parts = []
    for server in material.used:
        traffic = server.traffic
        if not traffic.generating:
            parts.append((server, part(server.name, "not_applicable", why=_NOTHING)))
            continue
        failed = sum(traffic.transport.values())
        again = max(traffic.sent_again, traffic.repeated_after_failure)
        words = [
            f"{failed} of {traffic.generating} attempts failed on the way"
            + (f" ({counts(traffic.transport)})" if failed else ""),
            f"{again} were sent again after a failure, each kept as an attempt of its own",
            _policy(material.grid, traffic.client_timeouts),
        ]
        parts.append((server, part(server.name, "yes", "; ".join(words))))
    return per_server("C12", material, parts, links=first_links(material))


def _policy(grid: Grid | None, timeouts: Mapping[str, int]) -> str:
    if grid is not None and grid.plans:
        retries = sorted({said(plan.facts["retries"].value) for plan in grid.plans.values() if "retries" in plan.facts})
        seconds = sorted(
            {
                said(plan.facts["attempt_timeout_s"].value)
                for plan in grid.plans.values()
                if "attempt_timeout_s" in plan.facts
            }
        )
        return f"policy: {'/'.join(retries) or 'not stated'} retries, {'/'.join(seconds) or 'not stated'} s an attempt"
    told = ", ".join(f"{value} s" for value in sorted(timeouts))
    return (
        f"the client's own policy is not on the wire; it names a timeout of {told}"
        if told
        else ("the client's own policy and timeout are not on the wire")
    )


def c17_other_server(material: Material) -> Filled:
    """The same tasks on servers of two stacks (or versions); without tasks, the same requests."""
    url = material.used[0].address if material.used else "URL"
    command = f"stacktap compare {url} up:STACK:MODEL   (or a second target in GRID.yaml)"
    kinds = {server.name: _kind(server) for server in material.servers}
    pairs = _same_tasks(material) if material.grid is not None else _same_requests(material)
    shared = [(one, other, what) for one, other, what in pairs if _differ(kinds, one, other)]
    if shared:
        names = sorted({name for one, other, _ in shared for name in (one, other)})
        what = "; ".join(dict.fromkeys(what for _, _, what in shared))
        return yes("C17", f"{what}: {', '.join(_titled(name, material) for name in names)}", servers=names)
    if any(kinds.get(one) is None or kinds.get(other) is None for one, other, _ in pairs):
        why = "several servers were asked the same, but whether they are of different stacks or versions is not known"
        return unknown("C17", why, command)
    return not_done("C17", "no other serving stack was asked the same in this run", command)


def _same_tasks(material: Material) -> list[tuple[str, str, str]]:
    """Pairs of targets that ran the same task under the same condition."""
    assert material.grid is not None
    found: dict[tuple[str, str, str], None] = {}
    for cells in task_cells(material.grid).values():
        names = sorted({cell.stack for cell in cells})
        for one, other in combinations(names, 2):
            found[one, other, "the same tasks ran on"] = None
    return list(found)


def _same_requests(material: Material) -> list[tuple[str, str, str]]:
    """Pairs of servers that were sent the same questions."""
    return [
        (one.name, other.name, "the same requests were sent to")
        for one, other in combinations(material.used, 2)
        if one.traffic.questions & other.traffic.questions
    ]


def _kind(server: Server) -> tuple[str, str] | None:
    """What tells servers apart: stack and version; None where the stack is not known."""
    stack = knows_stack(server)
    return (stack, server.text("version")) if stack else None


def _differ(kinds: Mapping[str, tuple[str, str] | None], one: str, other: str) -> bool:
    first, second = kinds.get(one), kinds.get(other)
    if first is None or second is None:
        return False
    return first[0] != second[0] or bool(first[1] and second[1] and first[1] != second[1])


def _titled(name: str, material: Material) -> str:
    server = next((one for one in material.servers if one.name == name), None)
    known = " ".join(word for word in (server.stack, server.text("version")) if word) if server else ""
    return f"{name} ({known})" if known else name


def c20_record(material: Material) -> Filled:
    """Every journal of the run with the SHA-256 of its files; what is missing from it is said."""
    parts: list[Part] = []
    digests: dict[str, dict[str, str]] = {}
    for recording in material.source.recordings:
        name = recording.name or "record"
        try:
            digests[name] = {path.name: _sha256(path) for path in _files(recording.folder)}
        except OSError as failure:
            why = f"the journal cannot be read: {failure.strerror or failure}"
            parts.append(part(name, "unknown", why=why, command=f"stacktap report {material.quoted}"))
            continue
        kept = _kept(material.quoted, digests[name], recording.open_attempts, recording.problems.describe())
        parts.append(part(name, "yes", kept))
    if not parts:
        return unknown("C20", "the run holds no recording", f"stacktap runs {material.quoted}")
    return joined("C20", parts, sha256=digests)


def _kept(reference: str, digests: Mapping[str, str], still_open: int, lacking: list[str]) -> str:
    files = f"{len(digests)} journal files" if len(digests) > 1 else "the journal"
    words = [f"every byte is kept in {files} (SHA-256 {_digest(digests)})"]
    words.append(f"judged again by: stacktap classify {reference}")
    if still_open:
        words.append(f"{still_open} attempts were still under way")
    return "; ".join([*words, *lacking])


def _digest(digests: Mapping[str, str]) -> str:
    """Of one file its own; of several that of the list `sha256sum` prints."""
    if len(digests) == 1:
        return next(iter(digests.values()))
    listed = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(listed.encode()).hexdigest()


def _files(folder: Path) -> list[Path]:
    found = []
    for number in finished(folder):
        packed = numbered(folder, number, compressed=True)
        found.append(packed if packed.exists() else numbered(folder, number, compressed=False))
    return [*found, *([folder / LIVE] if (folder / LIVE).exists() else [])]


def _sha256(path: Path) -> str:
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
