"""The burst of small jobs at the start."""

from __future__ import annotations

from laneway import Laneway
from laneway.demo.events import EventLog, JobStates

DOCUMENTS = 10
IMAGES = 36


async def submit_burst(lw: Laneway, event_log: EventLog, job_states: JobStates) -> None:
    """Submit more jobs than the lanes have slots, so that some wait."""
    event_log.record(f"{DOCUMENTS} documents for `interactive`, {IMAGES} images for `default`")
    job_states.expect(
        await lw.submit_many(
            ("ingestion", {"path": f"report-{n}.pdf", "pages": 3 + n % 4}) for n in range(DOCUMENTS)
        )
    )
    job_states.expect(
        await lw.submit_many(("thumbnail", {"image": f"photo-{n}.jpg"}) for n in range(IMAGES))
    )
