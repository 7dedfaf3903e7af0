export const statuses: [string, string][] = [
  ["pending", "analysing"],
  ["awaiting_approval", "awaiting_approval"],
  ["approved", "queued"],
  ["approved", "approved"],
  ["waiting", "waiting"],
  ["running", "running"],
  ["completed", "completed"],
  ["failed", "failed"],
  ["cancelled", "cancelled"],
];

export const history = Array.from({ length: 30 }, (_, at) =>
  Math.round(30 + 20 * Math.sin(at / 3) + 10 * Math.cos(at * 1.7)),
);

/** Stands for the exact numbers of the API client. */
export class BigNumber {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

export const payload = {
  path: "s3://archive/2026/report.pdf",
  pages: 10,
  account: new BigNumber("12345678901234567890123"),
  ratio: new BigNumber("0.10000000000000000000001"),
  dry_run: false,
  parent: null,
  options: { ocr: true, languages: ["de", "en"], retries: { network: 3, parse: 0 } },
  hostile: "<img src=x onerror=alert(1)> \u202e txt.exe",
  text: "The quick brown fox jumps over the lazy dog. ".repeat(40),
  empty: {},
  "odd key / with ~": [],
  rows: Array.from({ length: 250 }, (_, at) => ({ id: at, name: `row ${at}` })),
};

export const earlier = {
  path: "s3://archive/2026/report.pdf",
  pages: 8,
  account: new BigNumber("12345678901234567890122"),
  options: { ocr: true, languages: ["de"] },
  owner: "nico",
};

export const later = {
  path: "s3://archive/2026/report.pdf",
  pages: 10,
  account: new BigNumber("12345678901234567890123"),
  options: { ocr: true, languages: ["de", "en"], mode: { fast: true } },
};

export const traceback = `Traceback (most recent call last):
  File "/usr/lib/python3.11/asyncio/tasks.py", line 267, in __step
    result = coro.send(None)
  File "/srv/app/.venv/lib/python3.11/site-packages/laneway/engine/run.py", line 88, in call
    return await handler(context, **arguments)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/srv/app/tasks/ingest.py", line 41, in ingest
    page = await fetch(url)
           ^^^^^^^^^^^^^^^^
  File "/srv/app/tasks/web.py", line 17, in fetch
    response.raise_for_status()
  File "/srv/app/.venv/lib/python3.11/site-packages/httpx/_models.py", line 829, in raise_for_status
    raise HTTPStatusError(message, request=request, response=self)
httpx.HTTPStatusError: Server error '503 Service Unavailable' for url 'https://example.org/page/6'
For more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/503

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/app/tasks/ingest.py", line 44, in ingest
    raise PageMissing(number) from error
tasks.errors.PageMissing: page 6 of 10`;

export const logLines = [
  ["09:41:02.118", "debug", "cache miss for page 6"],
  ["09:41:02.120", "info", "GET https://example.org/page/6 (attempt 1)."],
  ["09:41:04.871", "warning", "slow response: 2.7 s"],
  [
    "09:41:05.002",
    "error",
    "503 Service Unavailable\n  retry-after: 30\n  body: upstream timed out",
  ],
  ["09:41:05.010", "info", `a long line ${"that goes on ".repeat(20)}`],
].map(([time = "", level = "", message = ""], id) => ({ id, time, level, message }));
