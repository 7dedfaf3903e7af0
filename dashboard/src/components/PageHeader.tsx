import type { ReactNode } from "react";
import { shortId } from "../format";
import styles from "./PageHeader.module.css";

export interface PageHeaderProps {
  title: ReactNode;
  subtitle?: ReactNode;
  /** Badges beside the title. */
  meta?: ReactNode;
  /** A link back to the list, above the title. */
  breadcrumb?: ReactNode;
  actions?: ReactNode;
}

export function PageHeader({ title, subtitle, meta, breadcrumb, actions }: PageHeaderProps) {
  return (
    <header className={styles.header}>
      <div className={styles.names}>
        {breadcrumb && <div className={styles.breadcrumb}>{breadcrumb}</div>}
        <div className={styles.line}>
          <h1 className={styles.title}>{title}</h1>
          {meta && <div className={styles.meta}>{meta}</div>}
        </div>
        {subtitle && <p className={styles.subtitle}>{subtitle}</p>}
      </div>
      {actions && (
        <div className={styles.actions} data-print="hide">
          {actions}
        </div>
      )}
    </header>
  );
}

/** The title of a page about one thing among many: its name first, then the end of its id. */
export function TitleWithId({ name, id }: { name?: string; id: string }) {
  return (
    <>
      {name !== undefined && `${name} `}
      <span className={styles.id}>{shortId(id)}</span>
    </>
  );
}
