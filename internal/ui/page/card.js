// One holder, as its card and the break dialog show it.

import { h } from "./dom.js";
import { asText, bytes, fullTime, shortOwner, time } from "./format.js";
import { layoutOf } from "./list.js";
import { now, state } from "./state.js";
import { toLock } from "./view.js";

/** who shows the name of the holder x. */
export const who = (x) => h("p", { class: "who", title: x.record.owner }, h("strong", {}, shortOwner(x.record.owner) || "somebody"),
  x.dead ? h("span", { class: "pill dead" }, "dead") : null);

/** facts lists facts about the holder x of row. If term is true, x is shown as a leader. */
export const facts = (x, row, term) => h("dl", {},
  item(term ? "Term" : "Token", String(x.record.token ?? "none: another library granted it")),
  term ? item("Value", asText(bytes(x.record.data)) || "none") : null,
  item("Held since", x.record.grantedAt ? `${fullTime(Date.parse(x.record.grantedAt))}, by its clock` : x.seen ? `${fullTime(x.seen)}, when it was first seen` : "not seen yet"),
  h("div", {}, h("dt", {}, "Last renewal"), h("dd", { class: "renewed" }, renewed(x, row))),
  inSession(x, row) ? item("Session", sessionLink(x.session)) : null,
  item("Layout", row ? layoutOf(row) : ""));

/** renewed returns text about the last renewal of the holder x of row. */
export function renewed(x, row) {
  if (inSession(x, row)) return "by its session";
  return x.since ? `${time(x.since, now())}, ${x.n ?? 0} seen` : "not seen yet";
}

const inSession = (x, row) => Boolean(x.session) && row?.kind === "lock";

const item = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

function sessionLink(id) {
  const row = state.sessions.get(id);
  return row ? h("a", { href: toLock(row) }, id) : `${id} (no readable row)`;
}
