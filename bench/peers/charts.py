"""Bar charts as SVG."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH = 720
LABEL_WIDTH = 200
VALUE_WIDTH = 90
ROW = 26
TOP = 34
STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #24292f }
    .title { font-weight: 600 }
    .page { fill: #ffffff }
    .bar { fill: #8c959f }
    .ours { fill: #0969da }
    .spread { stroke: #24292f; stroke-width: 1.5 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .page { fill: #0d1117 } .bar { fill: #6e7681 }
      .ours { fill: #4493f8 } .spread { stroke: #e6edf3 }
    }
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """A median with its spread."""

    label: str
    value: float
    low: float
    high: float
    is_ours: bool


def number(value: float) -> str:
    """A number with about three digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def bars(title: str, unit: str, rows: list[Bar]) -> str:
    """Horizontal bars, one per row, with a line from the lowest to the highest run."""
    height = TOP + ROW * len(rows) + 10
    longest = max((row.high for row in rows), default=1.0) or 1.0
    scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / longest
    size = f'width="{WIDTH}" height="{height}"'
    view = f'viewBox="0 0 {WIDTH} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {view} role="img" {size}>',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" {size}/>',
        f'<text class="title" x="8" y="20">{escape(title)} ({escape(unit)})</text>',
    ]
    for index, row in enumerate(rows):
        parts += _row(row, TOP + ROW * index, scale)
    return "\n".join([*parts, "</svg>", ""])


def _row(row: Bar, y: int, scale: float) -> list[str]:
    kind = "bar ours" if row.is_ours else "bar"
    low, end, high = (LABEL_WIDTH + part * scale for part in (row.low, row.value, row.high))
    text, middle = y + 16, y + ROW / 2 - 2
    box = f'x="{LABEL_WIDTH}" y="{y + 3}" width="{end - LABEL_WIDTH:.1f}" height="{ROW - 10}"'
    line = f'x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"'
    return [
        f'<text x="{LABEL_WIDTH - 8}" y="{text}" text-anchor="end">{escape(row.label)}</text>',
        f'<rect class="{kind}" {box}/>',
        f'<line class="spread" {line}/>',
        f'<text x="{max(high, end) + 6:.1f}" y="{text}">{number(row.value)}</text>',
    ]
