"""The relay's benchmark: `python -m tests.bench.relay` from the repository's root.

Direct, nginx, mitmdump, a minimal aiohttp proxy, LiteLLM's proxy and stacktap (recording on, and off) take turns in
one run. It writes every round's figures to `docs/performance.json` and a table to `docs/performance.md`.
`--table-only` makes the table again from the JSON. `--quick` is a smoke test of the harness; its numbers mean nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench import competitors, machine, measure, soak, stacktap_target, table
from tests.bench.competitors import ROOT, Target
from tests.bench.processes import Running, TargetFailedError, Worker

FORMAT = {"format": "stacktap-bench-relay", "version": 1}
TARGETS = {
    target.name: target
    for target in (
        competitors.NGINX,
        stacktap_target.RECORDING,
        stacktap_target.PLAIN,
        competitors.AIOHTTP,
        competitors.MITMDUMP,
        competitors.LITELLM,
    )
}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.relay", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often every target is measured (default 5)")
    parser.add_argument("--targets", default=",".join(TARGETS), help=f"comma-separated, of: {', '.join(TARGETS)}")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes: tests the harness only")
    parser.add_argument("--force", action="store_true", help="measure even on a busy machine; the table will say so")
    parser.add_argument("--no-install", action="store_true", help="skip competitors that are not installed")
    parser.add_argument("--no-pin", action="store_true", help="let the kernel choose the cores")
    parser.add_argument("--no-soak", action="store_true", help="leave out the soak and the ramp")
    parser.add_argument("--soak-seconds", type=float, default=60.0, help="length of each soak (default 60)")
    parser.add_argument("--table-only", action="store_true", help="write the table from the JSON, measure nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where performance.json and .md go (docs/)")
    options = parser.parse_args(arguments)
    unknown = set(options.targets.split(",")) - set(TARGETS)
    if unknown:
        parser.error(f"unknown target(s) {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def say(text: str) -> None:
    """Progress, on stderr."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def available(names: list[str], *, may_install: bool) -> tuple[dict[str, str], dict[str, str]]:
    """The version of each target that can be run, and why each other one cannot."""
    versions, skipped = {}, {}
    for name in names:
        try:
            if may_install and name == "nginx":
                competitors.install_nginx()
            elif may_install and name in INSTALLED:
                competitors.install(INSTALLED[name])
            versions[name] = TARGETS[name].version()
        except (OSError, subprocess.CalledProcessError) as error:
            skipped[name] = str(error)
            say(f"SKIPPED {name}: {error}")
    return versions, skipped


INSTALLED = {"mitmdump": "mitmproxy", "litellm": "litellm"}


def refuse_when_busy(state: dict[str, Any], *, force: bool) -> list[str]:
    """The reasons not to trust this machine now; ends the program when there are any and nothing forces it."""
    reasons = machine.busy(state, machine.describe()["cores"])
    if reasons and not force:
        say("this machine is busy: " + "; ".join(reasons))
        say("end what is running and try again, or measure anyway with --force")
        raise SystemExit(3)
    return reasons


class Run:
    """One run of the benchmark: its workers, its targets, its result."""

    def __init__(self, stack: ExitStack, folder: Path, *, pin: bool = True) -> None:
        self.stack, self.folder = stack, folder
        self.cores = machine.cores(pin=pin)
        upstream, client = Worker("upstream", self.cores["upstream"]), Worker("client", self.cores["client"])
        stack.callback(upstream.stop)
        stack.callback(client.stop)
        self.bench = measure.Bench(client, upstream, upstream.receive()["port"])
        self.started = 0

    def start(self, target: Target) -> Running:
        """Start a target in a folder of its own.

        Raises:
            TargetFailedError: it cannot be started.
        """
        self.started += 1
        running = Running(
            target, self.bench.upstream_port, self.folder / f"{target.name}-{self.started}", self.cores["target"]
        )
        self.stack.callback(running.stop)
        running.wait_answering()
        return running

    def start_all(
        self, names: list[str], cycles: int, skipped: dict[str, str]
    ) -> tuple[dict[str, Running], dict[str, Any]]:
        """Start every target, the quick ones several times; those that fail are named in `skipped`."""
        running: dict[str, Running] = {}
        start_up: dict[str, Any] = {}
        for name in names:
            times = []
            try:
                for cycle in range(cycles if TARGETS[name].ready_within < 60 else 1):
                    if cycle:
                        running.pop(name).stop()
                    running[name] = self.start(TARGETS[name])
                    times.append(running[name].listening_ms)
            except TargetFailedError as error:
                running.pop(name, None)
                skipped[name] = str(error)
                say(f"SKIPPED {error}")
                continue
            start_up[name] = measure.start_up(times)
            say(f"{name} listens after {start_up[name]['median_ms']:.0f} ms")
        return running, start_up


def measure_all(options: argparse.Namespace) -> dict[str, Any]:
    """The whole measurement."""
    watched = 0.2 if options.quick else 2.0
    state = machine.state(watched)
    reasons = refuse_when_busy(state, force=options.force or options.quick)
    versions, skipped = available(options.targets.split(","), may_install=not options.no_install)
    size = measure.QUICK if options.quick else measure.FULL
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stacktap-bench-")))
        run = Run(stack, folder, pin=not options.no_pin)
        running, start_up = run.start_all(list(versions), 1 if options.quick else options.rounds, skipped)
        rounds = []
        for number in range(options.rounds):
            rounds.append(measure.measure_round(run.bench, {"direct": None} | running, size, number))
            say(f"round {number + 1} of {options.rounds} after {time.monotonic() - began:.0f} s")
        for one in running.values():
            one.stop()
        soaks = {}
        if not options.no_soak and "stacktap" in running:
            soaks = soak.run_all(run, TARGETS["stacktap"], options.soak_seconds, say)
    return FORMAT | {
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began),
        "quick": options.quick,
        "machine": machine.describe(),
        "pinned": {part: sorted(cores) for part, cores in run.cores.items()},
        "before": state,
        "after": machine.state(watched),
        "busy": reasons,
        "versions": {name: version for name, version in versions.items() if name not in skipped},
        "labels": {"direct": "direct"} | {name: TARGETS[name].label for name in versions},
        "skipped": skipped,
        "size": size._asdict() | {"interval_ms": measure.INTERVAL_MS},
        "start_up": start_up,
        "rounds": rounds,
        "soak": soaks,
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure, or make the table again; returns the exit code."""
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    store = options.out / "performance.json"
    if not options.table_only:
        store.write_text(json.dumps(measure_all(options), indent=1) + "\n")
    text = table.render(table.load(store))
    (options.out / "performance.md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
