/**
 * Keep react-aria from injecting a style tag, which the content security policy would refuse
 * with an error in the console. react-aria skips it when an element with this id exists;
 * styles/base.css holds the same rule.
 */
const STYLE_ID = "react-aria-pressable-style";

if (typeof document !== "undefined" && !document.getElementById(STYLE_ID)) {
  const marker = document.createElement("meta");
  marker.id = STYLE_ID;
  document.head.append(marker);
}
