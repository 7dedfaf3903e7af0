"""Documentation cannot drift: every fenced code block is run, parsed, or says why not.

    python              run in order, one namespace and event loop per document, `await` allowed
    python title="f.py" written to f.py, imported, and its names are there for later blocks
    bash, sh            run with `bash -euo pipefail`; background processes live until the end
    sql                 run in one transaction and committed
    json, toml, ini     must parse
    text, mermaid       shown only

All blocks of a document share an empty working directory and a separate database
(`LANEWAY_DATABASE_URL`). A block of any kind with `title="..."` is written to that file there.
`<!-- run: skip because REASON -->` before a block exempts it; any other language fails.
`<!-- run: wait until COMMAND -->` repeats the command until it succeeds, as a reader waits.
"""

from __future__ import annotations

import configparser
import contextlib
import functools
import json
import os
import re
import select
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import psycopg
import pytest
from markdown_it import MarkdownIt

from laneway.embedded.binaries import find_binaries
from tests.docs.fork_server import fork, write_command

ROOT = Path(__file__).resolve().parents[2]
FORK_SERVER = Path(__file__).with_name("fork_server.py")
SECONDS_PER_BLOCK = 60.0

RUN = {"python", "bash", "sh", "sql"}
PARSE: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "ini": lambda text: configparser.ConfigParser(interpolation=None).read_string(text),
}
SHOW = {"text", "mermaid"}

MARKER = re.compile(r"<!--\s*run:(?P<rule>.*?)-->", re.DOTALL)
REASON = re.compile(r"\s*skip because (?P<reason>\S.*?)\s*", re.DOTALL)
WAIT = re.compile(r"\s*wait until (?P<command>\S.*?)\s*", re.DOTALL)
LOOP = re.compile(r"^\s*(?:for|until|while)\b", re.MULTILINE)
TITLE = re.compile(r'title="(?P<name>[^"]+)"')


@dataclass(frozen=True)
class Block:
    document: Path
    line: int
    """Of the first line of code, counted from 1."""
    language: str
    title: str | None
    code: str
    skipped: bool
    is_condition: bool = False
    """It is repeated until it succeeds."""

    @property
    def place(self) -> str:
        inside = self.document.is_relative_to(ROOT)
        return f"{self.document.relative_to(ROOT) if inside else self.document}:{self.line}"


class BlockFailed(AssertionError):
    """A block did not do what the document says; names file, line, cause and output."""

    def __init__(self, block: Block, cause: str, output: str = "") -> None:
        shown = f"\n--- code\n{block.code.rstrip()}" if block.code.strip() else ""
        details = f"\n--- output\n{output.rstrip()}" if output.strip() else ""
        super().__init__(f"{block.place}: {cause}{shown}{details}")


@functools.cache
def postgres_programs() -> Path:
    return find_binaries().directory


def read_blocks(document: Path) -> list[Block]:
    """Every fenced block of a document, in order; a marker without reason or block is an error."""
    blocks: list[Block] = []
    pending: Block | None = None  # the block that a marker exempts
    for token in MarkdownIt().parse(document.read_text("utf-8")):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "html_block" and (marker := MARKER.search(token.content)):
            if wait := WAIT.fullmatch(marker["rule"]):
                condition = Block(document, line, "bash", None, wait["command"], False, True)
                blocks.append(condition)
                continue
            pending = Block(document, line, "", None, "", skipped=True)
            if not REASON.fullmatch(marker["rule"]):
                rules = "skip because REASON, or wait until COMMAND"
                raise BlockFailed(pending, f"expected <!-- run: … --> with {rules}")
        elif token.type == "fence":
            language, _, rest = token.info.strip().partition(" ")
            title = TITLE.search(rest)
            name = title["name"] if title else None
            skipped = pending is not None
            blocks.append(Block(document, line + 1, language, name, token.content, skipped))
            pending = None
        elif pending:
            break
    if pending:
        raise BlockFailed(pending, "no code block follows this marker")
    return blocks


