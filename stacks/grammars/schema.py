"""A JSON Schema (2020-12) as the grammar of a JSON text that fits it.

The grammar never allows what the schema forbids, and may allow less: keys stand in the declared order, keys that are
not declared are not written, numbers have at most 15 digits, one space may follow a comma or a colon. A keyword that
narrows the answer and cannot be said in a grammar makes the schema unexpressible, with the reason; a remote reference
is one, and is never fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stacks.formats.check import check_value
from stacks.formats.json_nodes import too_deep
from stacks.grammars.language import (
    Grammar,
    Named,
    Node,
    Repeat,
    Text,
    UnexpressibleError,
    chain,
    choice,
    finite,
    optional,
)
from stacks.grammars.numbers import integer_grammar, number_grammar
from stacks.grammars.strings import CHARACTER, CHARACTER_RULE, length, literal, string_grammar

ANY_VALUE = "value"
"""Name of the rule for any JSON value."""
_SPACE = optional(Text(" "))
_COMMA = chain(Text(","), _SPACE)
_UNSAYABLE = frozenset(
    {
        "not", "if", "then", "else", "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas",
        "dependencies", "contains", "minContains", "maxContains", "unevaluatedProperties", "unevaluatedItems",
        "$dynamicRef", "$recursiveRef",
    }
)  # fmt: skip
_TYPE_WORDS = (
    ("object", ("properties", "required", "additionalProperties", "minProperties", "maxProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems")),
    ("string", ("pattern", "minLength", "maxLength")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)
_MOST_LEADING_OPTIONAL = 24


def answer_grammar(schema: Any, title: str = "") -> Grammar:
    """The grammar of a whole answer that is one JSON value fitting ``schema``, without space around it.

    Raises :class:`UnexpressibleError` with the part of the schema that cannot be said.
    """
    builder = SchemaBuilder(schema)
    root = builder.value(schema, "$")
    return finite(Grammar(root, builder.rules, title))


class SchemaBuilder:
    """Builds the nodes for one schema document; ``rules`` collects what they refer to."""

    def __init__(self, document: Any, prefix: str = "") -> None:
        """``prefix`` keeps the rules of several documents in one grammar apart."""
        if isinstance(document, Mapping) and too_deep(document):
            raise UnexpressibleError("the schema nests too deep")
        self._document = document
        self._prefix = prefix
        self._merging = 0
        self.rules: dict[str, Node] = {}

    def value(self, schema: Any, path: str) -> Node:
        """The node for a value that fits a schema at ``path`` of the document."""
        if schema is True or schema == {}:
            return self._any()
        if not isinstance(schema, Mapping):
            raise UnexpressibleError(f"{path}: no answer can fit" if schema is False else f"{path}: it is no schema")
        try:
            return self._value(schema, path)
        except UnexpressibleError as error:
            text = str(error)
            raise UnexpressibleError(text if text.startswith("$") else f"{path}: {text}") from error

    def _value(self, schema: Mapping[str, Any], path: str) -> Node:
        unsayable = sorted(_UNSAYABLE & schema.keys())
        if unsayable:
            raise UnexpressibleError(f"{unsayable[0]} cannot be said in a grammar")
        if "$ref" in schema:
            return self._reference(schema, path)
        if "allOf" in schema:
            return self._merged(schema, path)
        if "const" in schema or "enum" in schema:
            return self._fixed(schema, path)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._either(schema, word, path)
        return choice([self._typed(kind, schema, path) for kind in _types(schema)])

    # ------------------------------------------------------------------ composition
    def _reference(self, schema: Mapping[str, Any], path: str) -> Node:
        target = schema["$ref"]
        if not isinstance(target, str) or not target.startswith("#"):
            raise UnexpressibleError("a reference leaves the schema; it is not fetched")
        if _narrowing(schema, "$ref"):
            raise UnexpressibleError("keywords beside $ref cannot be said in a grammar")
        name = f"{self._prefix}{target}"
        if name not in self.rules:
            self.rules[name] = Text("")  # a reference back to it finds the name
            self.rules[name] = self.value(self._resolved(target), f"{path}({target})")
        return Named(name)

    def _resolved(self, target: str) -> Any:
        found: Any = self._document
        for step in target[1:].split("/")[1:] if target != "#" else ():
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise UnexpressibleError(f"the reference {target[:80]} leads nowhere")
        if target != "#" and not target.startswith("#/"):
            raise UnexpressibleError(f"the reference {target[:80]} is an anchor, which is not followed")
        return found

    def _merged(self, schema: Mapping[str, Any], path: str) -> Node:
        """allOf of schemas that do not speak of the same keyword."""
        parts = schema["allOf"]
        if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
            raise UnexpressibleError("allOf is no list of schemas")
        merged = {word: value for word, value in schema.items() if word != "allOf"}
        for part in parts:
            for word, value in part.items():
                if word in merged and merged[word] != value and word not in _ANNOTATIONS:
                    raise UnexpressibleError(f"allOf speaks of {word} twice")
                merged[word] = value
        self._merging += 1
        if self._merging > 50:
            raise UnexpressibleError("allOf nests too deep")
        try:
            return self._value(merged, path)
        finally:
            self._merging -= 1

    def _fixed(self, schema: Mapping[str, Any], path: str) -> Node:
        """const and enum: the values that also fit what stands beside them."""
        values = [schema["const"]] if "const" in schema else schema["enum"]
        if not isinstance(values, list):
            raise UnexpressibleError("enum is no list")
        fitting = [value for value in values if _fits(value, schema)]
        if not fitting:
            raise UnexpressibleError("none of its fixed values fits it")
        return choice([literal(value) for value in fitting])

    def _either(self, schema: Mapping[str, Any], word: str, path: str) -> Node:
        options = schema[word]
        if not isinstance(options, list) or not options:
            raise UnexpressibleError(f"{word} is no list of schemas")
        kinds = [_types(option) if isinstance(option, Mapping) else () for option in options]
        beside = _narrowing(schema, word, "type")
        if beside:
            raise UnexpressibleError(f"{word} beside {beside[0]} cannot be said in a grammar")
        if word == "oneOf" and not _disjoint(options, kinds):
            raise UnexpressibleError("oneOf whose alternatives may overlap cannot be said in a grammar")
        outer = _types(schema) if "type" in schema else None
        if outer is not None and not all(set(each) <= set(outer) for each in kinds):
            raise UnexpressibleError(f"{word} allows types that the schema does not")
        return choice([self.value(option, f"{path}.{word}[{place}]") for place, option in enumerate(options)])

    # ------------------------------------------------------------------ types
    def _typed(self, kind: str, schema: Mapping[str, Any], path: str) -> Node:
        builders: dict[str, Callable[[], Node]] = {
            "null": lambda: Text("null"),
            "boolean": lambda: choice([Text("true"), Text("false")]),
            "integer": lambda: integer_grammar(schema),
            "number": lambda: number_grammar(schema),
            "string": lambda: self._with_characters(string_grammar(schema)),
            "array": lambda: self._array(schema, path),
            "object": lambda: self._object(schema, path),
            "any": self._any,
        }
        if kind not in builders:
            raise UnexpressibleError(f"its type {kind[:40]!r} is none of JSON's")
        return builders[kind]()

    def _with_characters(self, node: Node) -> Node:
        self.rules[CHARACTER] = CHARACTER_RULE
        return node

    def _any(self) -> Node:
        """Any JSON value, recursive."""
        if ANY_VALUE not in self.rules:
            text = self._with_characters(string_grammar({}))
            member = chain(text, Text(":"), _SPACE, Named(ANY_VALUE))
            scalars = [text, number_grammar({}), Text("true"), Text("false"), Text("null")]
            objects = chain(Text("{"), optional(_listed(member, 1, None)), Text("}"))
            arrays = chain(Text("["), optional(_listed(Named(ANY_VALUE), 1, None)), Text("]"))
            self.rules[ANY_VALUE] = choice([*scalars, objects, arrays])
        return Named(ANY_VALUE)

    def _array(self, schema: Mapping[str, Any], path: str) -> Node:
        least, most = length(schema, "minItems", "maxItems")
        if schema.get("uniqueItems") is True and (most is None or most > 1):
            raise UnexpressibleError("uniqueItems cannot be said in a grammar")
        prefix = schema.get("prefixItems", [])
        if not isinstance(prefix, list):
            raise UnexpressibleError("prefixItems is no list")
        fixed = [self.value(item, f"{path}[{place}]") for place, item in enumerate(prefix)]
        if fixed:
            if least > len(fixed) or (most is not None and most < len(fixed)):
                raise UnexpressibleError("an array with prefixItems of another length cannot be said")
            return chain(Text("["), _joined(fixed), Text("]"))
        if schema.get("items") is False or most == 0:
            if least:
                raise UnexpressibleError("no array fits")
            return Text("[]")
        item = self.value(schema.get("items", True), f"{path}[]")
        listed = _listed(item, max(least, 1), most)
        return chain(Text("["), listed if least else optional(listed), Text("]"))

    def _object(self, schema: Mapping[str, Any], path: str) -> Node:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, Mapping) or not isinstance(required, list):
            raise UnexpressibleError("properties or required are malformed")
        least, most = length(schema, "minProperties", "maxProperties")
        names = list(properties) + [name for name in required if name not in properties]
        extra = schema.get("additionalProperties", True)
        open_object = not names and extra is not False
        if open_object and least <= 1 and most is None:
            return self._open(extra, path, least)
        if least > len(set(required)) or (most is not None and most < len(names)):
            raise UnexpressibleError("a number of properties cannot be said in a grammar")
        members: list[tuple[Node, bool]] = []
        for name in names:
            inner = properties.get(name, extra)
            if inner is False and name not in required:
                continue
            node = chain(literal(name), Text(":"), _SPACE, self.value(inner, f"{path}.{name}"))
            members.append((node, name in required))
        return chain(Text("{"), _members(members), Text("}"))

    def _open(self, extra: Any, path: str, least: int) -> Node:
        key = self._with_characters(string_grammar({}))
        member = chain(key, Text(":"), _SPACE, self.value(extra, f"{path}.*"))
        listed = _listed(member, 1, None)
        return chain(Text("{"), listed if least else optional(listed), Text("}"))


_ANNOTATIONS = frozenset(
    {
        "title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions", "$anchor",
        "format", "deprecated", "readOnly", "writeOnly", "contentMediaType", "contentEncoding", "contentSchema",
    }
)  # fmt: skip


def _narrowing(schema: Mapping[str, Any], *words: str) -> list[str]:
    """Keywords that say more about the value than those named."""
    known = {word for _, group in _TYPE_WORDS for word in group} | {"type", "enum", "const", "anyOf", "oneOf", "allOf"}
    return sorted((schema.keys() & known) - set(words))


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types a schema names, or else the one its keywords speak of; ``any`` where nothing is said."""
    named = schema.get("type")
    if isinstance(named, str):
        return (named,)
    if isinstance(named, list) and named and all(isinstance(each, str) for each in named):
        return tuple(dict.fromkeys(named))
    if named is not None:
        raise UnexpressibleError("its type is no name and no list of names")
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        return tuple(dict.fromkeys(_type_of(value) for value in values))
    found = next((kind for kind, words in _TYPE_WORDS if any(word in schema for word in words)), "any")
    return (found,)


