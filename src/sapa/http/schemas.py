"""JSON Schemas of the declared types as they are on the wire, each with an example."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType

from sapa.http.responses import AnyOf, StoredJson
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind

Schema = dict[str, Any]

REF = "#/components/schemas/"

_FILLERS: dict[str, Any] = {
    "date-time": "2026-01-31T09:30:00.000Z",
    "date": "2026-01-31",
    "uuid": "0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35",
    "email": "ayu@example.com",
    "uri": "https://example.com/",
    "string": "text",
    "boolean": False,
    "null": None,
}

DECIMAL = Annotated[float, Meta(extra_json_schema={"format": "decimal"})]

_JSON_TYPES = {str: "string", bool: "boolean", int: "integer"}


class DocumentedAs:
    """Marks a value of which the documents show one spelling: `Annotated[str, DocumentedAs(Source)]`.

    Constraints before the mark are those of the accepted type, and the documents do not show them.
    """

    def __init__(self, shape: Any) -> None:
        self.shape = shape


class SchemaRegistry:
    """The named schemas of one document, collected while it is written."""

    def __init__(self, *, is_document: bool = True, marks_decimals: bool = False) -> None:
        """`marks_decimals` gives exact numbers the format `decimal`, which only a generator of code needs."""
        self.components: dict[str, Schema] = {}
        self._is_document = is_document
        self._decimal = DECIMAL if marks_decimals else float
        self._enums: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._request_structs: dict[Any, type[Struct]] = {}
        self._response_structs: dict[Any, type[Struct]] = {}

    def describe_request(self, hint: Any) -> Schema:
        """The schema of what a caller sends."""
        return self._describe(self._shape(hint, {}, is_response=False))

    def describe_response(self, hint: Any) -> Schema:
        """The schema of what we send: every field is present, null when it has no value."""
        return self._describe(self._shape(hint, {}, is_response=True))

    def describe_envelope(self, hint: Any) -> Schema:
        """The schema of `{data}` around what we send."""
        name = readable_name(hint) + "Envelope"
        data = self.describe_response(hint)
        self._add({name: {"type": "object", "properties": {"data": data}, "required": ["data"]}})
        return {"$ref": REF + name}

    def query(self, struct: type[Struct]) -> Schema:
        """The schema of a query's parameters; a query has no null, and its flags are the words true and false."""
        shape = self._shape(struct, {}, is_response=False)
        _, parts = msgspec.json.schema_components([shape], ref_template=REF + "{name}")
        schema = tidy(parts.pop(shape.__name__))
        self._add(parts)
        fields = {name: _without_null(field) for name, field in schema["properties"].items()}
        schema["properties"] = {name: _tidy_flag(field) for name, field in fields.items()}
        return schema

    def _describe(self, shape: Any) -> Schema:
        (schema,), parts = msgspec.json.schema_components([shape], ref_template=REF + "{name}")
        self._add(parts)
        return tidy(schema)

    def _add(self, parts: Mapping[str, Schema]) -> None:
        for name, part in parts.items():
            schema = _explain_defaults(tidy(part))
            if self.components.setdefault(name, schema) != schema:
                raise TypeError(f"Two different types are called {name}; rename one.")

    def _shape(self, hint: Any, variables: Mapping[Any, Any], *, is_response: bool) -> Any:
        """A type that msgspec describes as it is on the wire: without our annotations, and Decimals as numbers."""
        if isinstance(hint, TypeVar):
            return self._shape(variables[hint], {}, is_response=is_response)
        origin, args = get_origin(hint), get_args(hint)
        if is_struct(origin or hint):
            return self._struct(hint, is_response=is_response)
        if origin is Annotated:
            return self._shape_annotated(args, variables, is_response=is_response)
        if args and origin is not Literal:
            inner = tuple(self._shape(arg, variables, is_response=is_response) for arg in args if arg is not UnsetType)
            return Union[inner] if origin in {Union, UnionType} else origin[inner]  # noqa: UP007
        return {Decimal: self._decimal, datetime: Annotated[datetime, Meta(tz=True)]}.get(hint, hint)

    def _shape_annotated(self, args: tuple[Any, ...], variables: Mapping[Any, Any], *, is_response: bool) -> Any:
        hint, *marks = args
        metas: list[Meta] = []
        for mark in marks:
            if isinstance(mark, StoredJson):
                hint = mark.shape
            elif isinstance(mark, AnyOf):  # msgspec does not describe unions of structs without tags
                options = [self._describe(self._struct(shape, is_response=is_response)) for shape in mark.shapes]
                metas.append(Meta(extra_json_schema={"anyOf": options}))
            elif isinstance(mark, DocumentedAs) and self._is_document:
                hint, metas = mark.shape, []
            elif isinstance(mark, EnumName) and self._is_document:
                hint = self._enum(mark, get_args(hint))
            elif isinstance(mark, IdKind):
                metas.append(Meta(pattern=mark.pattern, examples=[mark.example]))
            elif isinstance(mark, Meta):
                metas.append(mark)
        has_zone = any(meta.tz is not None for meta in metas)
        shape = hint if hint is datetime and has_zone else self._shape(hint, variables, is_response=is_response)
        return Annotated[(shape, *metas)] if metas else shape

    def _enum(self, name: str, words: tuple[str, ...]) -> Any:
        """An enum in place of a Literal: msgspec describes it once, under its name."""
        if (name, words) not in self._enums:
            self._enums[name, words] = StrEnum(name, [(word, word) for word in words])
        return self._enums[name, words]

    def _struct(self, hint: Any, *, is_response: bool) -> type[Struct]:
        """A struct with its fields' shapes. A type that is the same in both directions is one struct."""
        structs = self._response_structs if is_response else self._request_structs
        if hint not in structs:
            fields = self._fields(hint, is_response=is_response)
            name = readable_name(hint)
            if not is_response:
                response_struct = self._struct(hint, is_response=True)
                if fields == self._fields(hint, is_response=True):
                    return structs.setdefault(hint, response_struct)
                name = name if name.endswith(("In", "Patch", "Query")) else name + "In"
            structs[hint] = _define(name, get_origin(hint) or hint, fields)
        return structs[hint]

    def _fields(self, hint: Any, *, is_response: bool) -> list[tuple[Any, ...]]:
        struct = get_origin(hint) or hint
        variables = dict(zip(getattr(struct, "__parameters__", ()), get_args(hint), strict=True))
        hints = get_type_hints(struct, include_extras=True)
        may_lack = not is_response or struct.__struct_config__.omit_defaults
        fields: list[tuple[Any, ...]] = []
        for field in msgspec.structs.fields(struct):
            shape = self._shape(hints[field.name], variables, is_response=is_response)
            if field.required or not (may_lack or field.default is UNSET):
                fields.append((field.name, shape))
            elif is_response:
                fields.append((field.name, _without_none(shape), UNSET))
            else:
                fields.append((field.name, shape, UNSET if field.default is NODEFAULT else field.default))
        return fields


