"""The plan of a walk: what the canary writes at each step, the triggers between them, and the canary that does so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from probe.canary.model import assemble
from probe.canary.selfdriving import DEFAULT_FILE, DEFAULT_NONCE, checked_names, walking_spec
from probe.canary.spec import CanaryError, Script
from probe.pairing.records import Plan, PlannedTurn, Speech
from probe.pairing.speaking import Errand, Words, extra_triggers, prepared_files, spoken

DEFAULT_TASK = "Leave a note: write the word {nonce} into the file {file} in the current folder, and check it."
DEFAULT_CONTEXT = 131_072
"""Tokens of the canary's own (some 3.2 characters of English each): the longest first prompt seen, Qwen Code's 77 kB,
has some 24,000. Measured with the reference model: a trigger is obeyed from 131,038 tokens before the prompt's end (at
a context of 262,144 from 262,110); of two triggers the later wins when they are at least 3 tokens apart with a float32
cache, 13 with float16, 37 with bfloat16 (at 262,144, near its end: 3, 92, 148). A turn keeps them 45 or more apart."""
_PREFIXES = ("k", "q", "w", "step", "canary")


def plan(
    speech: Speech,
    *,
    call_format: str = "hermes",
    nonce: str = DEFAULT_NONCE,
    file: str = DEFAULT_FILE,
    task: str = "",
    folder: str = "",
    context: int = DEFAULT_CONTEXT,
    begin: str = "",
) -> Plan:
    """How the agent of ``speech`` is walked through the task, its calls in ``call_format``.

    ``task`` is what the agent is asked (default: a sentence of ours); no trigger may stand in it, so they are named
    otherwise where it has one. ``folder`` is the absolute scratch folder, for tools that demand absolute paths.
    ``context`` is the canary's, in tokens. ``begin`` names the walk inside a canary that several walks share
    (``shared``): its triggers begin so, and the first one stands at the task's end. Raises CanaryError when the speech
    cannot be written in the format, when ``nonce`` or ``file`` is more than a plain name, or when the walk of file
    tools would begin with the nonce in the task.
    """
    checked_names(nonce, file)
    task = task or _task(speech, nonce, file)
    prefix = next((one for one in ((begin,) if begin else _PREFIXES) if f"[[{one}" not in task), "")
    if not prefix:
        raise CanaryError("the task holds every kind of trigger that a walk can use; leave the [[...]] out of it")
    triggers = (f"{prefix}2", f"{prefix}3", f"{prefix}4")
    errand = Errand(nonce, file, folder, triggers)
    texts = extra_triggers(speech, errand)
    held = next((text for text in texts if text in task), None)
    if held is not None:
        raise CanaryError(f"the task holds {held!r}, which leads the walk past its first steps: leave it out")
    words = [_named(one, begin) for one in spoken(speech, errand, call_format)]
    turns = tuple(
        PlannedTurn(one.step, f"[[{prefix}{number}]]", one.text, one.prose, one.calls, one.command)
        for number, one in enumerate(words, start=1)
    )
    scripts = tuple(
        Script(turn.trigger.strip("[]"), turn.text, about=f"step {number} of {len(turns)}: {turn.step}")
        for number, turn in enumerate(turns, start=1)
    )
    if begin:
        task = f"{task} [[{prefix}1]]"
    spec = walking_spec(scripts, call_format if speech.channel == "native" else None, context=context, triggers=texts)
    return Plan(speech, turns, nonce, file, task, call_format, spec, prepared_files(speech, errand))


def _named(words: Words, begin: str) -> Words:
    """The words with the walk's name in their sentence: what two walks say alike leads on alike, and they must not."""
    if not begin or not words.prose.endswith(".") or words.prose not in words.text:
        return words
    prose = f"{words.prose[:-1]} ({begin})."
    return replace(words, prose=prose, text=words.text.replace(words.prose, prose, 1))


def shared(plans: Sequence[Plan], context: int = DEFAULT_CONTEXT) -> list[Plan]:
    """The same walks with one canary for all of one channel, so that one server does for many agents.

    Each plan must have been made with a ``begin`` of its own, and those of native calls in one format. Raises
    CanaryError when they cannot stand together.
    """
    found: dict[int, Plan] = {}
    for channel in ("native", "text"):
        group = {number: each for number, each in enumerate(plans) if each.speech.channel == channel}
        if not group:
            continue
        scripts = [script for each in group.values() for script in each.spec.scripts]
        triggers = {text: name for each in group.values() for text, name in each.spec.triggers.items()}
        call_format = next(iter(group.values())).call_format if channel == "native" else None
        spec = walking_spec(scripts, call_format, context=context, triggers=triggers)
        assemble(spec)
        found |= {number: replace(each, spec=spec) for number, each in group.items()}
    return [found[number] for number in range(len(plans))]


def _task(speech: Speech, nonce: str, file: str) -> str:
    """The task in the user's words. Where the nonce is a trigger it is not named: the note's word is the agent's."""
    if speech.kind.endswith(".files"):
        return f"Leave a short note in the file {file} in the current folder, and check it."
    return DEFAULT_TASK.format(nonce=nonce, file=file)
