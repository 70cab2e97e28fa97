// The view of one lock: record, holder, queue and history.

import { breakDialog } from "./breaking.js";
import { facts, renewed, who } from "./card.js";
import { by, h, text, visible } from "./dom.js";
import { age, asHex, asJSON, asText, bytes, fullTime, ownerWord, period, shortOwner, time, word } from "./format.js";
import { badgeOf, drawBar, focusList, notKnown } from "./list.js";
import { asOf, now, on, said, show, state, tally, unknownSince } from "./state.js";
import { draw, ended, heldFor, spans, windowOf } from "./timeline.js";
import { go, href, lockOf, onView, toLock, view } from "./view.js";

const place = by("lock");
let parts = null;
let which = null;
let drawnAt = 0;
let dataAs = "text";

/** startLock prepares the view. It is called once. */
export function startLock() {
  on("lock", update);
  on("list", () => which && update());
  on("hello", () => which && show(which));
  onView(follow);
  follow();
  new ResizeObserver(() => timeline()).observe(place);
  requestAnimationFrame(frame);
}

/** follow shows the lock in the URL. */
function follow() {
  const v = view();
  const next = lockOf(v);
  const same = which && next && which.key === next.key && which.sort === next.sort;
  place.hidden = !next;
  if (same) {
    update();
    return;
  }
  const before = which;
  which = next;
  show(next);
  if (!next) {
    document.title = "leasehold";
    if (before) focusList(before);
    return;
  }
  document.title = `${visible(next.key)} · leasehold`;
  build();
  parts.heading.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** build creates the elements of the view, and update fills them. */
function build() {
  parts = {
    heading: h("h2", { tabindex: "-1", id: "lock-title" }, which.sort ? `${which.key} (${which.sort})` : which.key),
    badge: h("span", { class: "badge" }),
    state: h("span", { class: "pill" }),
    note: h("p", { class: "note", role: "status" }),
    holder: h("div", { class: "holders" }),
    waits: h("p", { class: "quiet" }),
    history: h("section", { "aria-labelledby": "h-timeline" }),
    contents: h("section", { "aria-labelledby": "h-data" }),
    group: h("div", {}),
    ranges: h("div", { class: "ranges", role: "group", "aria-label": "Time drawn" }),
    drawing: h("div", { class: "drawing" }),
    hidden: h("p", { class: "quiet" }),
    known: h("p", { class: "quiet" }),
    grants: h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Grants" }),
    events: h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What happened" }),
    data: h("pre", { id: "data", tabindex: "0", "aria-label": "Data" }),
    kinds: h("div", { class: "ranges", role: "group", "aria-label": "Show the data as" }),
    record: h("pre", { tabindex: "0", "aria-label": "Record" }),
    as: h("input", { type: "checkbox", id: "as", onchange: (e) => go({ as: e.target.checked ? "election" : "" }) }),
    breaks: h("button", { type: "button", class: "danger", hidden: true, onclick: () => breakDialog(which) }, "Break…"),
  };
  for (const s of spans) parts.ranges.append(h("button", { type: "button", "data-span": s.id, onclick: () => go({ span: s.id }) }, s.name));
  for (const k of ["text", "JSON", "hex"]) {
    parts.kinds.append(h("button", { type: "button", "data-as": k, onclick: () => { dataAs = k; data(); } }, k));
  }
  place.replaceChildren(
    h("nav", { "aria-label": "Back" }, h("a", { href: href({ lock: "", key2: "", span: "", as: "" }), class: "back" }, "← All locks")),
    h("div", { class: "title" }, parts.heading, parts.state, parts.badge, parts.breaks),
    parts.note,
    h("section", { "aria-labelledby": "h-holds" }, h("h3", { id: "h-holds" }, "Who holds it"), parts.holder, parts.waits, parts.group),
    fill(parts.history,
      h("div", { class: "title" }, h("h3", { id: "h-timeline" }, "Timeline"), parts.ranges,
        h("label", { class: "check" }, parts.as, "read as an election")),
      parts.known, parts.drawing, parts.hidden,
      h("h4", {}, "Grants"), parts.grants, h("h4", {}, "What happened"), parts.events),
    fill(parts.contents, h("div", { class: "title" }, h("h3", { id: "h-data" }, "Data"), parts.kinds), parts.data),
    h("section", { "aria-labelledby": "h-record", class: "record" }, h("h3", { id: "h-record" }, "Record"),
      h("p", { class: "quiet" }, "As leasehold get --json prints it."), parts.record),
  );
  update();
}

function fill(parent, ...children) {
  parent.replaceChildren(...children);
  return parent;
}

function update() {
  if (!parts || !which) return;
  tally();
  const lock = state.lock ?? { spans: [], events: [], row: [...state.rows.values()].find((r) => r.key === which.key && (r.sort ?? "") === which.sort) };
  const row = lock.row;
  const s = row ? said(row) : "";
  parts.state.className = `pill ${s}`;
  const since = unknownSince();
  parts.unknown = since;
  text(parts.state, s === "unknown" ? notKnown(since) : s || ifRead("no record"));
  parts.contents.hidden = row?.kind === "session";
  const badge = row ? badgeOf(row) : "";
  parts.badge.hidden = !badge;
  text(parts.badge, badge);
  text(parts.note, note(lock, row));
  parts.note.hidden = !parts.note.textContent;
  parts.breaks.hidden = !state.hello?.allowBreak || !lock.holder || row?.kind === "session";
  parts.as.checked = view().as === "election";
  parts.as.closest("label").hidden = Boolean(row && row.kind !== "lock");
  holder(lock, row);
  text(parts.waits, waits(lock, row));
  parts.waits.hidden = !parts.waits.textContent;
  group(row);
  for (const b of parts.ranges.children) b.setAttribute("aria-pressed", String(b.dataset.span === view().span));
  text(parts.known, lock.known ? `Known since ${fullTime(lock.known)}, ${lock.known > state.hello.started ? "and no further back is kept" : "when leasehold ui started"}.` : "");
  tables(lock);
  data();
  const record = recordOf(lock);
  text(parts.record, record ? JSON.stringify(record, null, 2) : (row?.problem ?? ifRead("There is no record.")));
  timeline();
}

function note(lock, row) {
  if (row?.problem) return `This record is damaged: ${row.problem}. Nobody can be granted the key until it is mended or deleted: leasehold get shows it.`;
  if (!state.lock) return "";
  if (!row && lock.events.length === 0) return state.status?.whole ? "There is no record of this key, and none has been seen since this server started." : "Not found yet: the table is still being read.";
  if (!row) return "There is no record of this key any more.";
  return "";
}

/** ifRead returns the words, or says that the server has not sent the lock yet. */
const ifRead = (words) => (state.lock ? words : "not read yet");

/** recordOf returns the record of a held or free key. */
const recordOf = (lock) => lock?.holder?.record ?? lock?.free;

/** holder shows the holder, with a bar for its lease. */
function holder(lock, row) {
  const x = lock.holder;
  if (!x) {
    parts.card = null;
    const free = row?.state === "released" && row.kind === "session" ? "This session has ended: every lock under it is free." : row?.state === "released" || !row ? ifRead("Nobody.") : "";
    parts.holder.replaceChildren(...(free ? [h("p", {}, free)] : []));
    parts.signature = "";
    return;
  }
  const signature = [x.grant, x.dead, x.record.data, state.sessions.has(x.session), state.hello.layout, location.search].join();
  if (signature !== parts.signature) {
    parts.signature = signature;
    const fill = h("i");
    const left = h("span", { class: "words" });
    const card = h("article", { class: `card${x.dead ? " dead" : ""}` }, who(x),
      h("div", { class: "lease" }, h("span", { class: "bar", "aria-hidden": "true" }, fill), left),
      facts(x, row, view().as === "election"));
    parts.card = { fill, left, renewed: card.querySelector(".renewed") };
    parts.holder.replaceChildren(card);
  }
  text(parts.card.renewed, renewed(x, row));
  parts.card.holder = x;
}

function waits(lock, row) {
  if (!row || row.kind === "session") return "";
  const { waiting = [], noQueueUntil, done } = recordOf(lock) ?? {};
  const last = !done ? "" : `Done last: ${done.once ? word(done.once) : `the work of ${period(done.period)}`}, by ${ownerWord(done.by)}, ${fullTime(Date.parse(done.at))}.`;
  const queue = !waiting.length ? "" : `Queue: ${waiting.map((w, i) => `${i + 1}. ${ownerWord(w.owner)}, since ${fullTime(Date.parse(w.since))}`).join("; ")}.`;
  const suspended = !(Date.parse(noQueueUntil) > now()) ? "" : `No queue until ${fullTime(Date.parse(noQueueUntil))}: a waiter that was handed the key had died, so the others poll.`;
  return [last, queue, suspended].filter(Boolean).join(" ");
}

/** group shows the locks of a session, or the slots of a key. */
function group(row) {
  const out = [];
  if (row?.kind === "session") {
    const locks = [...state.rows.values()].filter((r) => r.kind === "lock" && r.session === row.session && r.state !== "released");
    out.push(h("h4", {}, `${locks.length} ${locks.length === 1 ? "lock" : "locks"} under this session`));
    out.push(h("ul", { class: "keys" }, locks.slice(0, 500).map((r) => h("li", {}, h("a", { href: toLock(r) }, r.key)))));
  } else if (row?.sort && state.hello?.layout === "dynamo-dlm") {
    const slots = [...state.rows.values()].filter((r) => r.key === row.key);
    if (slots.length > 1) {
      out.push(h("h4", {}, `${slots.length} slots of this key are taken`));
      out.push(h("ul", { class: "keys" }, slots.map((r) => h("li", {}, h("a", { href: toLock(r) }, `slot ${r.sort}`)))));
    }
  }
  const signature = out.map((e) => e.outerHTML).join();
  if (signature !== parts.groupSignature) parts.group.replaceChildren(...out);
  parts.groupSignature = signature;
}

const happened = {
  seen: (e) => `${holderIn(e)} held it already when this server started.`,
  grant: (e) => `${holderIn(e)} was granted it.`,
  handover: (e) => `${holderIn(e)} had it passed on within the same owner, from token ${e.fromToken ?? "none"}.`,
  takeover: (e) => `${holderIn(e)} took it over from ${ownerWord(e.fromOwner)}${e.fromToken ? ` (token ${e.fromToken})` : ""}, whose lease had run out.`,
  death: (e) => `The lease of ${holderIn(e)} ran out: it is dead or stuck, and has lost the lock.`,
  back: (e) => `${holderIn(e)} renewed after all, though its lease had run out.`,
  release: (e) => `${holderIn(e)} released it.`,
  gone: (e) => `The grant of ${holderIn(e)} ended between two looks at the table: released, or taken over.`,
  freed: (e) => `The grant of ${holderIn(e)}, which was dead, was ended: somebody broke it, or the holder came back and released.`,
  break: (e) => `The grant of ${holderIn(e)} was broken${e.by ? ` by ${ownerWord(e.by)}` : " through this page"}${e.reason ? `: ${word(e.reason)}` : "."}`,
  deletion: (e) => (e.owner ? `The record was deleted: ${holderIn(e)} released it, or somebody deleted it.` : "The record was deleted."),
  damage: (e) => `The record was damaged: ${e.reason}.`,
  repair: () => "The record was mended.",
};

const holderIn = (e) => `${ownerWord(e.owner)}${e.token ? ` (token ${e.token})` : ""}`;

/** sentence describes an event in words. */
export const sentence = (e) => happened[e.kind]?.(e) ?? e.kind;

function tables(lock) {
  const at = asOf();
  const election = view().as === "election";
  const grants = [...lock.spans].reverse();
  const head = election ? ["Term", "Leader", "Value", "From", "To", "Led for", "Renewals", "Began", "Ended"] : ["Token", "Owner", "From", "To", "Held for", "Renewals", "Began", "Ended"];
  const rows = grants.map((s) => [
    s.token ? String(s.token) : "none", cell(shortOwner(s.owner) || "somebody", s.owner), ...(election ? [s.value ?? ""] : []),
    cell(time(s.from, at), fullTime(s.from)), s.to ? cell(time(s.to, at), fullTime(s.to)) : s.died ? "dead" : unknownSince() ? notKnown(at) : "now",
    age(heldFor(s, at)), String(s.n), beganOf(s, lock), s.ended ? ended(s.ended) : s.died ? `lease ran out ${time(s.died, at)}` : "",
  ]);
  replace(parts.grants, table(head, rows, ifRead("No grant has been seen since this server started.")));
  const events = [...lock.events].reverse().map((e) => [cell(time(e.at, at), fullTime(e.at)), e.kind, sentence(e)]);
  replace(parts.events, table(["Time", "What", "In words"], events, ifRead("Nothing has happened since this server started.")));
}

function beganOf(s, lock) {
  const before = lock.spans.find((x) => x.grant === s.before);
  if (s.began === "takeover") return before ? `took over from ${before.token || ownerWord(before.owner)}` : "took over";
  return { seen: "seen held", grant: "granted", handover: "handed over" }[s.began] ?? s.began;
}

const cell = (value, title) => h("span", { title }, value);

function table(head, rows, none) {
  if (rows.length === 0) return h("p", { class: "quiet" }, none);
  return h("table", {}, h("thead", {}, h("tr", {}, head.map((c) => h("th", { scope: "col" }, c)))),
    h("tbody", {}, rows.map((r) => h("tr", {}, r.map((c) => h("td", {}, c))))));
}

/** replace replaces a child only if its text differs, so that a reader keeps its place. */
function replace(parent, child) {
  if (parent.firstChild?.textContent !== child.textContent) parent.replaceChildren(child);
}

function data() {
  const record = recordOf(state.lock);
  const raw = record?.data;
  for (const b of parts.kinds.children) b.setAttribute("aria-pressed", String(b.dataset.as === dataAs));
  parts.kinds.hidden = !raw;
  if (!raw) return text(parts.data, record ? "none" : "");
  const b = bytes(raw);
  const shown = { text: () => asText(b) ?? "This is no text: look at it as hex.", JSON: () => asJSON(b) ?? "This is no JSON.", hex: () => asHex(b) }[dataAs]();
  text(parts.data, shown);
}

/** timeline redraws the timeline, which moves even if no lock changes. */
function timeline() {
  if (!parts || !which || place.hidden) return;
  drawnAt = performance.now();
  const lock = state.lock;
  if (!lock || lock.spans.length === 0) {
    parts.drawing.replaceChildren(h("p", { class: "quiet" }, ifRead("No grant has been seen since this server started.")));
    parts.hidden.hidden = true;
    return;
  }
  const span = spans.find((s) => s.id === view().span)?.ms ?? 0;
  const w = windowOf(lock, span, state.hello.started, asOf());
  parts.drawing.replaceChildren(draw(lock, w, Math.max(parts.drawing.clientWidth, 280)));
  parts.hidden.hidden = w.hidden === 0;
  text(parts.hidden, `${w.hidden} more owners are in the table only.`);
}

function frame() {
  requestAnimationFrame(frame);
  if (!which || place.hidden || !parts) return;
  const at = now();
  const row = state.lock?.row;
  if (parts.card) {
    const { holder: x, fill, left } = parts.card;
    const own = row?.kind === "lock" && x.session ? row : { ...x, kind: "holder", state: x.dead ? "dead" : "held" };
    drawBar(own, fill, left, at);
  }
  if (parts.unknown !== unknownSince()) update();
  if (performance.now() - drawnAt > 1000) timeline();
}
