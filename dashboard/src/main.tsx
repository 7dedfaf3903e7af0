import { createRoot } from "react-dom/client";
import { restoreSession } from "./api/sign_in";
import { App } from "./app";
import { applyPreferences } from "./shell/preferences";
import { StartFailure } from "./shell/StartFailure";
import "./styles/index.css";

applyPreferences();
// Their addresses are relative to this page; the next page has another depth.
for (const link of document.querySelectorAll<HTMLLinkElement>("link[href]")) {
  link.setAttribute("href", link.href);
}
const root = createRoot(document.getElementById("root") as HTMLElement);
root.render(<App />);
restoreSession().catch((error: unknown) => root.render(<StartFailure error={error} />));
