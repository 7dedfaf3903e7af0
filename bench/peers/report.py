"""The table at the end of a run, and the page with charts that is written from the samples."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.peers import plan
from bench.peers.charts import Bar, bars, number
from bench.peers.comparison import OURS, TARGETS
from bench.peers.results import Results
from bench.peers.workload import Workload
from bench.peers.workloads import idle

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "peers.md"
IMAGES = ROOT / "docs" / "images"
# Workload, value, title, unit, whether less is better.
Column = tuple[str, str, str, str, bool]
COSTS: list[Column] = [
    ("drain_1p", "cpu_worker_us", "worker, µs of CPU per job", "µs", True),
    ("drain_1p", "cpu_store_us", "PostgreSQL or Redis, µs of CPU per job", "µs", True),
    (idle.NAME, "transactions", "transactions per job", "", True),
    ("drain_1p", "wal_bytes", "WAL bytes per job", "B", True),
    (idle.NAME, "statements_per_s", "idle: statements per second", "", True),
    (idle.NAME, "cpu_ms_per_s", "idle: ms of CPU per second", "ms", True),
    (idle.NAME, "resident_mb", "idle: resident MB", "MB", True),
    (idle.NAME, "proportional_mb", "idle: proportional MB", "MB", True),
    ("drain_1p", "resident_mb", "after a drain: resident MB", "MB", True),
]
# So many fit beside the names in 80 characters.
TABLE_COLUMNS = 4
CHARTS: list[Column] = [
    ("drain_1p", "rate", "Empty jobs, one worker process", "jobs/s", False),
    ("drain_16p", "rate", "Empty jobs, 16 worker processes", "jobs/s", False),
    ("submit_many", "rate", "Bulk submit", "jobs/s", False),
    ("backlog", "rate", "Empty jobs in front of 1,000,000", "jobs/s", False),
    ("start", "p50_ms", "Start of a job in an idle worker, p50", "ms", True),
    ("drain_1p", "cpu_us", "CPU per job, worker and store", "µs", True),
]

HEAD = """# Beside other job systems

<!-- Written by `make bench-peers` from bench/latest/peers.json. Do not edit. -->

`make bench-peers` installs each system below, in an environment for it alone, and runs the same
workloads on all of them on your machine. It takes at most an hour (`FULL=1`: all cells five times,
longer; `ARGS=--quick`: a smoke check of three minutes).

## Method

- One PostgreSQL with one set of settings for all; `fsync` and `synchronous_commit` are on. Redis
  runs without persistence, which is its fastest.
- Each system runs in the best configuration that its documentation gives, with the newest version
  that can be installed. Laneway runs with its defaults; the tuned row is shown beside it and is not
  compared.
- The systems take turns within each round. A cell is the median of five runs or more; the spread is
  shown. `¹` marks cells with fewer runs, because they did not fit into the time or were noisy.
- Before each run a fixed loop and a commit are timed. A run is noisy if other programs used more
  than 12 % of the processors or the loop took 1.3 times as long as usual. Noisy runs are repeated
  and do not count; `ᵃ` marks medians that had to include them.
- A job has a payload of about fifty bytes. **Drain**: worker processes are started and run some
  jobs. Then they are stopped (`SIGSTOP`), the jobs are submitted with the system's bulk call, and
  all processes continue at once (`SIGCONT`). The rate counts from the first start of a handler to
  the moment when the store has no unfinished job. A slow system gets as many jobs as it runs in
  about four seconds.
- **Backlog**: a worker starts on 1,000,000 waiting jobs; the rate is that of 20,000 jobs after the
  first 5,000. For oban and procrastinate the jobs are copies of 20,000 submitted ones.
- **Held snapshot**: a `REPEATABLE READ` transaction stays open during the drain.
- **Start**: 100 jobs, one about every 25 ms; from just before the submit in one process to the
  first line of the handler in another.
- **Transactions** are all that a worker adds to PostgreSQL's own count during a drain.
  **Statements** of an idle worker come from the server's log; for Redis they are commands.
