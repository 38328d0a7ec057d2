"""`python -m tests.versus [NAME...]`: the set-ups through both tools; writes the JSON and docs/versus.md.

A run that was interrupted goes on where it stopped. With names, only those rows are made anew.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from typing import Any

from stacks.locations import canaries_folder
from tests.setups.known import SETUPS
from tests.versus import peer, row
from tests.versus.cases import CURES
from tests.versus.table import DOCUMENT, RESULT, document


def main() -> int:
    """Exit code 1 where `diagnose` was wrong, or its remedy did not heal."""
    parser = argparse.ArgumentParser(prog="python -m tests.versus", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="set-ups (default: all)")
    parser.add_argument("--table-only", action="store_true", help="write docs/versus.md from the JSON that is there")
    given = parser.parse_args()
    unknown = set(given.names) - set(CURES)
    if unknown:
        parser.error(f"no set-up {', '.join(sorted(unknown))}; there are {', '.join(CURES)}")
    if given.table_only:
        DOCUMENT.write_text(document(json.loads(RESULT.read_text(encoding="utf-8"))), encoding="utf-8")
        return 0
    # The little gateways tell of every client that leaves early; that is what some of them are for.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    facts = _measured(given.names)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    DOCUMENT.write_text(document(facts), encoding="utf-8")
    wrong = [one["setup"] for one in facts["rows"] if not one["stacktap"]["right_and_heals"]]
    print(f"{len(facts['rows'])} set-ups, wrong: {', '.join(wrong) or 'none'}; {RESULT}, {DOCUMENT}")
    return 1 if wrong else 0


def _measured(names: list[str]) -> dict[str, Any]:
    """All facts; those of `names` (or of all) are measured now, the others taken from the JSON that is there."""
    there = json.loads(RESULT.read_text(encoding="utf-8")) if names and RESULT.exists() else {"rows": []}
    known = {one["setup"]: one for one in there["rows"]}
    partial = canaries_folder().parent / "versus-rows"
    partial.mkdir(parents=True, exist_ok=True)
    for name in names or CURES:
        kept = partial / f"{name}.json"
        if names or not kept.exists():
            began = time.monotonic()
            kept.write_text(json.dumps(row.row(name)), encoding="utf-8")
            print(f"{name:<24} {time.monotonic() - began:5.1f} s", flush=True)
        known[name] = json.loads(kept.read_text(encoding="utf-8"))
    for kept in partial.glob("*.json"):
        kept.unlink()
    return {
        "version": 1,
        "peer": {"name": "tool-eval-bench", "version": peer.VERSION, "offers": peer.scenarios_offered()},
        "stacks": {known[name]["stack"]: _title(known[name]["stack"]) for name in CURES if name in known},
        "rows": [known[name] for name in CURES if name in known],
    }


def _title(stack: str) -> str:
    titles = {"llamacpp": "llama-server", "mlx": "mlx_lm.server", "llamacpp-python": "llama-cpp-python"}
    return titles.get(stack, f"Ollama {stack.partition(' ')[2]}, replayed")


if __name__ == "__main__":
    assert set(CURES) <= set(SETUPS)
    sys.exit(main())