def wire_type(hint: Any) -> Any:
    """A type that accepts what a caller may send for this one: amounts as numbers, not as strings."""
    return _WIRE._shape(hint, {}, is_response=False)


_WIRE = SchemaRegistry(is_document=False)
"""A cache of the shapes of structs that many bodies share."""


def is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def readable_name(hint: Any) -> str:
    """`CustomerPage` for `Page[Customer]`, `CustomerList` for `list[Customer]`."""
    kind = get_origin(hint) or hint
    name = "List" if kind is list else str(kind.__name__)
    return "".join(_wire_shape(arg).__name__ for arg in get_args(hint)) + name


def _wire_shape(hint: Any) -> Any:
    """What a stored text is on the wire, or the type itself."""
    return next((mark.shape for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, StoredJson)), hint)


def _define(name: str, struct: Any, fields: list[tuple[Any, ...]]) -> type[Struct]:
    config = struct.__struct_config__
    return msgspec.defstruct(
        name,
        fields,
        rename={field.name: field.encode_name for field in msgspec.structs.fields(struct)},
        namespace={"__doc__": struct.__dict__.get("__doc__")},
        kw_only=True,
        forbid_unknown_fields=config.forbid_unknown_fields,
        tag=config.tag,
        tag_field=config.tag_field,
    )


def _without_none(hint: Any) -> Any:
    if get_origin(hint) not in {Union, UnionType}:
        return hint
    return Union[tuple(arg for arg in get_args(hint) if arg is not NoneType)]  # noqa: UP007


def tidy(schema: Schema) -> Schema:
    """The same schema, shorter: no titles, no null defaults, nullable types as `["string", "null"]`."""
    schema = {word: value for word, value in schema.items() if not _is_noise(word, value)}
    for word in ("items", "additionalProperties", "propertyNames"):
        if isinstance(schema.get(word), dict):
            schema[word] = tidy(schema[word])
    if "properties" in schema:
        schema["properties"] = {name: tidy(field) for name, field in schema["properties"].items()}
    if "enum" in schema:
        schema["type"] = _JSON_TYPES[type(schema["enum"][0])]
    if "anyOf" in schema:
        return _tidy_union(schema)
    return schema


def _is_noise(word: str, value: Any) -> bool:
    return word == "title" or (word == "default" and value is None) or (word == "required" and not value)