def _type_of(value: Any) -> str:
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"), (dict, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    checked = check_value(value, dict(schema))
    if checked.schema_fault:
        raise UnexpressibleError(f"it is no valid schema: {checked.schema_fault}")
    return checked.ok


def _disjoint(options: Sequence[Any], kinds: Sequence[tuple[str, ...]]) -> bool:
    """Whether no value can fit two alternatives, judged by their types, and by their fixed values where these meet."""
    for place, mine in enumerate(kinds):
        for other, theirs in enumerate(kinds[:place]):
            met = set(mine) & set(theirs) or ({"integer", "number"} <= {*mine, *theirs}) or "any" in (*mine, *theirs)
            if met and not _fixed_apart(options[place], options[other]):
                return False
    return all(isinstance(option, Mapping) for option in options)


def _fixed_apart(one: Any, two: Any) -> bool:
    """Whether two alternatives name fixed values of which none is the same, or objects told apart by such a key."""
    mine, theirs = _fixed_values(one), _fixed_values(two)
    if mine is not None and theirs is not None:
        return not any(value == other for value in mine for other in theirs)
    if not all(isinstance(each, Mapping) and each.get("type") == "object" for each in (one, two)):
        return False
    keys = set(one.get("required", ())) & set(two.get("required", ()))
    return any(
        _fixed_apart(one["properties"][key], two["properties"][key])
        for key in keys
        if key in one.get("properties", {}) and key in two.get("properties", {})
        and _fixed_values(one["properties"][key]) is not None
    )  # fmt: skip


def _fixed_values(schema: Any) -> list[Any] | None:
    if not isinstance(schema, Mapping):
        return None
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return values if isinstance(values, list) else None


def _joined(nodes: Sequence[Node]) -> Node:
    return chain(nodes[0], *(chain(_COMMA, node) for node in nodes[1:]))


def _listed(node: Node, least: int, most: int | None) -> Node:
    """``least`` (1 or more) to ``most`` of them, commas between."""
    return chain(node, Repeat(chain(_COMMA, node), least - 1, None if most is None else most - 1))


def _members(members: Sequence[tuple[Node, bool]]) -> Node:
    """Members in their order, the optional ones left out at will, commas only between those that are there."""
    options: list[Node] = []
    for place, (node, required) in enumerate(members):
        rest = [
            chain(_COMMA, each) if needed else optional(chain(_COMMA, each)) for each, needed in members[place + 1 :]
        ]
        options.append(chain(node, *rest))
        if required:
            return choice(options)
        if place >= _MOST_LEADING_OPTIONAL:
            raise UnexpressibleError("more optional keys in a row than a grammar should hold")
    return choice([*options, Text("")])
