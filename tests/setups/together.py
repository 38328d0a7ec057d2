"""Set-ups with slow servers, run together: diagnoses that want the same server share one start of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from stacks.launching.launch import LaunchError
from tests.setups.build import Kept, Said, diagnosed
from tests.setups.check import mended
from tests.setups.model import Setup


def both_said(setups: Iterable[Setup]) -> Iterator[tuple[Setup, Said, Said]]:
    """Each set-up with what was said of it broken and mended, in the order in which both are known.

    The broken ones come in their order; those mended by the same flags are diagnosed one after the other. A server
    that does not start is a Said with its message, exit code -1.
    """
    wanted = [(setup, setup) for setup in setups] + [(setup, mended(setup)) for setup in setups]
    order = list(dict.fromkeys(built.server for _, built in wanted))
    wanted.sort(key=lambda pair: order.index(pair[1].server))
    heard: dict[str, list[Said]] = {}
    with tempfile.TemporaryDirectory() as folder, Kept() as kept:
        for setup, built in wanted:
            home = Path(folder, setup.name)
            home.mkdir(exist_ok=True)
            try:
                said = diagnosed(built, home, kept=kept)
            except LaunchError as failure:
                said = Said(-1, {}, "", f"{failure} ({failure.remedy})")
            heard.setdefault(setup.name, []).append(said)
            if len(heard[setup.name]) == 2:
                before, after = heard[setup.name] if built is not setup else reversed(heard[setup.name])
                yield setup, before, after
