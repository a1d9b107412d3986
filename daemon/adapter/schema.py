"""Whether a JSON value follows a client's JSON schema. The only importer of jsonschema and referencing.

A schema comes from a client, so nothing that it refers to is fetched, and its regular expressions are not run: one that
takes forever would hold up every other client. They are told to the model all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from daemon.errors import BadReply, BadRequest
from daemon.model import Json

_EXPRESSIONS = ("pattern", "patternProperties", "unevaluatedProperties")
_LONGEST = 300


def check_schema(schema: Json, name: str) -> None:
    """Raises BadRequest if it is none."""
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - most clients send none

    try:
        _validators().check_schema(schema)
    except SchemaError as error:
        raise BadRequest(f"{name} is no JSON schema: {error.json_path}: {_short(error.message)}") from None
    except RecursionError:
        raise BadRequest(f"{name} is nested too deeply") from None


def check(value: object, schema: Json) -> None:
    """Check that a value follows a schema.

    Raises:
        BadReply: it does not; the message says where.
        BadRequest: the schema refers to what is not in it, or to itself without end.
    """
    from jsonschema.exceptions import best_match  # noqa: PLC0415 - as above
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    try:
        error = best_match(_validators()(schema, registry=Registry()).iter_errors(value))
    except Unresolvable as unknown:
        raise BadRequest(f"the JSON schema refers to what is not in it: {unknown.ref}") from None
    except RecursionError:
        raise BadRequest("the JSON schema refers to itself without end") from None
    if error is not None:
        raise BadReply(f"the content does not follow the JSON schema: {error.json_path}: {_short(error.message)}")


@cache
def _validators() -> Any:
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - as above

    only_named = Draft202012Validator.VALIDATORS["additionalProperties"]

    def additional(validator: Any, rule: Any, value: object, schema: Json) -> Iterator[Any]:
        return iter(()) if "patternProperties" in schema else only_named(validator, rule, value, schema)

    rules = dict.fromkeys(_EXPRESSIONS, lambda *_: iter(())) | {"additionalProperties": additional}
    return validators.extend(Draft202012Validator, rules)


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
