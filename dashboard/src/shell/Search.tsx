import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { request } from "../api";
import { Icon } from "../components";
import styles from "./Shell.module.css";
import { href, jobPath } from "./url";

// The start of an id, or its short form.
const ID = /^[0-9a-f-]{4,36}((…|\.{2,3})[0-9a-f]{1,12})?$/i;
export const SEARCH_ID = "search";

/** Opens a job by its id, a part of it that lists show, or searches all jobs. */
export function Search() {
  const [text, setText] = useState("");
  const [, go] = useLocation();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const wanted = text.trim();
    if (wanted === "") return;
    const id = ID.test(wanted) ? await uniqueId(wanted) : null;
    go(id === null ? href("/jobs", { q: wanted }) : jobPath(id));
    setText("");
  };
  return (
    <form className={styles.search} onSubmit={submit}>
      <Icon name="search" />
      <input
        id={SEARCH_ID}
        aria-label="Find a job by id or text"
        aria-keyshortcuts="/"
        placeholder="Job id or text"
        value={text}
        onChange={(event) => setText(event.target.value)}
        type="search"
        spellCheck={false}
        autoComplete="off"
      />
    </form>
  );
}

async function uniqueId(prefix: string): Promise<string | null> {
  const found = await request("get", "/jobs/ids", {
    params: { query: { prefix: [prefix] } },
  }).catch(() => null);
  const ids = found?.items[0]?.ids ?? [];
  return ids.length === 1 ? (ids[0] ?? null) : null;
}
