import type { ReactNode } from "react";
import styles from "./Gallery.module.css";

export function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={styles.section}>
      <h2 className={styles.title}>{title}</h2>
      {children}
    </section>
  );
}

export function Sample({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={styles.sample}>
      <h3 className={styles.name}>{name}</h3>
      <div className={styles.row}>{children}</div>
    </div>
  );
}
