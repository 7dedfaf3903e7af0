import type { Tone } from "./status";
import styles from "./tones.module.css";

/** The class that sets `--tone-fg`, `--tone-bg` and `--tone-mark`. */
export function toneClass(tone: Tone): string {
  return styles[tone] ?? "";
}
