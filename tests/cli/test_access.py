"""Laws of `laneway principals`, `roles` and `tokens`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest

from laneway.errors import ServerUnreachable
from laneway.operations import access
from tests.api.conftest import People
from tests.cli.conftest import Run
from tests.support.job_factory import JobFactory


def lines(result: Any) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_principal_gets_a_role_and_a_token_and_loses_them(run: Run, factory: JobFactory) -> None:
    assert "no principals" in run("principals", "ls").stderr
    assert run("principals", "create", "ann").stderr == "principal ann: person, enabled\n"
    assert lines(run("roles", "create", "tuner", "--permissions", "workers:view", "--json"))
    assert run("roles", "set", "tuner", "--permissions", "workers:manage,jobs:read").stderr == (
        "role tuner: jobs:read, workers:manage\n"
    )
    (grant,) = lines(
        run("roles", "grant", "ann", "tuner", "--scope", "all", "--lanes", "system", "--json")
    )
    assert (grant["principal"], grant["lanes"]) == ("ann", ["system"])
    made = run("--by", "root", "tokens", "create", "ann", "--name", "laptop")
    secret = made.stdout.strip()
    assert (len(secret), secret[:3], secret in made.stderr) == (46, "lw_", False)
    (token,) = lines(run("tokens", "ls", "--json"))
    assert (token["principal"], token["name"], token["created_by"]) == ("ann", "laptop", "root")
    for shown in (run("tokens", "ls"), run("roles", "grants"), run("principals", "ls")):
        assert (shown.exit_code, "ann" in shown.stdout) == (0, True)
        assert secret not in shown.stdout
    assert run("roles", "delete", "tuner").exit_code == 4
    assert run("roles", "revoke", grant["id"]).stderr == (
        "principal ann: no longer has the role tuner for all jobs of system\n"
    )
    assert run("roles", "delete", "tuner").exit_code == 0
    assert "revoked" in run("tokens", "revoke", token["id"]).stderr
    assert "revoked" in run("tokens", "ls", "--principal", "ann").stdout
    assert run("tokens", "revoke", token["id"]).exit_code == 4
    assert run("principals", "disable", "ann").stderr == "principal ann: person, disabled\n"
    assert run("principals", "enable", "ann").stderr == "principal ann: person, enabled\n"
    assert factory.conn.execute(
        "select count(*) from laneway.audit where kind = 'access'"
    ).fetchone() == (10,)


def test_token_in_json_holds_its_secret_this_once(run: Run) -> None:
    run("principals", "create", "bot", "--kind", "service")
    (made,) = lines(
        run("tokens", "create", "bot", "--name", "ci", "--expires-in", "never",
            "--permissions", "jobs:submit", "--lanes", "default", "--job-types", "b,a", "--json")
    )  # fmt: skip
    assert made["token"].startswith(made["hint"])
    assert made["job_types"] == ["a", "b"]
    assert (made["expires_at"], made["permissions"], made["lanes"]) == (
        None,
        ["jobs:submit"],
        ["default"],
    )
    (listed,) = lines(run("tokens", "ls", "--json"))
    assert "token" not in listed


def test_token_is_written_to_a_private_new_file(run: Run, tmp_path: Path) -> None:
    run("principals", "create", "bot", "--kind", "service")
    out = tmp_path / "token"
    made = run("tokens", "create", "bot", "--name", "ci", "--out", out)
    assert made.exit_code == 0
    secret = out.read_text().strip()
    assert secret.startswith("lw_")
    assert secret not in made.stdout + made.stderr
    assert out.stat().st_mode & 0o777 == 0o600
    assert run("tokens", "create", "bot", "--name", "ci", "--out", out).exit_code == 2
    assert len(lines(run("tokens", "ls", "--json"))) == 1, "no token without an owner was made"
    assert run("tokens", "create", "who", "--name", "ci", "--out", tmp_path / "b").exit_code == 3
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    "error, code", [(ServerUnreachable("gone"), 0), (KeyboardInterrupt(), 130)]
)
def test_token_is_shown_though_its_notes_fail(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
) -> None:
    def fail(**options: object) -> NoReturn:
        raise error

    run("principals", "create", "bot", "--kind", "service")
    monkeypatch.setattr(access, "list_grants", fail)
    made = run("tokens", "create", "bot", "--name", "ci")
    assert (made.exit_code, made.stdout.startswith("lw_")) == (code, True)
    out = tmp_path / "token"
    assert run("tokens", "create", "bot", "--name", "ci", "--out", out).exit_code == code
    assert out.read_text().startswith("lw_")


def test_login_link_is_made_for_a_person(run: Run) -> None:
    run("principals", "create", "ann")
    assert run("principals", "login", "ann").stdout.startswith("lwl_")
    linked = run("principals", "login", "ann", "--url", "https://jobs.example/")
    assert linked.stdout.startswith("https://jobs.example/login?link=lwl_")
    assert run("principals", "login", "ann", "--url", "jobs.example").exit_code == 2
    (made,) = lines(run("principals", "login", "ann", "--json"))
    assert made["expires_in"] == 600


def test_roles_ls_lists_permissions(run: Run) -> None:
    listed = {each["name"]: each for each in lines(run("roles", "ls", "--json"))}
    assert listed["viewer"]["permissions"] == ["jobs:read", "workers:view"]
    assert "jobs:read, workers:view" in run("roles", "ls").stdout


@pytest.mark.parametrize(
    "args,code",
    [
        (["principals", "create", " ann"], 2),
        (["principals", "create", "ann", "--kind", "robot"], 2),
        (["principals", "disable", "missing"], 3),
        (["principals", "login", "missing"], 3),
        (["roles", "create", "Bad Name", "--permissions", "jobs:read"], 2),
        (["roles", "create", "r", "--permissions", "jobs:*"], 2),
        (["roles", "create", "r"], 2),
        (["roles", "set", "viewer", "--permissions", "jobs:read"], 4),
        (["roles", "delete", "nothing"], 3),
        (["roles", "grant", "missing", "viewer", "--scope", "all"], 3),
        (["roles", "grant", "missing", "viewer", "--scope", "some"], 2),
        (["roles", "revoke", "nonsense"], 2),
        (["tokens", "create", "missing", "--name", "t"], 3),
        (["tokens", "create", "missing", "--name", "t", "--expires-in", "soon"], 2),
        (["tokens", "create", "missing", "--name", "t", "--expires-in", "0s"], 2),
        (["tokens", "revoke", "00000000-0000-0000-0000-000000000000"], 3),
    ],
)
def test_invalid_value_is_refused_with_its_code(run: Run, args: list[str], code: int) -> None:
    refused = run(*args)
    assert (refused.exit_code, refused.stdout) == (code, "")
    assert len(refused.stderr) > 10


def test_command_that_is_named_for_a_missing_role_creates_it(run: Run) -> None:
    run("principals", "create", "web", "--kind", "service")
    refused = run("roles", "grant", "web", "submiter", "--scope", "own")
    assert refused.exit_code == 3
    named = refused.stderr.split("`laneway ")[1].split("`")[0]
    assert run(*named.replace("PERMISSIONS", "jobs:submit").split()).exit_code == 0
    assert run("roles", "grant", "web", "submiter", "--scope", "own").exit_code == 0


def test_permissions_that_no_role_of_the_principal_has_are_named(run: Run) -> None:
    run("principals", "create", "ann")
    without = run("tokens", "create", "ann", "--name", "idle")
    assert "ann has no role, so the token can do nothing yet" in without.stderr
    run("roles", "grant", "ann", "viewer", "--scope", "all")
    wide = run(
        "tokens", "create", "ann", "--name", "wide", "--permissions", "jobs:read,jobs:cancel"
    )
    assert wide.exit_code == 0
    assert "no role of ann has jobs:cancel: the token cannot use it until" in wide.stderr
    narrow = run("tokens", "create", "ann", "--name", "narrow", "--permissions", "jobs:read")
    assert "no role of" not in narrow.stderr


def test_word_for_a_removed_bound_is_named(run: Run) -> None:
    run("principals", "create", "ann")
    refused = run("roles", "grant", "ann", "viewer", "--scope", "all", "--max-priority", "none")
    assert refused.exit_code == 2
    assert "'none' is not a bound: write a whole number, or `usual` to remove it" in refused.stderr


def test_tokens_ls_says_which_token_expires_soon(run: Run, factory: JobFactory) -> None:
    people = People(factory.conn)
    people.expire(people.new("ann").token, days=5.5)
    people.expire(people.new("bob").token, days=50)
    people.expire(people.new("eve").token, days=-1)
    found = {row.split()[1]: row for row in run("tokens", "ls").stdout.splitlines()[1:]}
    assert " expires in 5 days " in found["ann"]
    assert " live " in found["bob"]
    assert " expired " in found["eve"]


def test_grants_show_the_figures_of_their_bounds(run: Run, factory: JobFactory) -> None:
    people = People(factory.conn)
    people.new("ann", "submitter")
    people.grant(people.new("bob").id, "submitter", max_priority=7)
    people.new("ops", "operator")
    people.new("eve", "viewer")
    rows = {row.split()[1]: row for row in run("roles", "grants").stdout.splitlines()[1:]}
    usual = (
        "max_queued 100,000 (usual), max_queued_bytes 1,073,741,824 (usual), max_types 100 (usual)"
    )
    assert f" max_priority 100 (usual), {usual} " in rows["ann"]
    assert f" max_priority 7, {usual} " in rows["bob"]
    assert rows["ops"].split()[-2:] == ["none", "tests"]
    assert rows["eve"].split()[-2:] == ["-", "tests"]


def test_unique_prefix_of_an_id_is_enough_to_revoke(run: Run, factory: JobFactory) -> None:
    run("principals", "create", "bot", "--kind", "service")
    (grant,) = lines(run("roles", "grant", "bot", "submitter", "--scope", "own", "--json"))
    made = [lines(run("tokens", "create", "bot", "--name", name, "--json"))[0] for name in "ab"]
    first, second = (one["id"] for one in made)
    shared = first[: next(n for n in range(36) if first[n] != second[n])]
    several = run("tokens", "revoke", shared)
    assert several.exit_code == 2
    assert first in several.stderr
    assert second in several.stderr
    assert run("tokens", "revoke", "ffffffff").exit_code == 3
    assert f"token {second} of bot: revoked" in run("tokens", "revoke", second[:30]).stderr
    assert "no longer has the role" in run("roles", "revoke", grant["id"][:30]).stderr


def test_grant_names_what_scope_own_does_not_cover(run: Run) -> None:
    run("principals", "create", "ann", "--kind", "service")
    run("roles", "create", "sender", "--permissions", "events:send")
    refused = run("roles", "grant", "ann", "sender", "--scope", "own")
    assert refused.exit_code == 2
    assert "workspace or all" in refused.stderr
    run("roles", "create", "mixed", "--permissions", "jobs:read,events:send")
    granted = run("roles", "grant", "ann", "mixed", "--scope", "own")
    assert granted.exit_code == 0
    assert "the scope own covers nothing of events:send" in granted.stderr
    assert "covers nothing" not in run("roles", "grant", "ann", "mixed", "--scope", "all").stderr
