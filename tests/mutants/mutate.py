"""Small faults put into source text, one at a time: what a slip of the hand would do.

A fault is a place in a module's syntax tree and the text that stands there instead; the rest of the file stays as it
is. Left alone: documentation, annotations, words for people, regular expressions (their tests are their cases), code
for errors of programming, and how much of a long text is looked at (`text[:4000]`: one more is as good).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OTHER_NAME = {"min": "max", "max": "min", "any": "all", "all": "any"}
_WORDS = frozenset(
    {"why", "detail", "remedy", "decide_by", "message", "description", "source", "title", "models", "parsers"}
)
"""Arguments that are words for people."""
_MANY = 64
_NOT_TESTED = frozenset({"field", "TypeVar", "dataclass", "NewType", "cast"})


@dataclass(frozen=True, slots=True)
class Mutant:
    """Bytes `start` to `end` of `path` become `text`. `kind` says what kind of slip it is."""

    path: str
    line: int
    start: int
    end: int
    old: str
    text: str
    kind: str

    @property
    def id(self) -> str:
        """The same for the same fault in the same code."""
        said = f"{self.path}:{self.line}:{self.start}:{self.old}:{self.text}"
        return sha256(said.encode()).hexdigest()[:12]

    def applied(self, source: bytes) -> bytes:
        """The source with the fault in it. What follows stays on its line."""
        lines = "\n" * (self.old.count("\n") - self.text.count("\n"))
        text = f"{self.text[:-1]}{lines})" if self.text.endswith(")") else self.text + lines
        return source[: self.start] + text.encode() + source[self.end :]

    def parses(self, source: bytes) -> bool:
        """Whether the source with the fault in it is still a module."""
        try:
            ast.parse(self.applied(source))
        except SyntaxError:
            return False
        return True


def mutants(path: str, source: bytes) -> list[Mutant]:
    """Every fault that can be put into a module."""
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found = []
    for node, new, kind in _faults(tree):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        text = (
            new if isinstance(new, str) else f"({ast.unparse(new)})" if isinstance(new, ast.expr) else ast.unparse(new)
        )
        old = source[start:end].decode()
        found.append(Mutant(path, node.lineno, start, end, old, text, kind))
    return found


_Fault = tuple[ast.expr | ast.stmt, ast.AST | str, str]


def _faults(tree: ast.AST) -> Iterator[_Fault]:
    for node in _code(tree):
        if isinstance(node, ast.expr):
            yield from _expression(node)
        elif isinstance(node, ast.stmt):
            yield from _statement(node)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Every node whose change can be noticed by a test that looks at behaviour."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _left_alone(node, child):
                yield from _code(child)


def _left_alone(parent: ast.AST, child: ast.AST) -> bool:
    if isinstance(child, (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)):
        return True
    if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
        return True
    if isinstance(child, ast.keyword) and child.arg in _WORDS:
        return True
    if isinstance(child, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in child.targets):
        return True
    if isinstance(parent, ast.Slice) and isinstance(child, ast.Constant):
        return isinstance(child.value, int) and child.value >= _MANY
    if isinstance(parent, ast.Call) and ast.unparse(parent.func) == "CallFormat":
        return child in parent.args[1:2]  # its title
    if isinstance(child, ast.Call):
        called = ast.unparse(child.func)
        return called.startswith("re.") or called in _NOT_TESTED
    return False


def _expression(node: ast.expr) -> Iterator[_Fault]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
        other = _COMPARE[type(node.ops[0])]()
        yield node, ast.Compare(node.left, [other, *node.ops[1:]], node.comparators), "comparison"
    elif isinstance(node, ast.BoolOp):
        other_op: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, ast.BoolOp(other_op, node.values), "and/or"
        fewer = node.values[0] if len(node.values) == 2 else ast.BoolOp(node.op, node.values[:-1])
        yield node, fewer, "condition left out"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, node.operand, "not"
    elif isinstance(node, ast.IfExp):
        yield node, ast.IfExp(node.test, node.orelse, node.body), "branches swapped"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield node, ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right), "+/-"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _OTHER_NAME:
        other_name = ast.Name(_OTHER_NAME[node.func.id], ast.Load())
        yield node, ast.Call(other_name, node.args, node.keywords), "other function"
    elif isinstance(node, ast.Constant):
        yield from _constant(node)


def _constant(node: ast.Constant) -> Iterator[_Fault]:
    value = node.value
    if isinstance(value, bool):
        yield node, str(not value), "bool"
    elif isinstance(value, int) and abs(value) < 10_000:
        yield node, str(value + 1), "number"
    elif isinstance(value, str) and (len(value) < 24 and value.count(" ") < 2):
        yield node, repr(value + "\u00a4"), "text"


def _statement(node: ast.stmt) -> Iterator[_Fault]:
    if isinstance(node, (ast.If, ast.While)):
        yield node.test, ast.UnaryOp(ast.Not(), node.test), "condition negated"
    elif isinstance(node, ast.Return) and node.value is not None:
        # None for False is no fault where only the truth of it counts; `True` for it is another kind.
        if not (isinstance(node.value, ast.Constant) and (node.value.value is None or node.value.value is False)):
            yield node, "return None", "return None"
    elif _acts(node):
        yield node, "pass", "statement left out"
    elif isinstance(node, ast.Continue):
        yield node, "break", "break"
    elif isinstance(node, ast.Break):
        yield node, "continue", "continue"


def _acts(node: ast.stmt) -> bool:
    """Whether a statement is there for what it does."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    return isinstance(node, ast.AugAssign) or (
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)
    )
