"""The verdict on a pairing: does the agent work with the server, and if not, who broke which step. Pure.

The model cannot be at fault: what it wrote in answer to every request is known. What is left are the agent, its
configuration, the server's configuration, the stack, and what stands between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from probe.pairing.gateway.gateway_findings import gateway_findings
from probe.pairing.gateway.side_difference import SideDifference
from probe.pairing.gateway.sides import compare_again, compare_sides, paired
from probe.pairing.records import STEP_NAMES, AgentRun, Finding, PairVerdict, Plan, StepSeen, VerdictKind
from probe.pairing.verdict.agent_side import no_request, not_taken, unevenly_ended
from probe.pairing.verdict.case import Case
from probe.pairing.verdict.delivered import findings_of
from probe.pairing.verdict.in_run import across, asked_again, gist
from probe.pairing.verdict.server_end import crossed_a_close, cut_off, server_died
from probe.pairing.verdict.server_side import ServerSide
from probe.pairing.verdict.walk import Asked, Walk, recognised, walk_of, without_plan
from results.exchange import Exchange

__all__ = ["ServerSide", "judge"]

_SLIGHT = frozenset(
    {
        "transport.buffered",
        "protocol.usage_absent",
        "truncation.context_cut_silently",
        "template.tools_absent",
        "parser.dropped",
        "engine.constrained",
    }
)
"""Faults beside an answer that came whole, which do not explain why an agent did not take it."""


_OF_DESPAIR = frozenset({"task.no_stop", "transport.client_gone"})
"""What an agent does with answers that it cannot use: asks the same again, leaves before their end. Where somebody else
broke the walk, that is no fault of its own."""


def judge(
    plan: Plan | None,
    exchanges: Sequence[Exchange],
    agent_run: AgentRun,
    *,
    behind: Sequence[Exchange] | None = None,
    again: Sequence[tuple[Exchange, Exchange]] | None = None,
    server: ServerSide,
    agent_name: str,
) -> PairVerdict:
    """The verdict. `exchanges` are those of the agent's side in any order. Where something stands between, `behind` are
    the exchanges between it and the server, if they were recorded; else `again` the agent's exchanges, each with the
    same request sent straight to the server. `plan` is None where the agent never asked for anything to plan by.
    """
    if plan is None:
        return _without_plan(exchanges, agent_run, server, agent_name)
    server = recognised(server, behind or exchanges)
    case = Case(plan, server, agent_name, agent_run, sure=server.direct or behind is not None)
    walk = cut_off(case, walk_of(plan, exchanges, server))
    origin = cut_off(case, walk_of(plan, behind, server)) if behind is not None else walk
    between = compare_sides(exchanges, behind) if behind is not None else compare_again(again or ())
    touched = {difference.attempt for difference in between}
    if behind is not None:  # What the server answered to a request that was changed is no doing of its own.
        touched |= {
            inner.attempt
            for pair in paired(exchanges, behind)
            if pair.front.attempt in touched
            for inner in pair.behind
        }
    return _Bench(case, walk, origin, tuple(between), frozenset(touched)).verdict()


@dataclass(frozen=True, slots=True)
class _Bench:
    """One judgement under way. `walk` is the agent's side, `origin` the server's (the same without a gateway),
    `between` what the comparison of the two found, `touched` the attempts that it found something on."""

    case: Case
    walk: Walk
    origin: Walk
    between: tuple[SideDifference, ...]
    touched: frozenset[int]

    def verdict(self) -> PairVerdict:
        """Steps, what broke the first that is open, and every other fault."""
        steps = self.steps()
        open_at = next((number for number, step in enumerate(steps) if not step.done), None)
        broken = self.broken(open_at) if open_at is not None else self.wrong_file(steps)
        faults = self.faults(open_at, broken)
        if broken is None:
            kind: VerdictKind = "pairs_with_faults" if faults else "pairs"
            return PairVerdict(kind, self._fine(faults), steps, None, faults)
        kind = "undecided" if self._undecided(broken, open_at) else "broken"
        if kind == "undecided" and not broken.decide_by:
            broken = replace(broken, decide_by=_AGAIN)
        where = f" at the step `{broken.step}`" if broken.step else ""
        word = "broken" if kind == "broken" else "undecided"
        return PairVerdict(kind, f"{word}{where}: {broken.said}", steps, broken, faults)

    # ------------------------------------------------------------------ steps
    def steps(self) -> tuple[StepSeen, ...]:
        """What became of each turn of the plan."""
        return tuple(self._step(number) for number in range(len(self.walk.plan.turns)))

    def _step(self, number: int) -> StepSeen:
        asked = self.walk.of_turn(number)
        came = next((each for each in asked if each.came != "no"), None)
        carried = came or (asked[-1] if asked else None)
        times = f"asked for {len(asked)} times" if len(asked) > 1 else ""
        attempt = carried.attempt if carried is not None else None
        step = self.walk.plan.turns[number].step
        return StepSeen(step, attempt, came is not None, self._done(number, asked, came), times)

    def _done(self, number: int, asked: Sequence[Asked], came: Asked | None) -> bool:
        last = len(self.walk.plan.turns) - 1
        if self.walk.reached() > number or (self.walk.plan.turns[number].step == "write" and self.file_right()):
            return True
        if number < last:
            return False
        run = self.case.run
        if self.walk.plan.turns[number].step == "write":
            return False  # Else the file would be right.
        # An end that was lost on its way, and an agent that ends all the same: what was wanted is done.
        ended_well = run.ending == "exited" and run.exit_code == 0 and self.file_right() and bool(asked)
        return came is not None or ended_well

    def file_right(self) -> bool:
        """Whether the file holds what the task wants."""
        held = self.case.run.file
        return held is not None and held.decode("utf-8", "replace").strip() == self.walk.plan.nonce

    def wrong_file(self, steps: Sequence[StepSeen]) -> Finding | None:
        """Every step was walked and the file is not there, or holds something else."""
        if self.file_right():
            return None
        held, agent, plan = self.case.run.file, self.case.agent, self.walk.plan
        write = next((step for step in steps if step.step == "write"), None)
        if held is None:
            said = f"every command was answered, and there is no {plan.file} in the scratch folder"
            remedy = (
                f"{agent} runs its commands elsewhere (another folder, a container): let it work where it was started"
            )
        else:
            said = f"{plan.file} does not hold {plan.nonce!r}"
            remedy = f"look at how {agent} passes a command to its shell"
        quote = (held or b"").decode("utf-8", "replace")[:200]
        attempt = write.attempt if write is not None else None
        return Finding("task.state_mismatch", "client", agent, said, "write", attempt, quote=quote, remedy=remedy)

    # ------------------------------------------------------------------ what broke it
    def broken(self, number: int) -> Finding:
        """What explains that a turn was not completed."""
        while number > 0 and not self.walk.of_turn(number):
            number -= 1
        asked = self.walk.of_turn(number)
        died = server_died(self.case, asked, self.walk.asked)
        if died is not None:
            return died
        if not asked:
            return no_request(self.case, self.walk.asked)
        found = self._on_step(number)
        if all(each.came == "no" for each in asked):
            return found[0] if found else self._nothing_came(asked[-1])
        hard = [finding for finding in found if finding.code not in _SLIGHT]
        taken = not_taken(self.case, self.walk, number)
        if hard and not taken.shown:
            agent, step = self.case.agent, self.walk.plan.turns[number].step
            return replace(hard[0], said=f"{hard[0].said}; {agent} did not go on from it", step=hard[0].step or step)
        damaged = [finding for finding in hard if finding.code.startswith(("parser.", "engine."))]
        return replace(damaged[0], step=damaged[0].step or taken.finding.step) if damaged else taken.finding

    def _on_step(self, number: int) -> list[Finding]:
        """The findings on a turn's exchanges: what stands between first, then the server's own."""
        fronts = self.walk.of_turn(number)
        attempts = {asked.attempt for asked in fronts}
        mine = [difference for difference in self.between if difference.attempt in attempts]
        found = [self._between([difference])[0] for difference in mine]
        if found and all(asked.attempt in self.touched for asked in fronts):
            return found
        for asked in self.origin.of_turn(number):
            if asked.attempt not in self.touched:
                found += findings_of(self.case, self.origin, asked)
        return found

    def _between(self, differences: Sequence[SideDifference]) -> list[Finding]:
        steps = {asked.attempt: step for asked in self.walk.task if (step := self.case.step_of(asked)) is not None}
        return gateway_findings(differences, steps=steps)

    def _nothing_came(self, asked: Asked) -> Finding:
        """An answer that was of no use on the agent's side, and of which the other side shows nothing."""
        found = findings_of(self.case, self.walk, asked)
        return found[0] if found else self.case.finding(asked)

    def _undecided(self, broken: Finding, open_at: int | None) -> bool:
        """Whether it is open that they pair at all."""
        run = self.case.run
        if open_at is None:
            return False
        if broken.code == "not_run.plan_misfit" or run.ending == "interrupted":
            return True
        asked = self.walk.of_turn(max(0, self.walk.reached()))
        agents_own = broken.at_fault == "client" and broken.code.startswith("task.")
        if run.ending == "timeout" and agents_own and self.walk.reached() > 0 and len(asked) <= 1:
            return True
        return any(each.exchange.damaged for each in asked) and broken.at_fault == "undetermined"

    # ------------------------------------------------------------------ everything else
    def faults(self, open_at: int | None, broken: Finding | None) -> tuple[Finding, ...]:
        """Every other fault, one of each kind, in order of the wire."""
        found = self._between(self.between)
        for asked in self.origin.asked:
            if asked.attempt not in self.touched:
                found += self._got_over(asked, findings_of(self.case, self.origin, asked))
        found += [each for each in across(self.case, self.origin) if each.attempt not in self.touched]
        found += asked_again(self.case, self.walk)
        if open_at is None:
            found += unevenly_ended(self.case, self.walk)
        found = [finding for finding in found if not self._same(finding, broken)]
        if broken is not None and broken.at_fault != "client":
            found = [finding for finding in found if finding.code not in _OF_DESPAIR]
        found.sort(key=lambda finding: (finding.attempt is None, finding.attempt or 0))
        return tuple(gist(found))

    def _got_over(self, asked: Asked, found: list[Finding]) -> list[Finding]:
        """The findings on an exchange; where the agent asked again and got its answer then, the first says so."""
        if not found or asked.kind != "task" or asked.came != "no" or asked.number is None:
            return found
        later = (
            each for each in self.origin.of_turn(asked.number) if each.attempt > asked.attempt and each.came != "no"
        )
        retry = next(later, None)
        if retry is None:
            return found
        if crossed_a_close(asked.exchange):
            return []
        said = f"{found[0].said}; {self.case.agent} asked again and got its answer (attempt {retry.attempt})"
        return [replace(found[0], said=said), *found[1:]]

    def _same(self, finding: Finding, broken: Finding | None) -> bool:
        """Whether a finding says what is said already: the same thing, or what follows from it in the same answer."""
        if broken is None:
            return False
        if (finding.code, finding.who, finding.step) == (broken.code, broken.who, broken.step):
            return True
        return finding.attempt == broken.attempt and finding.code.startswith("protocol.") and finding.who == broken.who

    def _fine(self, faults: Sequence[Finding]) -> str:
        steps, agent = len(self.walk.plan.turns), self.case.agent
        said = f"{agent} pairs with {self.case.server.title}: {steps} of {steps} steps done"
        if not faults:
            return said
        return f"{said}, with {len(faults)} fault{'' if len(faults) == 1 else 's'}: {faults[0].said}"


_AGAIN = "comparison_request: the same walk again, with more time (`--timeout`), to its end"


def _without_plan(exchanges: Sequence[Exchange], run: AgentRun, server: ServerSide, agent: str) -> PairVerdict:
    """The agent never asked for a turn: every step is open."""
    case = Case(None, server, agent, run, sure=server.direct)
    steps = tuple(StepSeen(step, None, delivered=False, done=False) for step in STEP_NAMES)
    asked = without_plan(exchanges, server)
    broken = server_died(case, (), asked) or no_request(case, asked)
    if run.ending == "interrupted":
        broken = replace(broken, decide_by=broken.decide_by or _AGAIN)
        return PairVerdict("undecided", f"undecided: {broken.said}", steps, broken)
    return PairVerdict("broken", f"broken before the first step: {broken.said}", steps, broken)
