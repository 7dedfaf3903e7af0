"""Webhooks: settings, secrets and signatures, and the addresses that may be sent to."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from laneway.config.settings import Settings
from laneway.domain.webhook import (
    Webhook,
    check_secret,
    check_url,
    new_secret,
    signatures,
    validate_webhook_change,
)
from laneway.engine.webhook.http_post import retry_after_s
from laneway.engine.webhook.targets import AllowedTargets, is_public
from laneway.errors import ConfigError, InvalidInput
from laneway.store import webhooks

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_signature_is_that_of_the_standard() -> None:
    # The example of https://github.com/standard-webhooks/standard-webhooks.
    body = b'{"test": 2432232314}'
    made = signatures([SECRET], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    both = signatures([new_secret(), SECRET], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert both.split(" ")[1] == made


def test_new_secrets_differ_and_are_valid() -> None:
    made = {new_secret() for _ in range(3)}
    assert len(made) == 3
    assert {check_secret(each) for each in made} == made


def test_statements_do_not_show_secrets() -> None:
    assert SECRET not in repr(webhooks.create(Webhook("erp", "https://erp.example"), SECRET, "ann"))
    assert SECRET not in repr(webhooks.change("erp", {"secret": SECRET}, "ann"))


@pytest.mark.parametrize(
    "secret",
    ["hunter2hunter2hunter2hunter2", "whsec_", "whsec_c2hvcnQ=", "whsec_%%%", 7,
     "whsec_" + base64.b64encode(b"x" * 65).decode()],
)  # fmt: skip
def test_wrong_secret_is_refused_without_showing_it(secret: Any) -> None:
    with pytest.raises(InvalidInput, match="must be whsec_ and 24 to 64 bytes as") as refused:
        check_secret(secret)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "url, rule",
    [
        ("ftp://example.com/", "must begin with https"),
        ("example.com/hook", "must begin with https"),
        ("https:///hook", "must name a host"),
        ("https://example.com:0/", "must name a host and, if any, a port"),
        ("https://example.com:99999/", "is not a URL"),
        ("https://ann:pw@example.com/", "must not contain a user or password"),
        ("https://example.com/#top", "must not contain a fragment"),
        ("https://example.com/a b", "must be printable ASCII"),
        ("https://exämple.com/", "must be printable ASCII"),
        ("https://example.com/\r\nx: y", "must be printable ASCII"),
        ("https://example.com/" + "x" * 2048, "must be at most 2048 bytes"),
        ("", "must not be empty"),
        (7, "must be text"),
    ],
)
def test_wrong_url_is_refused(url: Any, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        check_url(url)


def test_settings_are_checked_by_field() -> None:
    url = "https://example.com:8443/hook?a=b"
    checked = validate_webhook_change({"name": "erp", "url": url, "tags": ["a", "a"]}, new=True)
    assert checked == {"name": "erp", "url": url, "tags": ("a",)}
    ordered = validate_webhook_change({"events": ["job.failed", "job.completed", "job.failed"]})
    assert ordered == {"events": ("job.completed", "job.failed")}
    for wrong, rule in (
        ({"events": []}, "events: must be a list"),
        ({"events": ["job.fialed"]}, r"events\[0\]: must be one of .*did you mean job.failed"),
        ({"lanes": ["Big Lane"]}, r"lanes\[0\]: must be 1 to 63 characters"),
        ({"job_types": "ingest"}, "job_types: must be a list"),
        ({"timeout_s": 0}, "timeout_s: must be a whole number from 1 to 120"),
        ({"previous_secret_until": None}, "is set by Laneway"),
        ({"retries": 1}, "is not a setting of a webhook"),
        ({"name": "other"}, "cannot be changed"),
    ):
        with pytest.raises(InvalidInput, match=rule):
            validate_webhook_change(wrong)
    with pytest.raises(InvalidInput, match="url: is required for a new webhook"):
        validate_webhook_change({"name": "erp"}, new=True)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.8.9.1", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254",
     "100.64.0.1", "0.1.2.3", "255.255.255.255", "224.0.0.1", "240.0.0.1", "192.0.2.1", "::1", "::",
     "192.0.0.192", "168.63.129.16", "::ffff:168.63.129.16", "2002:c000:c0::1",
     "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
     "64:ff9b::7f00:1", "::7f00:1", "::808:808", "2002:7f00:1::", "2002:a00:1::1",
     "2001:0:53aa:64c:0:0:80ff:fffe"],
)  # fmt: skip
def test_other_addresses_are_refused_unless_an_operator_allows_them(address: str) -> None:
    assert not is_public(address)
    assert not AllowedTargets(["1.2.3.0/24", "other"]).allows("inside", address)
    assert AllowedTargets(["inside"]).allows("INSIDE", address)


def test_allowed_networks_count_for_addresses_not_for_names() -> None:
    targets = AllowedTargets(["10.0.0.0/8", "fd00::/8", "127.0.0.1"])
    assert targets.allows("erp", "10.9.9.9")
    assert targets.allows("erp", "::ffff:10.9.9.9")
    assert targets.allows("erp", "fd12::1")
    assert not targets.allows("10.example.com", "192.168.1.1")
    assert targets.names("erp", "127.0.0.1")
    assert not targets.names("erp", "93.184.216.34")


def test_setting_lists_hosts_addresses_and_networks() -> None:
    given = "ERP.internal, 10.0.0.0/8,::1 ,localhost"
    read = Settings.load(webhook_allow=given).webhook_allow
    assert read == ("erp.internal", "10.0.0.0/8", "::1", "localhost")
    for wrong in ("10.0.0.1/8", "http://erp", "a b", "256.1.1.1"):
        with pytest.raises(ConfigError, match="webhook_allow"):
            Settings.load(webhook_allow=wrong)


def test_retry_after_is_seconds_or_a_date_and_at_most_a_day() -> None:
    now = 784_111_777.0
    assert retry_after_s("120", now) == 120
    assert retry_after_s("Sun, 06 Nov 1994 08:50:37 GMT", now) == 60
    assert retry_after_s("Sun, 06 Nov 1993 08:50:37 GMT", now) == 0
    assert retry_after_s("99999999999", now) == 86_400
    for text in (None, "", "-3", "soon", "1.5", "²"):
        assert retry_after_s(text, now) is None
