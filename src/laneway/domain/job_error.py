"""The error of a failed attempt, with a public and a private part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

# Shown instead of a private message.
PRIVATE_MESSAGE: Final = (
    "the message is private: read it with jobs:debug, or as the job's submitter"
)


@dataclass(frozen=True, slots=True)
class JobError:
    """The error of an attempt or a job.

    `is_public`: all readers of the job may see the message, as that of a PublicError.
    """

    type: str
    message: str
    traceback: str | None = None
    is_public: bool = False

    def to_dict(self, *, debug: bool = True) -> dict[str, object]:
        if not debug:
            shown = self.public()
            return {"type": shown.type, "message": shown.message}
        return {"type": self.type, "message": self.message, "traceback": self.traceback}

    def public(self) -> JobError:
        """The error without its traceback, and without its message unless that is public."""
        message = self.message if self.is_public else PRIVATE_MESSAGE
        return replace(self, message=message, traceback=None)
