"""`diagnose`: one verdict on a server, or on a recorded run, with evidence and what to change."""

from __future__ import annotations

from probe.diagnose.diagnosis import Diagnosis, Step
from probe.diagnose.server import DiagnoseError, Options, diagnose, diagnose_run

__all__ = ["DiagnoseError", "Diagnosis", "Options", "Step", "diagnose", "diagnose_run"]
