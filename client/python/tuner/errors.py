"""What went wrong, as libtuner says it."""
from __future__ import annotations

# By tuner_status.
CODES = ("ok", "invalid_argument", "not_found", "missing", "unsupported", "corrupt", "io", "deadline", "busy", "denied", "compile_failed", "device",
         "internal")


class Error(Exception):
    """A failed call. str() is one sentence: field, value, what was expected.

    code        one of CODES: "invalid_argument", "not_found", "missing", "io", "deadline", …
    message     what is wrong, without the parts below
    field, value, expected, suggestion   each "" when there is none
    """

    def __init__(self, code: str, message: str = "", *, field: str = "", value: str = "", expected: str = "", suggestion: str = "",
                 text: str = "") -> None:
        self.code = code
        self.message = message
        self.field = field
        self.value = value
        self.expected = expected
        self.suggestion = suggestion
        super().__init__(text or _sentence(message or code, field, value, expected, suggestion))


def _sentence(message: str, field: str, value: str, expected: str, suggestion: str) -> str:
    parts = []
    if field:
        parts.append(f"{field}: {value}" if value else field)
    if expected:
        parts.append(f"expected {expected}")
    if suggestion:
        parts.append(f"did you mean {suggestion}?")
    return f"{message} ({'; '.join(parts)})" if parts else message


def bad_input(field: str, value: object, expected: str) -> Error:
    """The caller's input is wrong; the same words as the library's own refusals."""
    return Error("invalid_argument", f"Bad value for {field}", field=field, value=str(value), expected=expected)
