/** The address of the API: what stands before `ui/`, because the bundle lives in `ui/assets/`. */
export const ROOT: string = import.meta.env.DEV
  ? `${location.origin}/`
  : import.meta.url.replace(/ui\/assets\/[^/]*$/, "");

/** The path of the dashboard, without a slash at the end. */
export const UI_PATH: string = `${new URL(ROOT).pathname}ui`;
