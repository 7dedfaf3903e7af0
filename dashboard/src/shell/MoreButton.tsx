import { Button } from "../components";
import styles from "./Shell.module.css";

type Pages = {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => unknown;
};

/** Loads the next page of a list; nothing at its end. */
export function MoreButton({ of: pages }: { of: Pages }) {
  if (!pages.hasNextPage) return null;
  return (
    <div className={styles.more}>
      <Button isPending={pages.isFetchingNextPage} onPress={() => void pages.fetchNextPage()}>
        Load more
      </Button>
    </div>
  );
}
