"""What can go wrong."""

from __future__ import annotations

from typing import Optional


class WhereforeError(Exception):
    """What failed, why, and what to do next.

    ``code`` is the same as in the JSON of the command line, such as ``no-such-graph``.
    """

    def __init__(
        self, message: str, code: str = "usage", cause: Optional[str] = None, hint: Optional[str] = None
    ) -> None:
        super().__init__(message, code, cause, hint)
        self.message = message
        self.code = code
        self.cause = cause
        self.hint = hint

    def __str__(self) -> str:
        text = self.message
        if self.cause:
            text += f": {self.cause}"
        if self.hint:
            text += f"\n  hint: {self.hint}"
        return text
