"""Regular expressions that take linear time: Rust's `regex`, which pydantic brings (ADR 0047)."""

from collections.abc import Callable

from pydantic_core import SchemaError, SchemaValidator, core_schema


def compile_regex(pattern: str) -> Callable[[str], bool]:
    """Return a function that checks whether a text contains a match of *pattern*.

    Raises:
        ValueError: *pattern* is no regular expression, is too large, or has look-around or
            backreferences.
    """
    try:
        found = SchemaValidator(core_schema.str_schema(pattern=pattern)).isinstance_python
    except SchemaError as error:
        raise ValueError(str(error).splitlines()[-1].strip()) from None
    # Half surrogates are no text for pydantic, and would match nothing.
    return lambda text: found(text if text.isascii() else text.encode(errors="replace").decode())
