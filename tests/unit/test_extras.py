"""A missing package is named with the command that installs it."""

from __future__ import annotations

import pytest

from laneway.errors import MissingExtra
from laneway.extras import require_package


def test_missing_framework_is_named_with_its_install_command() -> None:
    with pytest.raises(MissingExtra) as missing:
        require_package("no_such_framework", "laneway.integrations.none", "no-such-framework>=2")
    assert str(missing.value) == (
        "laneway.integrations.none needs no_such_framework: pip install 'no-such-framework>=2'"
    )
    assert missing.value.name == "no_such_framework"


def test_installed_framework_is_accepted() -> None:
    require_package("pydantic", "laneway.integrations.none", "pydantic")
