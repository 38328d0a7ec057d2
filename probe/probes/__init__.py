"""Active experiments on one server, one module each: `async def probe(target) -> list[ProbeResult]`.

`PROBES` lists them with what they cost and need; `run_probe` runs one within the target's budget.
"""

from __future__ import annotations

from probe.probes.table import PROBES, ProbeEntry, probe_named, run_probe

__all__ = ["PROBES", "ProbeEntry", "probe_named", "run_probe"]