def _tidy_union(schema: Schema) -> Schema:
    options = [tidy(option) for option in schema["anyOf"]]
    if {"type": "number"} in options and {"type": "integer"} in options:
        options.remove({"type": "integer"})
    rest = {word: value for word, value in schema.items() if word != "anyOf"}
    if {"type": "null"} in options and len(options) == 2 and {"type", "$ref", "anyOf"} & options[0].keys():
        return {**_or_null(options[0]), **rest}
    return {**rest, "anyOf": options}


def _or_null(schema: Schema) -> Schema:
    if "type" not in schema:
        texts = {word: value for word, value in schema.items() if word not in {"$ref", "anyOf"}}
        options = schema.get("anyOf") or [{"$ref": schema["$ref"]}]
        return {**texts, "anyOf": [*options, {"type": "null"}]}
    nullable = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        nullable["enum"] = [*schema["enum"], None]
    return nullable


def _without_null(schema: Schema) -> Schema:
    schema = dict(schema)
    options = [option for option in schema.get("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1:
        del schema["anyOf"]
        return {**options[0], **schema}
    if isinstance(schema.get("type"), list):
        schema["type"] = next(kind for kind in schema["type"] if kind != "null")
    if "enum" in schema:
        schema["enum"] = [value for value in schema["enum"] if value is not None]
    return schema


def _tidy_flag(schema: Schema) -> Schema:
    if schema.get("enum") != ["false", "true"]:
        return schema
    flag = {word: value for word, value in schema.items() if word != "enum"} | {"type": "boolean"}
    return flag | ({"default": flag["default"] == "true"} if "default" in flag else {})


def _explain_defaults(schema: Schema) -> Schema:
    """Writes the defaults of an object's fields as text: generators take a field with a default for a required one."""
    if "properties" not in schema:
        return schema
    return {**schema, "properties": {name: _explain_default(field) for name, field in schema["properties"].items()}}


def _explain_default(field: Schema) -> Schema:
    if "default" not in field:
        return field
    field = dict(field)
    default = field.pop("default")
    if isinstance(default, dict):
        return field
    text = f"Default: `{default if isinstance(default, str) else msgspec.json.encode(default).decode()}`."
    description = f"{field.pop('description', '')} {text}".strip()
    return {"description": description, "examples": [default], **field}


def share_examples(components: Mapping[str, Schema]) -> None:
    """A field without an example gets that of a field with the same name and type elsewhere, except for ids."""
    fields = [item for schema in components.values() for item in schema.get("properties", {}).items()]
    examples: dict[tuple[str, Any], Any] = {}
    for name, field in fields:
        if "examples" in field and "pattern" not in field:
            examples.setdefault((name, _type_key(field)), field["examples"])
    for name, field in fields:
        borrowed = examples.get((name, _type_key(field)))
        fits = borrowed and (borrowed[0] is not None or "null" in types_of(field))
        if fits and not {"examples", "enum", "default", "$ref", "anyOf"} & field.keys():
            field["examples"] = borrowed


def _type_key(schema: Schema) -> Any:
    """The same for types that differ in null only."""
    if "$ref" in schema:
        return schema["$ref"]
    items = _type_key(schema["items"]) if "items" in schema else None
    return frozenset(types_of(schema)) - {"null"}, items


def types_of(schema: Schema) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def build_example(schema: Schema, components: Mapping[str, Schema]) -> Any:
    """A value that the schema allows, made of its fields' examples; null where there is none."""
    if "examples" in schema:
        return schema["examples"][0]
    if "default" in schema:
        return schema["default"]
    if "$ref" in schema:
        return build_example(components[schema["$ref"].removeprefix(REF)], components)
    if "enum" in schema:
        return schema["enum"][0]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return build_example(options[0], components)
    kinds = types_of(schema)
    if "array" in kinds:
        return [build_example(schema["items"], components)] if "items" in schema else []
    if "object" in kinds:
        return _object_example(schema, components)
    return None if "null" in kinds else _filler(schema, kinds)


def _object_example(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    values = {name: build_example(field, components) for name, field in schema.get("properties", {}).items()}
    required = schema.get("required", [])
    return {name: value for name, value in values.items() if value is not None or name in required}


def _filler(schema: Schema, kinds: list[str]) -> Any:
    kind = kinds[0] if kinds else "null"
    if kind in {"integer", "number"}:
        return max(1, schema.get("minimum", 1))
    return _FILLERS.get(schema.get("format", kind), _FILLERS[kind])


def id_kind_of(hint: Any) -> IdKind | None:
    """The kind of id that a type is marked with."""
    return next((mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, IdKind)), None)
