"""The error of a failed attempt, with a public and a private part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Final

from laneway.domain.annotations import HIDDEN, PRIVATE, Doc

# Shown instead of a private message.
PRIVATE_MESSAGE: Final = (
    "the message is private: read it with jobs:debug, or as the job's submitter"
)


@dataclass(frozen=True, slots=True)
class JobError:
    """The error of a failed attempt or job.

    `is_public`: all readers of the job may see the message, as that of a PublicError.
    """

    schema_name: ClassVar = "Error"

    type: str
    message: Annotated[
        str, Doc("Private messages are shown only with jobs:debug, or for one's own job")
    ]
    traceback: Annotated[str | None, Doc("Only with jobs:debug, or for one's own job"), PRIVATE] = (
        None
    )
    is_public: Annotated[bool, HIDDEN] = False

    def public(self) -> JobError:
        """The error without its traceback, and without its message unless that is public."""
        message = self.message if self.is_public else PRIVATE_MESSAGE
        return replace(self, message=message, traceback=None)
