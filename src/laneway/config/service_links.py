"""Variables that Kubernetes sets in every pod for each service of the namespace."""

from __future__ import annotations

import re
from typing import Final

_LINK: Final = re.compile(r"\w+_(SERVICE_(HOST|PORT)\w*|PORT(_\d+_\w+)?)")


def is_service_link(name: str, value: str) -> bool:
    """True for LANEWAY_SERVER_PORT=tcp://10.0.0.1:80, of a service `laneway-server`."""
    return _LINK.fullmatch(name) is not None and (
        "SERVICE" in name or "://" in value or "_PORT_" in name
    )
