"""Texts that would run, break the layout or deceive if a page did not show them as text."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

# A job type is shown on nearly every screen.
JOB_TYPE = "<img src=x onerror=alert('type')>"
NAME = "<b onclick=alert('name')>Mallory</b>"
WORKER = "<svg onload=alert('worker')>"

TEXTS = (
    "<script>alert('script')</script>",
    "<img src=x onerror=alert('img')>",
    "\"><svg/onload=alert('svg')>",
    "'><iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "javascript:alert('address')",
    "[link](javascript:alert('markdown'))",
    "http://example.org/\"onmouseover=\"alert('link')",
    "https://example.org/<script>alert('path')</script>",
    "data:text/html,<script>alert('data')</script>",
    "</title></style></textarea><script>alert('closing')</script>",
    "<!--<script>alert('comment')</script>-->",
    "<details open ontoggle=alert('toggle')>",
    "<a href='javascript:alert(1)'>click</a>",
    "<form action=javascript:alert(1)><button>send</button></form>",
    "<style>*{display:none}</style>",
    "<base href=//example.org>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert('mutation')>",
    "{{constructor.constructor('alert(1)')()}} ${alert(1)} #{alert(1)} <%= alert(1) %>",
    "__proto__ constructor toString",
    "%3Cscript%3Ealert('encoded')%3C/script%3E &lt;script&gt;alert(1)&lt;/script&gt;",
    "\u202egpj.exe \u2028 \u2066 \u0301\u0301\u0301 \ufeff",
    "W" * 2_000,
    "line one\nline two\r\n\tindented <script>alert('lines')</script>",
)

# For names of flows, jobs in them, waits, events and keys: at most 128 bytes, without controls.
NAMES = [text for text in TEXTS[:20] if len(text) <= 100]

# Elements and addresses that only hostile text could have made.
_MADE = """
() => {
  const made = [...document.querySelectorAll(
    "iframe, object, embed, base, details[ontoggle], math, body style, body script:not([src])")];
  const all = [...document.querySelectorAll("*")];
  made.push(...all.filter((each) => [...each.attributes].some(({ name, value }) =>
    name.startsWith("on") || (/^(href|src|action|formaction)$/.test(name)
      && /^\\s*(javascript|data|vbscript):/i.test(value)))));
  return made.map((each) => each.outerHTML.slice(0, 120));
}
"""


def payload(key: str, *, fails: bool = True) -> dict[str, Any]:
    """A payload with hostile keys and values."""
    return {"key": key, "texts": list(TEXTS), "fails": fails}


def made_elements(page: Page) -> list[str]:
    """The elements that hostile text has made on this page."""
    found: list[str] = page.evaluate(_MADE)
    return found
