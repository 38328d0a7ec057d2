"""What a run's numbers hold for, and the claims that they cannot carry: one sentence each, by what the run holds."""

from __future__ import annotations

from checklists.items.material import Material, Server
from checklists.items.records import ScopeLine

VALID = "Valid for "
ALONE = " alone; whether tools are accepted is decided by this release, not by the model."
"""How the line on what the numbers hold for begins and ends."""
CLAIMS = {
    "hosted_api": "hosted APIs",
    "scale": "size of models",
    "family": "families of models",
    "reasoning": "reasoning",
}
"""Claims that no run of this tool carries, by the kind of their scope line."""


def claims_not_made(material: Material) -> list[str]:
    """Their short names, for a list."""
    return [*CLAIMS.values()]


def scope_lines(material: Material) -> tuple[ScopeLine, ...]:
    """Every scope line of a run."""
    lines = [ScopeLine("holds_for", _holds_for(server)) for server in material.used]
    if not lines:
        lines.append(ScopeLine("holds_for", "Nothing was measured: the record names no server."))
    lines += _hosted(material.used)
    models = _models(material)
    one = (
        f"one model ({models[0]})"
        if len(models) == 1
        else f"models of {len(models)} names"
        if models
        else "no named model"
    )
    lines.append(
        ScopeLine(
            "scale", f"Size: with {one}, nothing is said about larger or smaller ones; size was not varied alone."
        )
    )
    lines.append(
        ScopeLine("family", f"Family: with {one}, nothing is said about a family of models, its members or its makers.")
    )
    lines.append(
        ScopeLine(
            "reasoning",
            "Reasoning: whether calls arrive and fit their tools is measured, not how well a model thinks.",
        )
    )
    lines.append(
        ScopeLine(
            "hardware", "Times hold for this machine under this load; rates may differ with another compute library."
        )
    )
    if len({server.stack or server.name for server in material.used}) > 1:
        lines.append(
            ScopeLine(
                "mixed", "Several servers: rates of different servers differ by the servers, too, not by models alone."
            )
        )
    return tuple(lines)


def _holds_for(server: Server) -> str:
    stack, version, model = server.stack, server.text("version"), server.model
    what = f"{stack} {version or '(version not known)'}" if stack else f"the server {server.name} (not identified)"
    held = f" with {model}" if model else " with a model that is not named"
    return f"{VALID}{what}{held}{ALONE}"


def _hosted(servers: list[Server]) -> list[ScopeLine]:
    away = sorted({server.hostname or server.url for server in servers if not server.local and server.url})
    if away:
        words = f"On another host: {', '.join(away)}. What runs there was seen by its answers only."
        return [ScopeLine("hosted_api", words)]
    return [ScopeLine("hosted_api", "Hosted APIs: nothing here was measured on one; they run other serving software.")]


def _models(material: Material) -> list[str]:
    if material.grid is not None and material.grid.cells:
        return sorted({cell.cell.model for cell in material.grid.cells})
    # A server that holds one model answers with it, by whatever names it is asked.
    held = {"" if server.not_identified else server.text("model") for server in material.used}
    if len(held) == 1 and "" not in held:
        return sorted(held)
    asked = {name for server in material.used for name in server.traffic.models if not name.startswith("(")}
    return sorted(asked or {server.model for server in material.used if server.model})
