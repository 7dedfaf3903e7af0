import { Icon, iconNames, Kbd, LinkText, ShortcutHelp } from "../../components";
import styles from "./Gallery.module.css";
import { Sample, Section } from "./Section";

const states = [
  "queued",
  "analysing",
  "awaiting-approval",
  "waiting",
  "running",
  "completed",
  "failed",
  "cancelled",
  "warning",
  "info",
];
const surfaces = ["page", "", "raised", "sunken", "hover", "active", "selected"];

export function FoundationSection() {
  return (
    <Section title="Foundation">
      <Sample name="Surfaces">
        <div className={styles.swatches}>
          {surfaces.map((name) => {
            const token = name ? `--surface-${name}` : "--surface";
            return (
              <div key={token} className={styles.swatch} style={{ background: `var(${token})` }}>
                {token}
              </div>
            );
          })}
        </div>
      </Sample>
      <Sample name="State colours">
        <div className={styles.swatches}>
          {states.map((name) => (
            <div
              key={name}
              className={styles.swatch}
              style={{ background: `var(--${name}-bg)`, color: `var(--${name}-fg)` }}
            >
              {name}
            </div>
          ))}
        </div>
      </Sample>
      <Sample name="Text">
        <p>
          Body text with a <LinkText href="/jobs">link</LinkText>, an{" "}
          <LinkText href="https://www.postgresql.org/" external>
            external link
          </LinkText>
          , <code>code</code>, <span className="muted">muted words</span> and numbers 0123456789.
        </p>
      </Sample>
      <Sample name="Icons">
        {iconNames.map((name) => (
          <span key={name} className={styles.icon}>
            <Icon name={name} />
            {name}
          </span>
        ))}
      </Sample>
      <Sample name="Keys">
        <Kbd keys="/" />
        <Kbd keys="g o" />
        <Kbd keys="Esc" />
        <div className={styles.wide}>
          <ShortcutHelp
            groups={[
              {
                title: "Go to",
                shortcuts: [
                  { keys: ["g o"], label: "Overview" },
                  { keys: ["g j"], label: "Jobs" },
                ],
              },
              {
                title: "Lists",
                shortcuts: [
                  { keys: ["j", "k"], label: "Next, previous" },
                  { keys: ["x"], label: "Select" },
                ],
              },
            ]}
          />
        </div>
      </Sample>
    </Section>
  );
}
