"""Numbers and names of the report in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.dense.experiment.records import Configuration, Experiment, Share

MODES = {
    "success": "completed",
    "malformed_json": "a call that cannot be read",
    "hallucinated_tool": "a tool that is not there",
    "wrong_tool": "another tool than needed",
    "right_tool_wrong_args": "the right tools, used wrongly or too few",
    "tool_call_loop": "the same calls over and over",
    "failure_to_stop": "never came to an end",
    "parse_recovery_triggered": "a call outside of its own format",
    "not_run": "ended by the set-up, not counted",
}
"""Dense Bench's modes in plain words."""
STEPS = {
    "ok.text_call": "valid calls",
    "ok.native_call": "valid calls",
    "ok.final_answer": "answers in words",
    "ok.no_call_needed": "answers in words",
    "model.no_call": "answers in words where a call was due",
    "model.malformed_call": "calls that cannot be read",
    "model.unknown_tool": "calls of a tool that is not there",
    "model.withheld_tool": "calls of a tool that is withheld",
    "model.invalid_arguments": "calls whose arguments do not fit",
    "model.loop": "repeated calls",
    "model.degenerate_repeat": "texts that repeat themselves to the end",
}
NON_CLAIMS = (
    "This is no leaderboard: no model is said to be better than another in general.",
    "There is no arm with a simulated user: what the user says is fixed, and no one answers a question of the model.",
    "There is no constrained arm: the model wrote freely; what a grammar or schema would change is not measured.",
    "The range is thin: few tasks lie between always and never; what all or none complete tells nothing apart.",
    "One domain (files in folders), one suite, one set of seeds: other tasks may go the other way.",
    "A difference is between these artefacts as they were made here, not between bit widths as such.",
)
"""What is not claimed (Dense Bench part 4 prints the like; S0-37)."""


def percent(value: float | None) -> str:
    """`62.5 %`."""
    return "" if value is None else f"{100 * value:.1f} %"


def rate(found: Share) -> str:
    """`62.5 %`, or `rej`, `n/r`, `none`: a rate without runs is not 0."""
    return found.word or "n/r" if found.value is None else percent(found.value)


def ends(found: Share) -> str:
    """`30.6 to 86.3`, in per cent."""
    return "" if found.low is None or found.high is None else f"{100 * found.low:.1f} to {100 * found.high:.1f}"


def size(count: float) -> str:
    """Bytes, decimal: `1.24 GB`, `15.0 MB`."""
    return f"{count / 1e9:.2f} GB" if count >= 5e8 else f"{count / 1e6:.1f} MB"


def counts(found: Mapping[str, int], names: Mapping[str, str] | None = None) -> str:
    """`answers in words 12, valid calls 1`, the most frequent first."""
    summed: dict[str, int] = {}
    for key, count in found.items():
        word = (names or {}).get(key, key)
        summed[word] = summed.get(word, 0) + count
    ordered = sorted(summed.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{word} {count}" for word, count in ordered) or "none"


def weights(row: Configuration, *, full: bool = False) -> str:
    """What a configuration's weights are called; `fake-quantised` stands wherever they are. `full`: and what their
    values are held in."""
    made = row.weights
    label = made.label
    if made.fake and "fake-quantised" not in label:
        label = f"{label}, fake-quantised" if label else "fake-quantised"
    bits = "" if made.tensor_bits is None else f"{made.tensor_bits:.2f} bits per weight"
    return "; ".join(part for part in (label, bits, made.values if full else "") if part) or "not stated"


def fits(row: Configuration, budget: int) -> str:
    """Whether a configuration fits into so many bytes, and what that rests on."""
    memory = row.memory
    if memory is None:
        return "not known: no peak memory was measured"
    if row.weights.fake:
        if memory.estimate is None:
            return "not known: the peak is that of dequantised weights"
        return f"{'fits' if memory.estimate <= budget else 'does not fit'} (estimate)"
    return "fits" if memory.peak <= budget else "does not fit"


def runs_each(found: Experiment) -> str:
    """`20`, or `5 to 20`."""
    low, high = found.runs_each
    return str(low) if low == high else f"{low} to {high}"


def number(count: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def turns(failing: Mapping[str, int]) -> str:
    """Which message of the user went wrong first, in how many failed runs: `the first message 12, the third 1`."""
    order = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
    said = []
    for at, count in sorted((int(key), count) for key, count in failing.items() if key.isdigit()):
        word = order[at] if at < len(order) else f"{at + 1}th"
        said.append(f"the {word} message of the user {count}")
    return ", ".join(said) or "not stated"
