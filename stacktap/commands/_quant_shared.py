"""What the workbench's sub-commands share: options, their meaning, errors, and the files that they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stacktap.failure import CouldNotRunError, cannot_write

if TYPE_CHECKING:
    from harness.workbench.record import Run
    from harness.workbench.registry import Member
    from harness.workbench.workflows import Ladder, Workbench

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

_MODEL: Option = click.option("--model", required=True, help="A member of the registry (`stacktap quant family`).")
_BACKENDS: Option = click.option(
    "--backends", default="gguf", show_default=True, help="gguf, mlx or both, separated by a comma."
)
_TIERS: Option = click.option(
    "--tiers", default="", help="Tiers of each backend, in their order: Q4_K_M,F16/4bit,16bit. Default: all."
)
_PACK: Option = click.option(
    "--pack", "pack_path", default="structured", show_default=True, help="A pack's file or folder, or a shipped one."
)
_WEIGHTS: Option = click.option(
    "--weights",
    multiple=True,
    required=True,
    metavar="[BACKEND=]FOLDER",
    help="Where the tiers lie (`stacktap quant make` writes such a folder).",
)
_OUT: Option = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder of the answers and reports; the same one carries on.",
)
_TOKENS: Option = click.option("--max-tokens", default=64, show_default=True, help="Most tokens of an answer.")


def answers_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which cases are asked of which weights, and where the answers go."""
    for option in (_TOKENS, _OUT, _WEIGHTS, _PACK):
        command = option(command)
    return command


def chain_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same for tiers of one model's chains."""
    command = answers_options(command)
    for option in (_TIERS, _BACKENDS, _MODEL):
        command = option(command)
    return command


def tell(line: str) -> None:
    """Progress, on stderr."""
    click.echo(f"... {line}", err=True)


def member_of(name: str) -> Member:
    """A member of the shipped registry; a usage error where there is none."""
    from harness.workbench.registry import RegistryError, shipped_registry

    try:
        return shipped_registry().member(name)
    except RegistryError as wrong:
        raise click.UsageError(str(wrong)) from None


def ladders_of(member: Member, backends: str, tiers: str, weights: tuple[str, ...]) -> list[Ladder]:
    """Chains and tiers as they were asked for. A usage error for one that is not there."""
    from harness.workbench.registry import RegistryError
    from harness.workbench.workflows import Ladder

    names = [name.strip() for name in backends.split(",") if name.strip()]
    asked = tiers.split("/") if tiers else [""] * len(names)
    if not names or len(asked) != len(names):
        raise click.UsageError(f"--tiers names {len(asked)} lists (separated by /) for {len(names)} backends")
    folders = dict(_folder(each, names) for each in weights)
    found = []
    for name, listed in zip(names, asked, strict=True):
        folder = folders.get(name) or folders.get("")
        if folder is None:
            raise click.UsageError(f"--weights says no folder for {name}: --weights {name}=FOLDER")
        try:
            chain = member.chain(name)
            wanted = tuple(one.strip() for one in listed.split(",") if one.strip()) or chain.tiers
            chain.check(wanted)
            for tier in dict.fromkeys((*wanted, chain.baseline)):
                chain.place(folder, tier)
        except RegistryError as wrong:
            todo = "`stacktap quant make` makes tiers; --weights names their folder"
            raise click.UsageError(f"{wrong}\n  -> {todo}") from None
        found.append(Ladder(chain, tuple(tier for tier in chain.tiers if tier in wanted), folder))
    return found


def check_engines(ladders: Sequence[Ladder]) -> None:
    """Refuse what could not be loaded, before anything is written: a look that cannot happen is no look."""
    from harness.workbench.answering import CONTEXT
    from harness.workbench.registry import ENGINES
    from stacks.load_engine import check_engine

    for ladder in ladders:
        for tier in ladder.tiers:
            check_engine(ENGINES[ladder.chain.ecosystem], ladder.chain.place(ladder.folder, tier), CONTEXT)


def _folder(text: str, names: list[str]) -> tuple[str, Path]:
    name, equals, rest = text.partition("=")
    return (name, Path(rest)) if equals and name in names else ("", Path(text))


def workbench(member: Member, pack_path: str, out: Path, max_tokens: int) -> Workbench:
    """A workbench over a pack. A usage error for a pack that cannot be used."""
    from harness.packs.model import PackError
    from harness.workbench.files import pack_at
    from harness.workbench.verdicts import CannotJudgeError, evaluator_of
    from harness.workbench.workflows import Workbench

    try:
        pack = pack_at(pack_path)
        for task in pack.tasks:
            evaluator_of(task)
    except (PackError, CannotJudgeError) as wrong:
        raise click.UsageError(str(wrong)) from None
    return Workbench(member, pack, out, tell, max_tokens)


def earlier(path: Path, kind: type[Any]) -> Any:
    """The run that a folder holds, None where there is none."""
    from harness.workbench.files import run_at
    from harness.workbench.record import RunError

    try:
        found = run_at(path)
    except RunError as wrong:
        raise CouldNotRunError(f"{wrong}\n  -> choose another --out, or remove it") from None
    if found is not None and not isinstance(found, kind):
        raise CouldNotRunError(f"{path} holds a run of another command ({found.kind})")
    return found


def leave(out: Path, run: Run) -> None:
    """Write a run and its report, and print the report."""
    from checklists.workbench.writing import to_markdown, write_report
    from harness.workbench.files import keep

    try:
        keep(out / f"{run.kind}.json", run)
        write_report(out, run)
    except OSError as failure:
        raise CouldNotRunError(cannot_write(failure)) from None
    click.echo(to_markdown(run), nl=False)
    click.echo(f"report: {out / run.kind}.md, .html", err=True)


@contextmanager
def problems_said() -> Iterator[None]:
    """What can go wrong while measuring, as one message each."""
    from harness.running import GridChangedError
    from harness.workbench.ledger import LedgerError
    from harness.workbench.registry import RegistryError
    from harness.workbench.workflows import WorkbenchError
    from results.episode_journal import EpisodeJournalError
    from stacks.engine import EngineError
    from stacks.weights import WeightsError

    try:
        yield
    except KeyboardInterrupt:
        tell("stopped: every answer so far is kept, and the same command carries on")
        raise
    except GridChangedError as changed:
        raise CouldNotRunError(f"answers on record are not used again: {changed}") from None
    except (EpisodeJournalError, WorkbenchError, LedgerError, RegistryError, EngineError, WeightsError) as wrong:
        raise CouldNotRunError(str(wrong)) from None
    except OSError as failure:
        raise CouldNotRunError(f"{failure.filename or 'a file'}: {failure.strerror or failure}") from None