- Resident memory counts shared pages for each process; proportional memory divides them.

A difference of less than 15 % between two systems is not a finding.
"""


def _workloads() -> list[Workload]:
    return plan.WORKLOADS


def show(results: Results, console: Console) -> None:
    """Print the medians of all values, with a row for each system; then settings and failures."""
    columns = [*_main_columns(results), *(one for one in COSTS if one[0] in results.samples)]
    for start in range(0, len(columns), TABLE_COLUMNS):
        shown = columns[start : start + TABLE_COLUMNS]
        table = Table("system", *(_heading(column) for column in shown))
        for column in table.columns[1:]:
            column.justify = "right"
        for name in results.systems:
            table.add_row(name, *(_cell(results, one[0], name, one[1]) for one in shown))
        console.print(table)
    for name, known in results.systems.items():
        versions = ", ".join(f"{one} {version}" for one, version in known["versions"].items())
        console.print(f"{name}: {versions}; {known['settings']}", markup=False, highlight=False)
    settings = ", ".join(f"{name} {value}" for name, value in results.postgres.items())
    console.print(f"PostgreSQL: {settings}; Redis: {results.redis or 'not used'}", highlight=False)
    for system, reason in results.left_out.items():
        console.print(f"left out: {system}: {reason}")
    for kind, found in (("cannot", results.cannot), ("failed", results.failed)):
        for workload_name, reasons in found.items():
            for system, reason in reasons.items():
                console.print(f"{kind}: {workload_name} on {system}: {reason}", markup=False)
    console.print(
        f"host: loop {results.usual_loop_ms:.2f} ms, commit {results.commit_ms:.2f} ms;"
        f" {results.minutes:.0f} minutes"
    )


def _heading(column: Column) -> str:
    """The name of a workload and of its value, for a narrow table."""
    workload, value, *_ = column
    return workload if value == "rate" else f"{workload} {value}"


def _cell(results: Results, workload: str, system: str, value: str) -> str:
    found = results.summary(workload, system, value)
    if found is None:
        is_failed = system in results.failed.get(workload, {})
        return "failed" if is_failed else "–"
    marks = ("¹" if found.runs < 5 and workload != idle.NAME else "") + ("ᵃ" if found.noisy else "")
    return number(found.median) + marks


def _spread(results: Results, workload: str, system: str, value: str) -> str:
    found = results.summary(workload, system, value)
    shown = _cell(results, workload, system, value)
    if found is None or found.runs < 2:
        return shown
    return f"{shown}<br>{number(found.low)}–{number(found.high)}"


def write(results: Results) -> None:
    """Write the page and its charts."""
    PAGE.write_text(render(results))
    for index, chart in enumerate(CHARTS):
        path = IMAGES / _image(index)
        drawn = _chart(results, chart)
        if drawn is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(drawn)


def _image(index: int) -> str:
    workload, value, *_ = CHARTS[index]
    return f"peers-{workload}-{value}.svg".replace("_", "-")


def _chart(results: Results, chart: Column) -> str | None:
    workload, value, title, unit, is_lower_better = chart
    rows = [
        Bar(name, found.median, found.low, found.high, name.startswith(OURS))
        for name in results.systems
        if (found := results.summary(workload, name, value)) is not None
    ]
    rows.sort(key=lambda row: row.value, reverse=not is_lower_better)
    return bars(title, unit, rows) if rows else None


def render(results: Results) -> str:
    """The page as Markdown."""
    parts = [HEAD, *_systems(results)]
    if not results.samples:
        return "\n".join(
            [*parts, "## Results", "", "No run yet: `make bench-peers` writes them.", ""]
        )
    parts += _machine(results)
    parts += _table("Rates and times", results, _main_columns(results))
    parts += _table("Costs", results, COSTS)
    for index, chart in enumerate(CHARTS):
        if _chart(results, chart) is not None:
            parts += [f"![{chart[2]}](../images/{_image(index)})", ""]
    parts += _verdict(results)
    return "\n".join(parts)


def _main_columns(results: Results) -> list[Column]:
    columns: list[Column] = []
    for workload in _workloads():
        entry = (workload.name, workload.main, workload.title, workload.unit)
        columns.append((*entry, workload.is_lower_better))
        if workload.name == "start":
            columns.append(
                (workload.name, "p99_ms", workload.title.replace("p50", "p99"), "ms", True)
            )
    return [column for column in columns if column[0] in results.samples]


def _systems(results: Results) -> list[str]:
    lines = ["## Systems", "", "| system | versions | configuration | gives up |"]
    lines.append("| --- | --- | --- | --- |")
    for system in plan.all_systems():
        if system.name in results.left_out:
            continue
        known = results.systems.get(system.name, {}).get("versions", {})
        versions = ", ".join(f"{name} {number}" for name, number in known.items()) or "newest"
        gives_up = system.gives_up or "–"
        lines.append(f"| {system.name} | {versions} | {system.settings} | {gives_up} |")
    lines += ["", "*Gives up* names what Laneway does and this system, so configured, does not."]
    lines += [""]
    for name, reason in results.left_out.items():
        lines += [f"**{name} is left out**: {reason}", ""]
    return lines


def _machine(results: Results) -> list[str]:
    host = ", ".join(f"{name}: {value}" for name, value in results.host.items())
    settings = ", ".join(f"`{name}` {value}" for name, value in results.postgres.items())
    speed = (
        f"The fixed loop took {results.usual_loop_ms:.2f} ms, a commit {results.commit_ms:.2f} ms"
    )
    rest = f"Redis {results.redis or 'was not used'}. The run took {results.minutes:.0f} minutes."
    text = [f"{host}.", f"{speed} (medians). {rest}", f"PostgreSQL: {settings}."]
    return ["## Results", "", *(part for one in text for part in (one, ""))]


def _table(title: str, results: Results, columns: list[Column]) -> list[str]:
    names = list(results.systems)
    lines = [f"### {title}", "", f"| | {' | '.join(names)} |", "| --- |" + " ---: |" * len(names)]
    for workload, value, text, unit, _ in columns:
        cells = [_spread(results, workload, name, value) for name in names]
        label = f"{text}, {unit}" if unit and unit not in text else text
        lines.append(f"| {label} | {' | '.join(cells)} |")
    lines.append("")
    for workload in dict.fromkeys(column[0] for column in columns):
        for kind, found in (("is not run", results.cannot), ("failed", results.failed)):
            for system, reason in found.get(workload, {}).items():
                first = reason.strip().splitlines()[-1] if reason.strip() else ""
                lines += [f"- `{workload}` {kind} on {system}: {first}"]
    return [*lines, ""]


def _verdict(results: Results) -> list[str]:
    """The figures with their targets, and every value where another system is ahead."""
    lines = ["### Laneway with its defaults beside the best", "", "| figure | value | target |"]
    lines.append("| --- | ---: | ---: |")
    for name, target in TARGETS.items():
        if name in results.figures:
            lines.append(f"| `{name}` | {number(results.figures[name])} | {target or ''} |")
    lines += ["", "### Where another system is ahead", ""]
    ahead = [_ahead(results, column) for column in [*_main_columns(results), *COSTS]]
    found = [line for line in ahead if line]
    return [*lines, *(found or ["Nowhere in this run."]), ""]


def _ahead(results: Results, column: Column) -> str | None:
    workload, value, title, unit, is_lower_better = column
    ours = results.median(workload, OURS, value)
    others = {
        name: median
        for name in results.systems
        if not name.startswith(OURS)
        and (median := results.median(workload, name, value)) is not None
    }
    if ours is None or not others:
        return None
    best = (min if is_lower_better else max)(others, key=lambda name: others[name])
    is_ahead = others[best] < ours if is_lower_better else others[best] > ours
    if not is_ahead:
        return None
    gives_up = results.systems[best]["gives_up"]
    price = f" It gives up: {gives_up}." if gives_up else ""
    unit = f" {unit}" if unit else ""
    return f"- {title}: {best} {number(others[best])}{unit}, Laneway {number(ours)}{unit}.{price}"
