"""Canary models: real model files whose output text is fixed by construction, so that a server's answer tells on the
server alone. ``build(default_spec(), folder)`` writes one; ``verify(folder)`` proves what it writes."""

from probe.canary.build import BuiltCanary, build, ensure_built, open_canary, read_spec
from probe.canary.members import canary_names, default_spec, member_spec
from probe.canary.model import assemble
from probe.canary.selfdriving import Step, note_steps, selfdriving
from probe.canary.spec import CanaryError, CanarySpec, Script
from probe.canary.verify import CanaryReader, Verification, verify

__all__ = [
    "BuiltCanary",
    "CanaryError",
    "CanaryReader",
    "CanarySpec",
    "Script",
    "Step",
    "Verification",
    "assemble",
    "build",
    "canary_names",
    "default_spec",
    "ensure_built",
    "member_spec",
    "note_steps",
    "open_canary",
    "read_spec",
    "selfdriving",
    "verify",
]