class PythonProcess:
    """A process that runs the Python blocks of a document; see python_process.py."""

    def __init__(self, fork_server: Path, directory: Path, env: dict[str, str], log: Path) -> None:
        code_read, code_write = os.pipe()
        answer_read, answer_write = os.pipe()
        with log.open("ab") as output:
            files = (code_read, answer_write, output.fileno())
            self.pid = fork(fork_server, "python", [], directory, env, files)
        os.close(code_read)
        os.close(answer_write)
        self._code, self._answers = os.fdopen(code_write, "wb"), os.fdopen(answer_read, "rb")

    def run(self, request: dict[str, object], seconds: float) -> bool:
        """Whether the block ran without an error. Raise TimeoutError if it still runs."""
        self._code.write(json.dumps(request).encode() + b"\n")
        self._code.flush()
        if not select.select([self._answers], [], [], seconds)[0]:
            raise TimeoutError
        return self._answers.readline() == b"ok\n"

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._code.close()  # the process closes its loop and ends by itself
        select.select([self._answers], [], [], 5)
        self._answers.close()


class DocumentRun:
    """An empty directory, an environment and the processes for the blocks of one document."""

    def __init__(self, directory: Path, fork_server: Path, dsn: str | None, seconds: float) -> None:
        self.fork_server = fork_server
        self.directory = directory / "work"
        self.directory.mkdir()
        self.log = directory / "output.log"
        self.log.touch()
        self.dsn = dsn
        self.seconds = seconds
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name == "LANEWAY_PG_BIN" or not name.startswith(("LANEWAY_", "DATABASE_URL"))
        }
        # pg_dump of another version may refuse the server.
        programs = (Path(sys.executable).parent, postgres_programs(), os.environ["PATH"])
        self.environment["PATH"] = os.pathsep.join(map(str, programs))
        self.environment["PYTHONDONTWRITEBYTECODE"] = (
            "1"  # two blocks may write one file within a second
        )
        # The plugins that a reader of the page has; those of this repository take longer to load.
        self.environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        self.environment["PYTEST_ADDOPTS"] = "-p asyncio -p laneway"
        if dsn:
            self.environment["LANEWAY_DATABASE_URL"] = dsn
            self.environment["LANEWAY_TEST_DATABASE_URL"] = dsn
        self.processes: list[subprocess.Popen[bytes]] = []
        self.python: PythonProcess | None = None
        self.groups: list[int] = []
        """Of processes that the fork server started."""

    def run(self, block: Block) -> None:
        self.log.write_bytes(b"")
        if block.title:
            self.write(block, block.title)
        if block.language == "python":
            self.run_python(block)
        elif block.language == "sql":
            self.run_sql(block)
        elif block.language in RUN:
            self.run_bash(block)
        elif parse := PARSE.get(block.language):
            try:
                parse(block.code)
            except (ValueError, configparser.Error) as error:
                raise BlockFailed(block, f"is not {block.language}: {error}") from None
        elif block.language not in SHOW:
            known = ", ".join(sorted(RUN | SHOW | set(PARSE)))
            found = f"language {block.language!r}" if block.language else "no language"
            raise BlockFailed(block, f"a code block with {found}; use one of {known}")

    def write(self, block: Block, title: str) -> None:
        path = (self.directory / title).resolve()
        if not path.is_relative_to(self.directory.resolve()):
            raise BlockFailed(block, f"title {title!r} is outside the working directory")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.code, "utf-8")

    def run_python(self, block: Block) -> None:
        if self.python is None:
            self.python = PythonProcess(
                self.fork_server, self.directory, self.environment, self.log
            )
            self.groups.append(self.python.pid)
        title = block.title or ""
        module = title.removesuffix(".py").replace("/", ".") if title.endswith(".py") else ""
        request = {"path": str(block.document), "line": block.line, "code": block.code}
        try:
            is_done = self.python.run({**request, "module": module}, self.seconds)
        except TimeoutError:
            os.killpg(self.python.pid, signal.SIGKILL)
            raise BlockFailed(
                block, f"still runs after {self.seconds:g} s", self.output()
            ) from None
        if not is_done:
            raise BlockFailed(block, "python failed", self.output())

    def run_bash(self, block: Block) -> None:
        if "laneway" in block.code and not self.log.with_name("bin").exists():
            self.provide_laneway()
        script = self.log.with_name("block.sh")
        code = block.code
        if block.is_condition:
            # grep may stop reading early, which must not fail the command before it.
            code = f"set +o pipefail; until {{ {block.code}\n}}; do sleep 0.1; done"
        script.write_text(code, "utf-8")
        process = self.start(["bash", "-euo", "pipefail", str(script)])
        try:
            status = process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            logs = [path.read_text("utf-8") for path in sorted(self.directory.glob("*.log"))]
            output = "\n".join([self.output(), *logs])
            raise BlockFailed(block, f"still runs after {self.seconds:g} s", output) from None
        if status:
            raise BlockFailed(block, f"bash failed with exit code {status}", self.output())

    def provide_laneway(self) -> None:
        """Put a `laneway` on the PATH whose processes end with this document."""
        programs, address = self.log.with_name("bin"), self.log.with_name("commands")
        ready, wrote = os.pipe()
        with self.log.open("ab") as log, open(os.devnull, "rb") as nothing:
            files = (nothing.fileno(), wrote, log.fileno())
            arguments = [str(address)]
            self.groups.append(
                fork(
                    self.fork_server,
                    "document",
                    arguments,
                    self.directory,
                    self.environment,
                    files,
                )
            )
        os.close(wrote)
        with os.fdopen(ready, "rb") as answers:
            assert answers.readline() == b"ready\n", self.output()
        write_command(programs, address)
        self.environment["PATH"] = f"{programs}{os.pathsep}{self.environment['PATH']}"

    def run_sql(self, block: Block) -> None:
        assert self.dsn is not None
        try:
            with psycopg.connect(self.dsn) as connection:
                connection.execute(block.code.encode())
        except psycopg.Error as error:
            raise BlockFailed(block, "sql failed", str(error)) from None

    def start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # so that its children can be ended with it
            )
        self.processes.append(process)
        return process

    def output(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def close(self) -> None:
        if self.python is not None:
            self.python.close()
        for group in (*self.groups, *(process.pid for process in self.processes)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        for pid in self.groups:
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(pid).wait()
        for process in self.processes:
            process.wait()


@contextlib.contextmanager
def document_run(
    directory: Path,
    fork_server: Path,
    dsn: str | None = None,
    seconds: float = SECONDS_PER_BLOCK,
) -> Iterator[DocumentRun]:
    bench = DocumentRun(directory, fork_server, dsn, seconds)
    try:
        yield bench
    finally:
        bench.close()


@pytest.fixture(scope="module")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The address of a process that has imported Laneway and forks the others."""
    address = tmp_path_factory.mktemp("forks") / "socket"
    command = [sys.executable, str(FORK_SERVER), str(address)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield address
        process.kill()


def documents() -> list[Path]:
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if path.is_file()]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_code_block_runs_as_shown(
    document: Path, tmp_path: Path, fork_server: Path, request: pytest.FixtureRequest
) -> None:
    blocks = [block for block in read_blocks(document) if not block.skipped]
    needs_database = any(block.language in RUN for block in blocks)
    dsn = str(request.getfixturevalue("dsn")) if needs_database else None
    with document_run(tmp_path, fork_server, dsn) as bench:
        for block in blocks:
            bench.run(block)


def test_no_document_has_a_shell_loop() -> None:
    """Readers type commands: what they wait for stands in a marker, which only tests see."""
    blocks = [block for document in documents() for block in read_blocks(document)]
    shells = [block for block in blocks if block.language in ("bash", "sh")]
    assert [block.place for block in shells if LOOP.search(block.code)] == []
    assert [block.place for block in shells if "python3 -c" in block.code] == []


@pytest.mark.parametrize("dump", ["move.sql", "rows.sql"])
def test_jobs_and_lanes_move_as_shown(
    dump: str, dsn: str, empty_dsn: str, tmp_path: Path, fork_server: Path
) -> None:
    with psycopg.connect(dsn) as old:
        old.execute("update laneway.worker_lanes set max_slots = 7 where name = 'system'")
        old.execute("select laneway.submit('moved', '{\"n\": 1}')")
    page = read_blocks(ROOT / "docs" / "howto" / "backup.md")
    (commands,) = [block for block in page if f"--file={dump}" in block.code]
    (empty,) = [block for block in page if block.title == "empty.sql"]
    with document_run(tmp_path, fork_server, dsn) as bench:
        bench.write(empty, "empty.sql")
        bench.run(replace(commands, code=f"NEW_DATABASE_URL='{empty_dsn}'\n{commands.code}"))
    with psycopg.connect(empty_dsn) as new:
        jobs = new.execute("select job_type, status from laneway.jobs_view").fetchall()
        lanes = new.execute("select max_slots from laneway.worker_lanes where name = 'system'")
        assert (jobs, lanes.fetchone()) == ([("moved", "approved")], (7,))


# ------------------------------------------------------------- the checker itself


def run_text(
    directory: Path, fork_server: Path, text: str, seconds: float = SECONDS_PER_BLOCK
) -> None:
    document = directory / "page.md"
    document.write_text(text, "utf-8")
    with document_run(directory, fork_server, seconds=seconds) as bench:
        for block in read_blocks(document):
            if not block.skipped:
                bench.run(block)


def test_blocks_share_names_files_and_the_event_loop(tmp_path: Path, fork_server: Path) -> None:
    run_text(
        tmp_path,
        fork_server,
        """
```python title="app.py"
import asyncio
greeting = "hello"
async def loop_id() -> int:
    return id(asyncio.get_running_loop())
```

1. In a list:

   ```python
   first = await loop_id()
   ```

```bash
python -c 'import app; print(app.greeting)' > greeting.txt
sleep 600 &
```

```python
from pathlib import Path
assert Path("greeting.txt").read_text() == "hello\\n"
assert first == await loop_id()
```

```bash
(sleep 0.2 && touch started) &
```

<!-- run: wait until test -e started -->
Words.

<!-- run: skip because it shows a mistake -->

```python
raise SystemExit("never run")
```

```text
anything
```
""",
    )


@pytest.mark.parametrize(
    "block, line, message",
    [
        ("```python\nx = 1\nraise ValueError('boom')\n```", 4, "ValueError: boom"),
        ("```python\nimport os; os._exit(3)\n```", 4, "python failed"),
        ("```bash\necho so far\nfalse\necho not reached\n```", 4, "exit code 1"),
        ("```bash\necho so far; false | cat\n```", 4, "so far"),
        ("```json\n{,}\n```", 4, "is not json"),
        ("```toml\na = \n```", 4, "is not toml"),
        ("```yaml\na: 1\n```", 4, "language 'yaml'"),
        ("```\nplain\n```", 4, "no language"),
        ('```text title="../out.txt"\nplain\n```', 4, "outside the working directory"),
        ("<!-- run: skip because -->\n```bash\nfalse\n```", 3, "with skip because REASON"),
        ("<!-- run: wait -->\n```bash\nfalse\n```", 3, "or wait until COMMAND"),
        ("<!-- run: skip because of rain -->\nWords.", 3, "no code block follows"),
    ],
)
def test_bad_block_fails_with_its_place_and_output(
    tmp_path: Path, fork_server: Path, block: str, line: int, message: str
) -> None:
    with pytest.raises(BlockFailed) as failure:
        run_text(tmp_path, fork_server, f"# Page\n\n{block}\n")
    assert f"page.md:{line}: " in str(failure.value)
    assert message in str(failure.value)


@pytest.mark.parametrize(
    "block",
    [
        "```python\nwhile True: pass\n```",
        "```bash\nsleep 600\n```",
        "<!-- run: wait until test -e never -->",
    ],
)
def test_block_that_does_not_end_fails_and_is_killed(
    tmp_path: Path, fork_server: Path, block: str
) -> None:
    with pytest.raises(BlockFailed, match="still runs after"):
        run_text(tmp_path, fork_server, f"{block}\n", seconds=0.2)


def test_wait_that_does_not_end_shows_the_logs(tmp_path: Path, fork_server: Path) -> None:
    page = "```bash\necho port is taken > server.log\n```\n\n<!-- run: wait until false -->\n"
    with pytest.raises(BlockFailed, match="port is taken"):
        run_text(tmp_path, fork_server, page, seconds=2)
