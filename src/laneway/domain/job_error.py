"""The error of a failed attempt: what everybody who sees the job reads, and what is private."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

# In place of a private message.
PRIVATE_MESSAGE: Final = (
    "the message is private: read it with jobs:debug, or as the job's submitter"
)


@dataclass(frozen=True, slots=True)
class JobError:
    """Why an attempt, or the job, failed.

    `is_public`: the message is text for everybody who may see the job, as that of a PublicError.
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
        """The error without what is private: the traceback, and the message unless it is public."""
        message = self.message if self.is_public else PRIVATE_MESSAGE
        return replace(self, message=message, traceback=None)
