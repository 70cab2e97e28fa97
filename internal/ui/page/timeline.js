// The timeline of one lock: a lane for each owner, a bar for each grant.

import { svg } from "./dom.js";
import { age, fullTime, ownerWord, shortOwner, shortToken, time } from "./format.js";

export const spans = [
  { id: "1m", name: "1 min", ms: 60_000 },
  { id: "5m", name: "5 min", ms: 300_000 },
  { id: "1h", name: "1 h", ms: 3_600_000 },
  { id: "", name: "all", ms: 0 },
];

const most = 12; // lanes; the table shows all owners
const lane = 34;
const bar = 20;
const top = 8;
const axis = 26;
const came = { takeover: "took over", handover: "was handed the lock" };
const ends = { takeover: "taken over", handover: "handed over", release: "released", gone: "unseen", break: "broken", freed: "freed when dead", deletion: "deleted", damage: "damaged" };

/** heldFor returns how long a grant lasted: for a dead holder, until its lease ended. */
export const heldFor = (s, at) => (s.died || s.to || at) - s.from;

/** ended describes how a grant ended. */
export const ended = (kind) => ends[kind] ?? kind;

/** windowOf returns the time range to draw, with its grants and owners. */
export function windowOf(lock, spanMs, started, at) {
  const first = lock.spans.length ? lock.spans[0].from : at - 60_000;
  const from = spanMs ? at - spanMs : Math.max(Math.min(first, at - 30_000), started);
  const visible = lock.spans.filter((s) => (s.to || at) >= from);
  const owners = [];
  for (const s of [...visible].reverse()) if (!owners.includes(s.owner)) owners.push(s.owner);
  const hidden = Math.max(owners.length - most, 0);
  return { from, to: at, owners: owners.slice(0, most).reverse(), hidden, visible };
}

/** draw returns the drawing, which is width pixels wide. */
export function draw(lock, w, width) {
  const names = width > 640 ? 190 : 0;
  const room = width - names - 12;
  const rowOf = names ? lane : lane + 16;
  const height = top + w.owners.length * rowOf + axis;
  const x = (t) => names + ((Math.min(Math.max(t, w.from), w.to) - w.from) / (w.to - w.from)) * room;
  const y = (owner) => top + w.owners.indexOf(owner) * rowOf + (names ? 0 : 16);
  const out = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-labelledby": "timeline-title" },
    svg("title", { id: "timeline-title" }, `Timeline of ${lock.key}: ${w.visible.length} grants to ${w.owners.length + w.hidden} owners. The table below says the same.`),
    svg("defs", {}, svg("pattern", { id: "dead", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("rect", { width: 6, height: 6, class: "dead-ground" }), svg("rect", { width: 2, height: 6, class: "dead-line" }))),
    ticks(w, x, top, height - axis));
  w.owners.forEach((owner, i) => {
    const at = top + i * rowOf;
    out.append(svg("text", { x: names ? 0 : names, y: names ? at + bar / 2 + 4 : at + 11, class: "owner" }, svg("title", {}, owner || "unknown owner"), clip(shortOwner(owner) || "somebody", names ? 25 : 44)));
    out.append(svg("line", { x1: names, x2: width - 12, y1: y(owner) + bar / 2, y2: y(owner) + bar / 2, class: "lane" }));
  });
  const byGrant = new Map(lock.spans.map((s) => [s.grant, s]));
  for (const s of w.visible) {
    if (!w.owners.includes(s.owner)) continue;
    const before = byGrant.get(s.before);
    if (before && s.from >= w.from) out.append(arrow(before, s, x, y, w));
  }
  for (const s of w.visible) if (w.owners.includes(s.owner)) out.append(grant(s, x, y(s.owner), w));
  return out;
}

/** grant draws one grant, its renewals and its end. The time after the holder's death is hatched. */
function grant(s, x, y, w) {
  const end = s.to || w.to;
  const x1 = x(s.from);
  const x2 = Math.max(x(end), x1 + 3);
  const died = s.died ? x(s.died) : x2;
  const g = svg("g", { class: `grant${s.to ? "" : " lasts"}`, "data-token": s.token ?? "" },
    svg("title", {}, tell(s, w.to)),
    svg("rect", { x: x1, y, width: Math.max(died - x1, 0), height: bar, rx: 3, class: "lived" }));
  if (s.died) g.append(svg("rect", { x: died, y, width: Math.max(x2 - died, 2), height: bar, rx: 3, class: "died", fill: "url(#dead)" }));
  let last = -9;
  for (const b of s.beats ?? []) {
    const at = x(b);
    if (b < w.from || at - last < 4) continue;
    g.append(svg("line", { x1: at, x2: at, y1: y + bar - 5, y2: y + bar, class: "beat" }));
    last = at;
  }
  const room = x2 - x1;
  const token = s.token ? String(s.token) : "no token";
  const label = room > token.length * 7.4 + 8 ? token : s.token && room > 52 ? shortToken(s.token) : "";
  if (label) g.append(svg("text", { x: x1 + 5, y: y + 14, class: "token" }, label));
  if (s.ended === "break") {
    g.append(svg("path", { d: `M${x2 - 5} ${y + 3}l10 14m0 -14l-10 14`, class: "broken" }));
  }
  return g;
}

/** arrow draws an arrow from the previous owner to the next. */
function arrow(before, s, x, y, w) {
  const at = x(s.from);
  const cross = w.owners.includes(before.owner) && before.owner !== s.owner;
  if (!cross) return svg("g", {});
  const down = y(s.owner) > y(before.owner);
  const y1 = y(before.owner) + (down ? bar : 0);
  const y2 = y(s.owner) + (down ? 0 : bar);
  const tip = down ? -6 : 6;
  return svg("path", { d: `M${at} ${y1}V${y2}m-4 ${tip}l4 ${-tip}l4 ${tip}`, class: `arrow ${s.began}` },
    svg("title", {}, `${ownerWord(s.owner)} ${came[s.began]}, after ${ownerWord(before.owner)}`));
}

/** tell describes a grant in words. */
function tell(s, at) {
  const end = s.to ? `${time(s.to)}, ${ended(s.ended)}` : "now";
  const died = s.died ? ` Its lease ran out at ${fullTime(s.died)}.` : "";
  return `${ownerWord(s.owner)}${s.token ? `, token ${s.token}` : ""}: ${time(s.from)} to ${end} (held for ${age(heldFor(s, at))}), ${s.n} renewals.${died}`;
}

const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map((s) => s * 1000);

function ticks(w, x, y1, y2) {
  const width = x(w.to) - x(w.from);
  const step = steps.find((s) => ((w.to - w.from) / s) * 90 <= width) ?? 86_400_000;
  const g = svg("g", { class: "axis", "aria-hidden": "true" });
  for (let t = Math.ceil(w.from / step) * step; t < w.to; t += step) {
    g.append(svg("line", { x1: x(t), x2: x(t), y1, y2: y2 + 4 }));
    if (x(w.to) - x(t) > 40 && x(t) - x(w.from) > 20) g.append(svg("text", { x: x(t), y: y2 + 18, "text-anchor": "middle" }, time(t, w.to)));
  }
  return g;
}

const clip = (s, n) => (s.length > n ? `${s.slice(0, 8)}…${s.slice(9 - n)}` : s);
