import { useQuery } from "@tanstack/react-query";
import { request } from "../../api";
import { LinkText } from "../../components";
import { shortId } from "../../format";
import { jobPath } from "../../shell/url";
import styles from "./Failures.module.css";

/** The newest job of a kind with the first line of its error. */
export function Example({ id }: { id: string }) {
  // Not by `useApi`: events would read every example again, and an ended job stays as it is.
  const job = useQuery({
    queryKey: ["failed job", id],
    queryFn: ({ signal }) =>
      request("get", "/jobs/{job_id}", {
        params: { path: { job_id: id } },
        headers: { "Laneway-Large-Values": "omit" },
        signal,
      }),
    retry: false,
  });
  const [head = ""] = (job.data?.error?.message ?? "").split("\n", 1);
  return (
    <span className={styles.example}>
      <span className={styles.head} title={head}>
        {head}
      </span>
      <LinkText quiet href={jobPath(id)} className={styles.job ?? ""}>
        {shortId(id)}
      </LinkText>
    </span>
  );
}
