"""Reading packs: the format, its errors with their lines, includes, the content hash, and AQBE's own form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from harness.packs.building import format_schema
from harness.packs.loading import content_hash, load_pack, load_packs
from harness.packs.model import Arguments, PackError, RegexChecks, Rule, SchemaCheck

GOOD = """\
format: 1
pack: sums
version: 1.0.0
tasks:
  - id: add
    category: reasoning
    system: Answer with a number.
    prompt: What is 2 + 2?
    eval: regex_checks
    checks:
      - {name: four, pattern: '\\b4\\b', hard: true}
      - {name: short, max_words: 5, points: 1}
    samples:
      pass: ["4"]
      fail: ["5", {answer: "it is 4, as far as I can tell", fails: [short]}]
"""
CALL = """\
format: 1
pack: calls
version: "2"
tasks:
  - id: book
    category: tool_use
    prompt: Book a table for two at eight.
    tools:
      - name: book
        parameters: {type: object, properties: {people: {type: integer}, note: {type: string}}, required: [people]}
    evaluators:
      - eval: arguments
        tool: book
        expected: {people: 2, note: a quiet table near the window}
        rules: {people: number, note: {rule: semantic, threshold: 0.7}}
      - {eval: schema, schema: {type: object}}
"""


def written(folder: Path, text: str, name: str = "pack.yaml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_a_pack_is_what_its_file_says(tmp_path: Path) -> None:
    pack = load_pack(written(tmp_path, GOOD).parent)
    (task,) = pack.tasks
    assert (pack.name, pack.version, pack.dialect, pack.categories) == ("sums", "1.0.0", "stacktap", ("reasoning",))
    assert [message.role for message in task.messages] == ["system", "user"]
    (checks,) = task.evaluators
    assert isinstance(checks, RegexChecks)
    assert [(one.name, one.points, one.hard, one.line) for one in checks.checks] == [
        ("four", 2, True, 11),
        ("short", 1, False, 12),
    ]
    assert [(one.passes, one.fails) for one in task.samples] == [(True, ()), (False, ()), (False, ("short",))]


def test_calls_with_rules(tmp_path: Path) -> None:
    (task,) = load_pack(written(tmp_path, CALL)).tasks
    call, schema = task.evaluators
    assert isinstance(call, Arguments)
    assert isinstance(schema, SchemaCheck)
    assert call.rules == {"people": Rule("number"), "note": Rule("semantic", (), 0.7)}
    assert task.tools[0]["function"]["name"] == "book"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("'\\b4\\b'", "'(4'", "line 11: check 'four': no valid pattern"),
        ("regex_checks", "regexchecks", "line 9: no evaluator 'regexchecks'; there are regex_checks, json_fields"),
        ("category: reasoning", "categry: reasoning", "line 5: "),
        ("    prompt: What is 2 + 2?\n", "", "line 5: task add: give `prompt` or `messages`"),
        ("hard: true", "haard: true", "line 11: "),
        ("points: 1", "points: -1", "line 12: "),
        ("fails: [short]", "fails: [brief]", "task add has no check 'brief'; it has: four, short"),
        ("name: short", "name: four", "the check 'four' stands twice"),
        ("version: 1.0.0\n", "", "a pack has a name and a version"),
        ("format: 1", "format: 2", "line 1: format 2 is not known"),
        ("    checks:", "    checks: [", "no valid YAML"),
        ("    system:", "    prompt: x\n    system:", "'prompt' stands twice"),
        ("system: Answer", "system: !!python/name:os.system Answer", "line 7: "),
        ("    eval: regex_checks\n", "    eval: regex_checks\n    expected: {x: 1}\n", "there is no such field"),
    ],
)
def test_an_error_names_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(PackError) as raised:
        load_pack(written(tmp_path, GOOD.replace(old, new)))
    assert said in str(raised.value)
    assert ", line " in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("a quiet table near the window", "room_12", "line 15: rule semantic for 'note': the expected value 'room_12'"),
        ("people: number", "people: approx", "line 15: "),
        ("people: number", "guests: number", "line 15: a rule for 'guests'"),
        ("tool: book", "tool: cook", "the tool 'cook' is not offered; there are: book"),
        ("schema: {type: object}", "schema: {$ref: 'http://127.0.0.1:9/x'}", "nothing is ever fetched"),
        ("schema: {type: object}", "schema: {$ref: other.json}", "nothing is ever fetched"),
        ("schema: {type: object}", "schema: {type: objekt}", "the schema: "),
        ("schema: {type: object}", "schema: {$ref: '#/$defs/none'}", "leads nowhere"),
        ("schema: {type: object}", "schema: {pattern: '('}", "no valid pattern"),
    ],
)
def test_what_no_rule_and_no_schema_may_be(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(PackError) as raised:
        load_pack(written(tmp_path, CALL.replace(old, new)))
    assert said in str(raised.value)


def test_two_tasks_of_one_id(tmp_path: Path) -> None:
    again = GOOD + GOOD[GOOD.index("  - id") :]
    with pytest.raises(PackError, match=r"line 16: the task 'add' stands twice \(first in .*line 5\)"):
        load_pack(written(tmp_path, again))


def test_includes_come_first_and_a_circle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    body = GOOD[GOOD.index("tasks:") :]
    written(tmp_path, "format: 1\n" + body.replace("add", "sub"), "more/a.yaml")
    pack = load_pack(written(tmp_path, GOOD + "include: [more/a.yaml]\n"))
    assert [task.id for task in pack.tasks] == ["sub", "add"]
    assert [file.path for file in pack.files] == ["more/a.yaml", "pack.yaml"]
    written(tmp_path, "format: 1\ninclude: [b.yaml]\ntasks: []\n", "more/a.yaml")
    written(tmp_path, "format: 1\ninclude: [a.yaml]\ntasks: []\n", "more/b.yaml")
    with pytest.raises(PackError, match=r"line 2: a circle of includes: more/a.yaml -> more/b.yaml -> more/a.yaml"):
        load_pack(tmp_path)


def test_nothing_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    written(tmp_path, "format: 1\ntasks: []\n", "secret.yaml")
    (tmp_path / "inside" / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    for name in ("../secret.yaml", str(tmp_path / "secret.yaml"), "link.yaml"):
        path = written(tmp_path / "inside", GOOD + f"include: [{json.dumps(name)}]\n")
        with pytest.raises(PackError, match="outside of the pack's folder"):
            load_pack(path)


def test_a_skill_stands_under_the_system_message_and_counts_in_the_hash(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace("    prompt", "    skill: steps.md\n    prompt"))
    written(tmp_path, "1. Add.\n", "steps.md")
    first = load_pack(path)
    assert first.tasks[0].system == "Answer with a number.\n\n1. Add."
    written(tmp_path, "1. Add.\r\n", "steps.md")
    assert load_pack(path).digest == first.digest
    written(tmp_path, "2. Add.\n", "steps.md")
    assert load_pack(path).digest != first.digest


def test_the_rule_of_the_hash() -> None:
    import hashlib

    parts = b"a.yaml\x003\x00x\ny" + b"b/c.md\x000\x00"
    assert content_hash({"b/c.md": b"", "a.yaml": b"x\r\ny"}) == hashlib.sha256(parts).hexdigest()


def test_ten_megabytes_are_refused_before_they_are_parsed(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace("What is", "x" * (10 << 20)))
    with pytest.raises(PackError, match="holds more than 4194304 bytes"):
        load_pack(path)
    path = written(tmp_path, GOOD.replace("What is", "x" * (2 << 20)))
    with pytest.raises(PackError, match="line 5: task add: its messages hold 20971"):
        load_pack(path)


def test_a_bomb_of_aliases_is_refused(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(PackError, match="too many values"):
        load_pack(written(tmp_path, "\n".join(levels)))
    with pytest.raises(PackError, match="too many values"):
        load_pack(written(tmp_path, "a: &a [*a]"))


AQBE = """\
pack_name: general
version: 1.0
tasks:
  - id: list
    category: structured_output
    description: "A list"
    system: "Follow the format."
    prompt: "List two."
    eval: regex_checks
    checks:
      - {name: has_two, pattern: '^2\\.', points: 1, remark: not read}
      - {pattern: "one", case_insensitive: true}
      - {max_words: 40}
  - {id: nothing, system: x, prompt: y}
  - {id: fields, system: x, prompt: y, eval: json_fields, expected_fields: [a], expected_values: null}
