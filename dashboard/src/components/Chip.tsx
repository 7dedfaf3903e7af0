import { Button as AriaButton } from "react-aria-components/Button";
import styles from "./Chip.module.css";
import { cx } from "./cx";
import { Icon } from "./Icon";

export interface ChipProps {
  /** The name before the value, as in `lane:interactive`. */
  name?: string | undefined;
  children: string;
  /** Shows a button that removes the chip. */
  onRemove?: (() => void) | undefined;
  className?: string | undefined;
}

export function Chip({ name, children, onRemove, className }: ChipProps) {
  return (
    <span className={cx(styles.chip, onRemove && styles.removable, className)}>
      <span className={styles.text}>
        {name && <span className={styles.name}>{name}:</span>}
        {children}
      </span>
      {onRemove && (
        <AriaButton
          className={styles.remove ?? ""}
          onPress={onRemove}
          aria-label={`Remove ${name ? `${name}:` : ""}${children}`}
        >
          <Icon name="cross" size={10} />
        </AriaButton>
      )}
    </span>
  );
}
