import { useLocation } from "wouter";
import { EmptyState, LinkText, PageHeader } from "../components";
import { SCREENS } from "../pages";
import { pathOf, screenAt, useScreens } from "./screens";

/** In the place of a page that does not exist, or that this person may not see. */
export function NoSuchPage() {
  const [path] = useLocation();
  const screen = screenAt(path, SCREENS);
  const seen = screenAt(path, useScreens());
  const back = <LinkText href="/settings">Your permissions</LinkText>;
  return (
    <>
      <PageHeader title={(seen === undefined && screen?.name) || "No such page"} />
      {screen === undefined || seen !== undefined ? (
        <EmptyState
          icon="search"
          title="Nothing is shown at this address"
          action={seen && <LinkText href={pathOf(seen)}>{seen.name}</LinkText>}
        />
      ) : (
        <EmptyState icon="lock" title="You may not see this page" action={back}>
          <p>
            It needs the permission <code>{screen.needs.join(" or ")}</code>.
          </p>
        </EmptyState>
      )}
    </>
  );
}
