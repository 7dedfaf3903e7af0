"""The project of a working directory: its configuration and its embedded database."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from laneway.app.loader import load_app
from laneway.app.open_database import embedded_server
from laneway.config.project import find_project
from laneway.config.settings import Settings
from laneway.embedded import location
from laneway.embedded.account import cluster_account
from laneway.embedded.location import existing_clusters, project_location, user_directory
from laneway.embedded.postgres import EmbeddedPostgres
from laneway.errors import ConfigError
from tests.conftest import short_data_dir

IS_ROOT = os.geteuid() == 0
STRANGER = 54321
as_root = pytest.mark.skipif(not IS_ROOT, reason="only root can give files to another account")


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that every account may enter, with a home of this user."""
    for name in list(os.environ):
        if name.startswith(("LANEWAY_D", "LANEWAY_E", "PG")) or name == "DATABASE_URL":
            monkeypatch.delenv(name)
    with short_data_dir() as path:
        (path / "share").mkdir(parents=True)
        path.chmod(0o755)
        monkeypatch.setenv("XDG_DATA_HOME", str(path / "share"))
        yield path.resolve()


def below(directory: Path, *names: str) -> Path:
    made = directory.joinpath(*names)
    made.mkdir(parents=True)
    return made


def give_away(path: Path) -> None:
    """Make an account without a name the owner."""
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


@pytest.mark.parametrize("mark", ["laneway.toml", "pyproject.toml", ".git"])
def test_project_is_the_nearest_marked_directory(place: Path, mark: str) -> None:
    inside = below(place, "shop", "src", "shop")
    (place / "shop" / mark).touch()
    assert find_project(inside) == find_project(place / "shop") == place / "shop"
    (inside / "pyproject.toml").touch()
    assert find_project(inside) == inside


