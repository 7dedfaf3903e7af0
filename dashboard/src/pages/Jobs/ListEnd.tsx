import { useEffect, useRef } from "react";
import { Button, Notice } from "../../components";
import { Time } from "../../time";
import styles from "./Jobs.module.css";
import type { JobList } from "./useJobList";

// Beyond this many rows, a person decides whether to load more.
const AUTOMATIC_ROWS = 400;

/** The end of the list: loads more on the way there, or says how far the search went. */
export function ListEnd({ list }: { list: JobList }) {
  const { pages, lookedBackTo, jobs } = list;
  const end = useRef<HTMLDivElement>(null);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = pages;
  const isAutomatic = hasNextPage && lookedBackTo === null && jobs.length < AUTOMATIC_ROWS;
  const canLoad = isAutomatic && !isFetchingNextPage && !pages.isError;
  useEffect(() => {
    if (!canLoad || end.current === null) return;
    const observer = new IntersectionObserver(
      ([entry]) => entry?.isIntersecting && void fetchNextPage(),
      { rootMargin: "400px" },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [canLoad, fetchNextPage]);
  if (!hasNextPage) {
    return jobs.length > 10 ? <p className={styles.end}>These are all.</p> : null;
  }
  const button = (
    <Button isPending={isFetchingNextPage} onPress={() => void fetchNextPage()}>
      {lookedBackTo === null ? "Load more" : "Continue the search"}
    </Button>
  );
  return (
    <div ref={end} className={styles.end}>
      {lookedBackTo === null ? (
        button
      ) : (
        <Notice kind="info" action={button}>
          Searched back to <Time at={lookedBackTo} full />. Older jobs may match too.
        </Notice>
      )}
    </div>
  );
}
