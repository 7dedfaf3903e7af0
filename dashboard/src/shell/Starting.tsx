import { SkeletonLines } from "../components";
import { Mark } from "./Mark";
import styles from "./Shell.module.css";

/** The frame of the page until the server says who uses it. */
export function Starting() {
  return (
    <>
      <header className={styles.header}>
        <div className={styles.bar}>
          <span className={styles.brand}>
            <Mark />
            Laneway
          </span>
        </div>
        <div className={styles.navigation} />
      </header>
      <main className={styles.main}>
        <SkeletonLines count={8} />
      </main>
    </>
  );
}