"""


def test_aqbes_form_is_read_unchanged(tmp_path: Path) -> None:
    pack = load_pack(written(tmp_path, AQBE, "general_agentic.yaml"))
    assert (pack.name, pack.version, pack.dialect) == ("general", "1.0", "aqbe")
    assert [task.id for task in pack.tasks] == ["list", "nothing", "fields"]
    (checks,) = pack.tasks[0].evaluators
    assert isinstance(checks, RegexChecks)
    assert [check.name for check in checks.checks] == ["has_two", "one", "max_words_40"]
    assert len(pack.warnings) == 1
    assert "line 14: the task has no check" in pack.warnings[0]


def test_an_unknown_evaluator_of_aqbes_fails_at_load(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="line 9: no evaluator 'llm_judge'"):
        load_pack(written(tmp_path, AQBE.replace("eval: regex_checks", "eval: llm_judge")))


def test_a_folder_of_packs(tmp_path: Path) -> None:
    written(tmp_path, GOOD, "b.yaml")
    written(tmp_path, AQBE, "a.yaml")
    assert [pack.name for pack in load_packs([tmp_path])] == ["general", "sums"]
    written(tmp_path, GOOD, "c.yaml")
    with pytest.raises(PackError, match="two packs are named 'sums'"):
        load_packs([tmp_path])
    with pytest.raises(PackError, match="there is no pack at"):
        load_packs([tmp_path / "none.yaml"])


def test_the_shipped_schemas_are_schemas() -> None:
    for dialect in ("stacktap", "aqbe"):
        Draft202012Validator.check_schema(format_schema(dialect))  # type: ignore[arg-type]
