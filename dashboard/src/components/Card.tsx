import { type ReactNode, useId } from "react";
import styles from "./Card.module.css";
import { cx } from "./cx";

export interface CardProps {
  title?: ReactNode;
  /** A short line under the title. */
  subtitle?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** Without inner space, for a table or list that reaches the edges. */
  flush?: boolean;
  className?: string | undefined;
}

export function Card({ title, subtitle, actions, children, flush, className }: CardProps) {
  const id = useId();
  return (
    <section className={cx(styles.card, className)} {...(title ? { "aria-labelledby": id } : {})}>
      {(title || actions) && (
        <header className={styles.header}>
          <div className={styles.names}>
            {title && (
              <h2 id={id} className={styles.title}>
                {title}
              </h2>
            )}
            {subtitle && <p className={styles.subtitle}>{subtitle}</p>}
          </div>
          {actions && <div className={styles.actions}>{actions}</div>}
        </header>
      )}
      <div className={cx(!flush && styles.body)}>{children}</div>
    </section>
  );
}
