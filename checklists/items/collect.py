"""Fills the checklist in one pass over a run, in bounded memory: an observer beside others.

Iterate a `RunSource` once, hand each exchange to `add`, then call `finish`; the episodes of a grid are read there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from checklists.items import of_calls, of_grid, of_record, of_server
from checklists.items.catalogue import IDS
from checklists.items.material import Material, grid_of, servers_of
from checklists.items.records import CHECKLIST_SCHEMA, Checklist, Filled
from checklists.items.scope import scope_lines
from checklists.items.stated import check_item, with_stated
from checklists.items.traffic import ServerTraffic
from checklists.reading import RunSource, Seen
from results.version import VERSION

FILLERS: dict[str, Callable[[Material], Filled]] = {
    "C01": of_server.c01_stack,
    "C02": of_server.c02_launch,
    "C03": of_server.c03_model,
    "C04": of_server.c04_gate,
    "C05": of_server.c05_prompt,
    "C06": of_calls.c06_channel,
    "C07": of_calls.c07_client_parser,
    "C08": of_calls.c08_condition,
    "C09": of_calls.c09_decoding,
    "C10": of_grid.c10_seeds,
    "C11": of_record.c11_denominator,
    "C12": of_record.c12_transport,
    "C13": of_grid.c13_rates,
    "C14": of_grid.c14_ends,
    "C15": of_grid.c15_first_turn,
    "C16": of_grid.c16_ranking,
    "C17": of_record.c17_other_server,
    "C18": of_server.c18_machine,
    "C19": of_server.c19_scope,
    "C20": of_record.c20_record,
    "C21": of_grid.c21_checks,
    "C22": of_grid.c22_deviations,
}
"""One filler for each item."""


class ChecklistCollector:
    """Counts exchanges, then fills the items."""

    def __init__(self, source: RunSource, reference: str = "") -> None:
        """`reference` is what printed commands call the run by; its id by default."""
        self._source = source
        self._reference = reference
        self._traffic: dict[str, ServerTraffic] = {}

    def add(self, seen: Seen) -> None:
        """Count one exchange."""
        name = seen.exchange.upstream
        if name not in self._traffic:
            self._traffic[name] = ServerTraffic()
        self._traffic[name].add(seen)

    def material(self) -> Material:
        """What the fillers look at, once everything was added. Reads the episodes of a grid."""
        recordings = self._source.recordings
        manifest = next((one.manifest for one in recordings if one.manifest is not None), None)
        grid = grid_of(self._source)
        run = grid.run if grid is not None and grid.run else manifest.run if manifest is not None else ""
        return Material(
            source=self._source,
            run=run,
            reference=self._reference or run or "RUN",
            servers=servers_of(recordings, self._traffic),
            grid=grid,
            manifest=manifest,
        )

    def finish(self, stated: Mapping[str, str] | None = None) -> Checklist:
        """The checklist; `stated` is what the user says, by item (`stated.parse_stated`). Raises StatedError for an
        item that there is not."""
        said = dict(stated or {})
        for item in said:
            check_item(item)
        material = self.material()
        entries = tuple(with_stated(FILLERS[item](material), said.get(item)) for item in IDS)
        return Checklist(
            schema=CHECKLIST_SCHEMA,
            stacktap=VERSION,
            run=material.run,
            entries=entries,
            scope=scope_lines(material),
        )


def checklist_of(source: RunSource, stated: Mapping[str, str] | None = None) -> Checklist:
    """The checklist of a run that nothing else is to be read from."""
    collector = ChecklistCollector(source)
    for seen in source:
        collector.add(seen)
    return collector.finish(stated)