def test_working_directory_without_marks_is_its_own_project(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = below(place, "scratch")
    monkeypatch.chdir(inside)
    assert find_project() == inside


def test_embedded_database_marks_the_project_of_directories_below(place: Path) -> None:
    inside = below(place, "shop", "src", "shop")
    project_location(place / "shop").prepare()
    assert find_project(inside) == find_project(place / "shop") == place / "shop"


def test_planted_data_directory_marks_no_project(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = below(place, "shop", "src")
    target = below(place, "elsewhere")
    (place / "shop" / ".laneway").symlink_to(target)
    assert find_project(inside) == inside
    (place / "shop" / ".laneway").unlink()
    below(place, "shop", ".laneway")
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert find_project(inside) == inside


def test_home_and_public_directories_are_projects_of_nothing_below(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, public = below(place, "home"), below(place, "public")
    monkeypatch.setenv("HOME", str(home))
    public.chmod(0o1777)
    for directory in (home, public):
        (directory / ".git").mkdir()
        (directory / ".laneway").mkdir()
        inside = below(directory, "scratch")
        assert find_project(inside) == inside
        assert find_project(directory) == directory


@as_root
def test_directory_of_another_account_is_the_project_of_nothing_below(place: Path) -> None:
    shop, inside = place / "shop", below(place, "shop", "src")
    (shop / "laneway.toml").touch()
    give_away(shop)
    assert find_project(inside) == inside
    (place / "laneway.toml").touch()
    assert find_project(shop) == shop
    (shop / "laneway.toml").unlink()
    assert find_project(shop) == shop


@as_root
def test_project_of_another_account_is_found_from_below_and_needs_consent(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root in a container sees a mounted checkout: a silent default would be a surprise."""
    shop, inside = place / "shop", below(place, "shop", "src")
    config = shop / "laneway.toml"
    config.write_text("concurrency = 7\n")
    for path in (config, inside, shop):
        give_away(path)
    assert find_project(inside) == find_project(shop) == shop
    monkeypatch.chdir(inside)
    with pytest.raises(ConfigError, match=rf"run as that account .*LANEWAY_CONFIG={config}"):
        Settings.load()
    config.unlink()
    assert find_project(inside) == inside


@as_root
@pytest.mark.parametrize("foreign", ["shop", "shop/laneway.toml"])
def test_configuration_of_another_account_needs_consent(
    place: Path, foreign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = below(place, "shop") / "laneway.toml"
    config.write_text("concurrency = 7\n")
    give_away(place / foreign)
    monkeypatch.chdir(config.parent)
    with pytest.raises(ConfigError, match=rf"another account owns .*LANEWAY_CONFIG={config}"):
        Settings.load()
    monkeypatch.setenv("LANEWAY_CONFIG", str(config))
    assert Settings.load().concurrency == 7


@as_root
def test_configuration_linked_by_another_account_needs_consent(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link of root to a file of root is how Kubernetes mounts it."""
    shop = below(place, "shop")
    (shop / "real.toml").write_text("concurrency = 7\n")
    (shop / "laneway.toml").symlink_to("real.toml")
    monkeypatch.chdir(shop)
    assert Settings.load().concurrency == 7
    give_away(shop / "laneway.toml")
    with pytest.raises(ConfigError, match="another account owns"):
        Settings.load()


def test_configuration_of_the_project_applies_in_its_directories(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = below(place, "shop", "src")
    (place / "shop" / "laneway.toml").write_text('concurrency = 7\ndata_dir = "data"\n')
    monkeypatch.chdir(inside)
    settings = Settings.load()
    assert (settings.concurrency, settings.data_dir) == (7, place / "shop" / "data")


def test_embedded_database_is_that_of_the_working_directory(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that of the application's module: commands without one need the same database."""
    modules = below(place, "modules")
    (modules / "pyproject.toml").touch()
    (modules / "app_elsewhere.py").write_text("from laneway import Laneway\nlw = Laneway()\n")
    monkeypatch.syspath_prepend(modules)
    for name in ("shop", "office"):
        inside = below(place, name, "src")
        (place / name / "pyproject.toml").touch()
        monkeypatch.chdir(inside)
        found = embedded_server(load_app("app_elsewhere:lw").settings).data_dir
        assert found.is_relative_to(place / name / ".laneway")


@pytest.mark.parametrize(
    "given, embedded",
    [(True, "project"), ("on", "project"), ("shared", "shared"), (False, "off"), ("no", "off")],
)
def test_embedded_setting_accepts_usual_boolean_words(
    place: Path, given: object, embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    assert Settings.load(embedded=given).embedded == embedded


def test_data_of_a_project_is_beside_its_files_and_ignored_by_git(place: Path) -> None:
    project = below(place, "shop")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    found = project_location(project)
    assert (found.directory, found.reason) == (project / ".laneway", "")
    found.prepare()
    found.prepare()
    (found.directory / "data").touch()
    status = ["git", "-C", str(project), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, check=True).stdout == b""


def test_project_that_cannot_hold_data_gets_a_separate_directory_and_a_reason(place: Path) -> None:
    first, second = below(place, "one", "shop"), below(place, "two", "shop")
    for project in (first, second):
        # PostgreSQL runs as another account for root, and that account must enter.
        project.chmod(0o700 if IS_ROOT else 0o555)
    found = [project_location(project) for project in (first, second)]
    assert {one.directory.parent for one in found} == {place / "share" / "laneway" / "projects"}
    assert found[0].directory != found[1].directory
    assert all("cannot" in one.reason for one in found)


def test_project_that_every_account_can_write_holds_no_data(place: Path) -> None:
    public = below(place, "public")
    public.chmod(0o1777)
    found = project_location(public)
    assert found.directory.parent == place / "share" / "laneway" / "projects"
    assert found.reason == f"every account can write {public}"


@as_root
def test_project_of_another_account_holds_no_data(place: Path) -> None:
    project = below(place, "shop")
    give_away(project)
    found = project_location(project)
    assert found.directory.parent == place / "share" / "laneway" / "projects"
    assert "belongs to another account" in found.reason


@as_root
def test_data_directory_of_another_account_is_refused(place: Path) -> None:
    own = below(place, "shop", ".laneway")
    give_away(own)
    with pytest.raises(ConfigError, match=r"\.laneway belongs to another account .*remove it"):
        project_location(place / "shop")
    with pytest.raises(ConfigError, match="belongs to another account"):
        location.Location(own).prepare()
    assert list(own.iterdir()) == []


def test_linked_data_directory_is_refused_and_its_target_kept(place: Path) -> None:
    target, own = below(place, "target"), below(place, "shop") / ".laneway"
    target.chmod(0o750)
    own.symlink_to(target)
    with pytest.raises(ConfigError, match=r"\.laneway .*is a symbolic link: remove it"):
        project_location(place / "shop")
    with pytest.raises(ConfigError, match="is a symbolic link"):
        location.Location(own).prepare()
    assert stat.S_IMODE(target.stat().st_mode) == 0o750
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("mode", [0o720, 0o702])
def test_data_directory_that_others_can_change_is_refused(place: Path, mode: int) -> None:
    below(place, "shop", ".laneway").chmod(mode)
    with pytest.raises(ConfigError, match=rf"changed by other accounts \(mode {mode:o}\)"):
        project_location(place / "shop")


def test_existing_data_directory_keeps_its_mode_and_its_links(place: Path) -> None:
    own, victim = below(place, "shop", ".laneway"), place / "victim"
    own.chmod(0o755)
    (own / ".gitignore").symlink_to(victim)
    project_location(place / "shop").prepare()
    assert stat.S_IMODE(own.stat().st_mode) == 0o755
    assert not victim.exists()


def test_git_ignores_the_data_directory_of_a_project(place: Path) -> None:
    project = below(place, "shop")
    git = ("git", "-C", str(project))
    subprocess.run([*git, "init", "--quiet"], check=True)
    project_location(project).prepare()
    (project / ".laneway" / "data").touch()
    seen = subprocess.run([*git, "status", "--short"], check=True, capture_output=True, text=True)
    assert seen.stdout == ""


@as_root
@pytest.mark.parametrize("foreign", ["postgres", "postgres/pgdata"])
def test_root_refuses_the_cluster_of_another_account(place: Path, foreign: str) -> None:
    pgdata = below(place, "postgres", "pgdata")
    server = pwd.getpwnam("nobody").pw_uid
    os.chown(pgdata, server, server)
    assert cluster_account(pgdata).uid == server
    give_away(place / foreign)
    with pytest.raises(ConfigError, match="belongs to another user"):
        cluster_account(pgdata)


def test_directory_of_root_is_one_that_the_server_can_enter(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "share").chmod(0o700)
    monkeypatch.setattr(location, "SYSTEM_DATA", place / "system")
    expected = place / "system" if IS_ROOT else place / "share" / "laneway"
    assert user_directory() == expected


def test_account_without_a_home_uses_the_directory_of_the_system(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(uid: int) -> object:
        raise KeyError(uid)

    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(location, "SYSTEM_DATA", place / "system")
    assert user_directory() == place / "system"
    assert find_project(place) == place


def test_reset_refuses_a_linked_cluster_and_keeps_its_target(place: Path) -> None:
    home, target = below(place, "postgres"), below(place, "disk")
    (target / "PG_VERSION").touch()
    (home / "pgdata").symlink_to(target)
    with pytest.raises(ConfigError, match=r"pgdata is a symbolic link.*replace the link"):
        EmbeddedPostgres(home).reset()
    assert (home / "pgdata").is_symlink()
    assert [each.name for each in home.iterdir()] == ["pgdata"]
    assert (target / "PG_VERSION").exists()


def test_clusters_of_a_directory_are_found(place: Path) -> None:
    assert list(existing_clusters(place)) == []
    below(place, "postgres-18", "pgdata")
    below(place, "postgres-99")
    assert list(existing_clusters(place)) == [place / "postgres-18"]
