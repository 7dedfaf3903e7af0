import { shortId } from "../format";
import { type JobFilter, statusWord } from "./jobFilter";

/** The filter as words: `failed jobs of type ingestion in lane interactive with tag nightly`. */
export function filterWords(filter: JobFilter, noun = "jobs"): string {
  const age = (text: string) => (/^[\d.]+\s*[a-z]+/i.test(text) ? text : null);
  const parts: string[] = [];
  parts.push(filter.status ? `${statusWord(filter.status)} ${noun}` : noun);
  if (filter.job_type) parts.push(`of type ${filter.job_type}`);
  if (filter.lane) parts.push(`in lane ${filter.lane}`);
  if (filter.error_type) parts.push(`with the error ${filter.error_type}`);
  if (filter.tag) parts.push(`with tag ${filter.tag}`);
  if (filter.flow) parts.push(`of flow ${shortId(filter.flow)}`);
  if (filter.worker) parts.push(`on worker ${filter.worker}`);
  if (filter.workspace) parts.push(`in workspace ${filter.workspace}`);
  if (filter.since) {
    const length = age(filter.since);
    parts.push(length ? `submitted in the last ${length}` : `submitted since ${filter.since}`);
  }
  if (filter.until) parts.push(`submitted before ${filter.until}`);
  if (filter.older_than) parts.push(`older than ${filter.older_than}`);
  if (filter.ended_since) {
    const length = age(filter.ended_since);
    parts.push(length ? `ended in the last ${length}` : `ended since ${filter.ended_since}`);
  }
  if (filter.q) parts.push(`containing “${filter.q}”`);
  return parts.join(" ");
}
