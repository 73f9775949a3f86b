"""Hypothesis strategies: schemas as EventTypes have them, each with an instance that satisfies it."""

from typing import Any, TypeAlias

from hypothesis import strategies as st

Schema: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[Schema, Any]

NAMES = ["a", "b", "type", "properties", "x-y"]
WORDS = st.text(st.sampled_from("abcXYZ019 _-é世"), max_size=6)


def _described(pair: Pair, description: str) -> Pair:
    schema, instance = pair
    return ({**schema, "description": description}, instance) if description else pair


@st.composite
def strings(draw: st.DrawFn) -> Pair:
    instance = draw(WORDS)
    schema: Schema = {"type": "string"}
    if draw(st.booleans()):
        schema["minLength"] = draw(st.integers(0, len(instance)))
    if draw(st.booleans()):
        schema["maxLength"] = len(instance) + draw(st.sampled_from([0, 3, 5000]))
    schema |= draw(st.sampled_from([{}, {}, {"format": "date-time"}, {"format": "uri"}, {"pattern": "."}]))
    if "pattern" in schema and not instance.strip():
        del schema["pattern"]
    return schema, instance


@st.composite
def numbers(draw: st.DrawFn) -> Pair:
    whole = draw(st.booleans())
    instance = draw(st.integers(-50, 50) if whole else st.integers(-50, 50).map(lambda n: n / 4))
    schema: Schema = {"type": "integer" if whole else "number"}
    schema |= draw(st.sampled_from([{}, {"minimum": -50}, {"exclusiveMaximum": 51}, {"format": "int32"}]))
    return schema, instance


@st.composite
def choices(draw: st.DrawFn) -> Pair:
    options = draw(
        st.lists(
            st.sampled_from(["red", "Green", "", 1, 2, None, True]), min_size=1, max_size=4, unique_by=repr
        )
    )
    typed = (
        {"type": "string"}
        if all(isinstance(option, str) for option in options) and draw(st.booleans())
        else {}
    )
    instance = draw(st.sampled_from(options))
    return draw(st.sampled_from([{**typed, "enum": options}, {"const": instance}])), instance


scalars: st.SearchStrategy[Pair] = st.one_of(
    strings(), numbers(), choices(), st.booleans().map(lambda value: ({"type": "boolean"}, value))
)


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    items, entry = draw(inner)
    instance = [entry] * draw(st.integers(0, 3))
    schema: Schema = {"type": "array", "items": items}
    if draw(st.booleans()):
        schema["minItems"] = draw(st.integers(0, len(instance)))
    if instance and draw(st.integers(0, 3)) == 0:
        schema = {"type": "array", "prefixItems": [items], "items": items}
    return schema, instance


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    members = draw(st.dictionaries(st.sampled_from(NAMES), inner, max_size=4))
    required = [name for name in members if draw(st.booleans())]
    given = {
        name: instance for name, (_, instance) in members.items() if name in required or draw(st.booleans())
    }
    schema: Schema = {"type": "object", "properties": {name: schema for name, (schema, _) in members.items()}}
    schema |= {"required": required} if required else {}
    schema |= draw(
        st.sampled_from(
            [{}, {}, {"additionalProperties": False}, {"additionalProperties": {"type": "string"}}]
        )
    )
    return schema, given


@st.composite
def unions(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    branches = draw(st.lists(inner, min_size=1, max_size=3))
    schemas = [schema for schema, _ in branches] + draw(st.sampled_from([[], [{"type": "null"}]]))
    return {"anyOf": schemas}, draw(st.sampled_from([instance for _, instance in branches]))


@st.composite
def nullables(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    schema, instance = draw(inner)
    if not isinstance(schema.get("type"), str) or "enum" in schema:
        return schema, instance
    return {**schema, "type": [schema["type"], "null"]}, draw(st.sampled_from([instance, None]))


@st.composite
def conjunctions(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    schema, instance = draw(inner)
    return {"allOf": [schema, {"title": "more"}]}, instance


TREE: Schema = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/tree"}},
    "required": ["value"],
}
TREES = st.sampled_from([{"value": 1}, {"value": 1, "next": {"value": 2}}])
REFERRING = st.sampled_from(
    [
        {"$ref": "#/$defs/tree"},
        {"$ref": "#/$defs/tree", "description": "a tree"},
        {"allOf": [{"$ref": "#/$defs/tree"}]},
    ]
)

REFERENCES: st.SearchStrategy[Pair] = st.tuples(REFERRING, TREES)


def _extend(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    described = st.builds(_described, inner, st.sampled_from(["", "", "what it is"]))
    kinds = (arrays, objects, unions, nullables, conjunctions)
    return st.one_of(*(kind(described) for kind in kinds))


values: st.SearchStrategy[Pair] = st.recursive(scalars | REFERENCES, _extend, max_leaves=6)


@st.composite
def parameters(draw: st.DrawFn) -> Pair:
    """Return parameters as an EventType declares them, and arguments that satisfy them."""
    schema, instance = draw(objects(values))
    if "#/$defs/tree" in repr(schema):
        schema = {**schema, "$defs": {"tree": TREE}}
    return schema, instance
