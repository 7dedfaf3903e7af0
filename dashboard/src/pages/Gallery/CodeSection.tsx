import { CodeBlock, JsonDiff, JsonView, LogView, Traceback } from "../../components";
import { earlier, later, logLines, payload, traceback } from "./data";
import styles from "./Gallery.module.css";
import { Sample, Section } from "./Section";

const curl = `curl -X POST https://laneway.example.org/jobs/8f3a/retry \\
  -H "Authorization: Bearer $LANEWAY_TOKEN"`;

export function CodeSection() {
  return (
    <Section title="Data and code">
      <Sample name="JsonView">
        <div className={styles.wide}>
          <JsonView label="Payload" value={payload} />
        </div>
      </Sample>
      <Sample name="JsonDiff">
        <div className={styles.wide}>
          <JsonDiff before={earlier} after={later} />
        </div>
      </Sample>
      <Sample name="CodeBlock">
        <div className={styles.wide}>
          <CodeBlock label="curl command" title="Retry with curl" text={curl} />
        </div>
      </Sample>
      <Sample name="LogView">
        <div className={styles.wide}>
          <LogView label="Log of attempt 1" lines={logLines} />
        </div>
      </Sample>
      <Sample name="Traceback">
        <div className={styles.wide}>
          <Traceback text={traceback} />
        </div>
      </Sample>
    </Section>
  );
}
