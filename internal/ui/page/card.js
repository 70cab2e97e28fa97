// What is said of one holder: on its card, and in the dialog that breaks its grant.

import { h } from "./dom.js";
import { asText, bytes, fullTime, shortOwner, time } from "./format.js";
import { layoutOf } from "./list.js";
import { now, state } from "./state.js";
import { toLock } from "./view.js";

/** who names a holder x. */
export const who = (x) => h("p", { class: "who", title: x.record.owner }, h("strong", {}, shortOwner(x.record.owner) || "somebody"),
  x.dead ? h("span", { class: "pill dead" }, "dead") : null);

/** facts lists what is known of a holder x of row, as the leader of a term if term is true. */
export const facts = (x, row, term) => h("dl", {},
  item(term ? "Term" : "Token", String(x.record.token ?? "none: another library granted it")),
  term ? item("Value", asText(bytes(x.record.data)) || "none") : null,
  item("Held since", x.record.grantedAt ? `${fullTime(Date.parse(x.record.grantedAt))}, by its clock` : x.seen ? `${fullTime(x.seen)}, when it was first seen` : "not seen yet"),
  h("div", {}, h("dt", {}, "Last renewal"), h("dd", { class: "renewed" }, renewed(x, row))),
  inSession(x, row) ? item("Session", sessionLink(x.session)) : null,
  item("Layout", row ? layoutOf(row) : ""));

/** renewed says when a holder x of row was seen to renew. */
export function renewed(x, row) {
  if (inSession(x, row)) return "by its session";
  return x.since ? `${time(x.since, now())}, ${x.n ?? 0} seen` : "not seen yet";
}

const inSession = (x, row) => Boolean(x.session) && row?.kind === "lock";

const item = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

function sessionLink(id) {
  const row = state.sessions.get(id);
  return row ? h("a", { href: toLock(row) }, id) : `${id} (its row is missing)`;
}
