// Filters and sorts the rows of the list.

import { beat, heldFor, standing } from "./state.js";

/** states lists the states of a lock, problems first. */
export const states = ["damaged", "dead", "expiring", "held", "released"];

export const columns = [
  { id: "key", name: "Key" },
  { id: "state", name: "State" },
  { id: "owner", name: "Owner" },
  { id: "token", name: "Token" },
  { id: "age", name: "Held for" },
  { id: "left", name: "Lease left" },
  { id: "layout", name: "Layout" },
];

/** select returns the sorted rows of a view, and the number of rows in each state. */
export function select(rows, v) {
  const q = v.q.toLowerCase();
  const owner = v.owner.toLowerCase();
  const wanted = new Set(v.state.split(",").filter(Boolean));
  const counts = Object.fromEntries(states.map((s) => [s, 0]));
  const found = [];
  for (const r of rows) {
    if (v.prefix && !r.key.startsWith(v.prefix)) continue;
    if (owner && !(r.owner ?? "").toLowerCase().includes(owner)) continue;
    if (v.kind && r.kind !== v.kind) continue;
    if (q && !matches(r, q)) continue;
    const s = standing(r);
    counts[s]++;
    if (wanted.size === 0 || wanted.has(s)) found.push(r);
  }
  const down = v.sort.startsWith("-");
  const value = values[down ? v.sort.slice(1) : v.sort] ?? urgent;
  const sorted = found.map((r) => [value(r), r]);
  sorted.sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x.key < y.key ? -1 : x.key > y.key ? 1 : x.i - y.i));
  if (down) sorted.reverse();
  return { rows: sorted.map(([, r]) => r), counts };
}

function matches(r, q) {
  return r.key.toLowerCase().includes(q) || (r.sort ?? "").toLowerCase().includes(q) ||
    (r.owner ?? "").toLowerCase().includes(q) || String(r.token ?? "").includes(q);
}

const never = Number.MAX_SAFE_INTEGER;

/** urgent is the default sort order: damaged and dead rows first. */
const urgent = (r) => (["damaged", "dead"].includes(standing(r)) ? "0" : "1") + values.key(r);

const values = {
  key: (r) => r.key + "\u0000" + (r.sort ?? ""),
  state: (r) => states.indexOf(standing(r)),
  owner: (r) => r.owner ?? "",
  token: (r) => r.token ?? 0,
  age: (r) => -(heldFor(r) ?? -never),
  left: (r) => (r.state === "released" ? never : beat(r).until || never),
  layout: (r) => Number(r.other ?? false),
};
