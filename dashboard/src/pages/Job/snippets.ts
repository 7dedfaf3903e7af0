import { writeJson } from "../../api/json";
import { inOrder } from "../../components/jsonValue";
import { pythonValue } from "./python";

export type SnippetJob = {
  job_type: string;
  payload: unknown;
  priority: number;
  tags: string[];
  workspace: string;
  max_retries: number;
  concurrency_key: string | null;
};

export type Snippet = { id: "curl" | "cli" | "python"; name: string; text: string };

/** The same job as a request, a command and a program. The token stays in `$LANEWAY_TOKEN`. */
export function submitSnippets(root: string, job: SnippetJob): Snippet[] {
  const server = root.replace(/\/+$/, "");
  return [
    { id: "curl", name: "curl", text: curl(server, job) },
    { id: "cli", name: "CLI", text: command(server, job) },
    { id: "python", name: "Python", text: python(server, job) },
  ];
}

/** Text as one word of a POSIX shell. */
export function shellQuote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function curl(server: string, job: SnippetJob): string {
  const body = {
    job_type: job.job_type,
    payload: job.payload,
    priority: job.priority,
    max_retries: job.max_retries,
    ...(job.workspace !== "default" && { workspace: job.workspace }),
    ...(job.tags.length > 0 && { tags: job.tags }),
    ...(job.concurrency_key !== null && { concurrency_key: job.concurrency_key }),
  };
  return [
    `curl --fail-with-body ${shellQuote(`${server}/jobs`)}`,
    `--header "Authorization: Bearer $LANEWAY_TOKEN"`,
    "--header 'Content-Type: application/json'",
    // A value that begins with @ would name a file; --data-raw sends it as it is.
    `--data-raw ${shellQuote(inOrder(writeJson(body)))}`,
  ].join(" \\\n  ");
}

function command(server: string, job: SnippetJob): string {
  const options = [
    `--priority=${job.priority}`,
    `--max-retries=${job.max_retries}`,
    ...(job.workspace !== "default" ? [`--workspace=${job.workspace}`] : []),
    ...job.tags.map((tag) => `--tag=${tag}`),
    ...(job.concurrency_key !== null ? [`--concurrency-key=${job.concurrency_key}`] : []),
  ];
  return [
    `laneway --server ${shellQuote(server)} jobs submit`,
    ...options.map(shellQuote),
    // What follows is no option, whatever it begins with.
    `-- ${shellQuote(job.job_type)} ${shellQuote(inOrder(writeJson(job.payload)))}`,
  ].join(" \\\n  ");
}

function python(server: string, job: SnippetJob): string {
  const options = [
    `priority=${job.priority}`,
    `max_retries=${job.max_retries}`,
    ...(job.workspace !== "default" ? [`workspace=${pythonValue(job.workspace)}`] : []),
    ...(job.tags.length > 0 ? [`tags=${pythonValue(job.tags)}`] : []),
    ...(job.concurrency_key !== null
      ? [`concurrency_key=${pythonValue(job.concurrency_key)}`]
      : []),
  ];
  return `import os

from laneway.http import Client

client = Client(${pythonValue(server)}, os.environ["LANEWAY_TOKEN"])
job = client.submit(
    ${pythonValue(job.job_type)},
    ${pythonValue(job.payload, "    ")},
${options.map((option) => `    ${option},\n`).join("")})
print(job.id)
`;
}
