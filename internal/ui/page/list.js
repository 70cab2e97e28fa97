// The list of all locks. Only visible rows have elements.

import { by, h, text, visible } from "./dom.js";
import { age, fullTime, left, number, shortOwner, time } from "./format.js";
import { columns, select, states } from "./select.js";
import { beat, heldFor, now, on, said, standing, state, tally, unknownSince } from "./state.js";
import { go, onView, toLock, view } from "./view.js";

const spare = 6; // rows kept above and below the visible ones
const slow = 3000; // number of rows above which the list is sorted less often
const grid = by("grid");
const body = by("rows");
const spacer = h("div", { class: "spacer", role: "presentation" });
body.append(spacer);

let chosen = { rows: [], counts: {} };
let shownRows = new Map(); // row elements by id
let active = 0; // id of the row selected by the keyboard
let dirty = true;
let selectedAt = 0;

/** startList prepares the list. It is called once. */
export function startList() {
  by("sort").append(h("option", { value: "" }, "dead first"));
  for (const c of columns) {
    by("columns").append(h("div", { role: "columnheader", class: `c-${c.id}`, "data-sort": c.id },
      h("button", { type: "button", tabindex: "-1", onclick: () => sortBy(c.id) }, c.name)));
    by("sort").append(h("option", { value: c.id }, c.name));
  }
  for (const s of states) {
    by("states").append(h("button", { type: "button", class: `state ${s}`, "data-state": s, "aria-pressed": "false", onclick: () => toggle(s) },
      s, " ", h("span", { class: "count" }, "0")));
  }
  for (const id of ["q", "prefix", "owner", "kind", "sort"]) {
    by(id).addEventListener("input", () => go({ [id]: by(id).value }));
  }
  const wide = matchMedia("(min-width: 761px)");
  const open = () => { by("more").open = wide.matches || ["prefix", "owner", "kind", "sort"].some((n) => view()[n]); };
  wide.addEventListener("change", open);
  open();
  by("filters").addEventListener("submit", (e) => e.preventDefault());
  grid.addEventListener("scroll", () => paint(), { passive: true });
  document.addEventListener("keydown", keys);
  new ResizeObserver(() => paint()).observe(grid);
  on("list", () => { dirty = true; });
  on("hello", () => { dirty = true; });
  onView(follow);
  follow();
  requestAnimationFrame(frame);
}

/** follow applies the URL's query to the list. */
function follow() {
  const v = view();
  for (const id of ["q", "prefix", "owner", "kind"]) if (by(id).value !== v[id]) by(id).value = v[id];
  by("sort").value = v.sort.replace(/^-/, "");
  const wanted = v.state.split(",");
  for (const b of by("states").children) b.setAttribute("aria-pressed", String(wanted.includes(b.dataset.state)));
  for (const c of by("columns").children) {
    const is = c.dataset.sort === v.sort ? "ascending" : `-${c.dataset.sort}` === v.sort ? "descending" : "none";
    c.setAttribute("aria-sort", is);
  }
  by("list").hidden = Boolean(v.lock);
  dirty = true;
  selectedAt = 0;
}

function sortBy(id) {
  go({ sort: view().sort === id ? `-${id}` : id });
}

function toggle(s) {
  const wanted = new Set(view().state.split(",").filter(Boolean));
  if (!wanted.delete(s)) wanted.add(s);
  go({ state: [...wanted].join(",") });
}

/** frame runs for each frame. It moves the bars, and sorts the list when that is due. */
function frame() {
  requestAnimationFrame(frame);
  if (by("list").hidden || !state.hello) return;
  const since = performance.now() - selectedAt;
  if ((dirty && since > (state.rows.size > slow ? 500 : 0)) || since > 1000) choose();
  moveBars();
}

/** choose sorts and filters the rows again. */
function choose() {
  dirty = false;
  selectedAt = performance.now();
  tally();
  chosen = select(state.rows.values(), view());
  const since = unknownSince();
  for (const b of by("states").children) {
    const n = chosen.counts[b.dataset.state];
    text(b.querySelector(".count"), since ? "" : number(n));
    b.classList.toggle("some", !since && n > 0);
  }
  by("counts").hidden = !since;
  text(by("counts"), since ? `How many: ${notKnown(since)}` : "");
  grid.classList.toggle("mixed", state.mixed);
  grid.setAttribute("aria-rowcount", String(chosen.rows.length + 1));
  const none = by("none");
  none.hidden = chosen.rows.length > 0;
  if (!none.hidden) text(none, nothing());
  paint();
  arrange();
}

/** arrange orders the row elements as on the screen, for screen readers. */
function arrange() {
  const inOrder = chosen.rows.filter((r) => shownRows.has(r.i)).map((r) => shownRows.get(r.i));
  const there = [...body.children].filter((e) => e !== spacer);
  if (inOrder.some((e, i) => e !== there[i])) body.append(...inOrder);
}

function nothing() {
  if (!state.status?.whole) return `Reading the table: ${number(state.status?.read ?? 0)} items so far.`;
  if (state.rows.size > 0) return "No lock fits the search and the filters.";
  return "There are no locks in this table. They appear here as soon as somebody acquires one.";
}

const rowHeight = () => parseFloat(getComputedStyle(grid).getPropertyValue("--row"));

/** paint creates elements for the visible rows and removes the others. */
function paint() {
  const height = rowHeight();
  spacer.style.height = `${chosen.rows.length * height}px`;
  const first = Math.max(Math.floor(grid.scrollTop / height) - spare, 0);
  const last = Math.min(Math.ceil((grid.scrollTop + grid.clientHeight) / height) + spare, chosen.rows.length);
  const keep = new Map();
  const wanted = chosen.rows.slice(first, last);
  for (const row of wanted) {
    if (shownRows.has(row.i)) keep.set(row.i, shownRows.get(row.i));
    shownRows.delete(row.i);
  }
  const free = [...shownRows.values()]; // elements of rows out of sight, for reuse
  shownRows.clear();
  wanted.forEach((row, i) => {
    const element = keep.get(row.i) ?? free.pop() ?? newRow();
    keep.set(row.i, element);
    fill(element, row, first + i);
    element.style.transform = `translateY(${(first + i) * height}px)`;
  });
  for (const element of free) element.remove();
  shownRows = keep;
  const current = keep.has(active) ? `row-${active}` : "";
  if (current) grid.setAttribute("aria-activedescendant", current);
  else grid.removeAttribute("aria-activedescendant");
  moveBars();
}

function newRow() {
  const cells = Object.fromEntries(columns.map((c) => [c.id, h("div", { role: "gridcell", class: `c-${c.id}` })]));
  const link = h("a", { tabindex: "-1" });
  const badge = h("span", { class: "badge" });
  cells.key.append(link, badge);
  const fillBar = h("i");
  const words = h("span", { class: "words" });
  cells.left.append(h("span", { class: "bar", "aria-hidden": "true" }, fillBar), words);
  const element = h("div", { role: "row", class: "row" }, Object.values(cells));
  element.parts = { cells, link, badge, fillBar, words };
  element.addEventListener("click", (e) => {
    if (!e.target.closest("a")) {
      active = element.row.i;
      link.click();
    }
  });
  body.append(element);
  return element;
}

function fill(element, row, index) {
  const { cells, link, badge } = element.parts;
  element.row = row;
  set(element, "id", `row-${row.i}`);
  const s = said(row);
  set(element, "aria-rowindex", String(index + 2));
  set(element, "class", `row ${s}${row.i === active ? " active" : ""}`);
  set(element, "aria-selected", String(row.i === active));
  set(link, "href", toLock(row));
  text(link, row.sort ? `${row.key} (${row.sort})` : row.key);
  const b = badgeOf(row);
  badge.hidden = !b;
  text(badge, b);
  text(cells.state, s === "unknown" ? "not known" : s);
  text(cells.owner, ownerOf(row));
  set(cells.owner, "title", visible(row.owner ?? ""));
  text(cells.token, row.token ? String(row.token) : "");
  const held = heldFor(row);
  text(cells.age, held === null ? "" : age(held));
  set(cells.age, "title", row.granted ? `granted ${fullTime(row.granted)}, by the holder's clock` : "");
  text(cells.layout, layoutOf(row));
}

function set(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** badgeOf returns the text of a row's badge, or "" for a plain lock. */
export function badgeOf(row) {
  if (row.kind === "session" && unknownSince()) return row.kind;
  if (row.kind === "session") {
    const n = state.under.get(row.session) ?? 0;
    return `session of ${n} ${n === 1 ? "lock" : "locks"}`;
  }
  return row.problem ? "damaged" : row.session ? "in a session" : "";
}

function ownerOf(row) {
  if (row.problem) return row.problem;
  return shortOwner(row.owner ?? "");
}

/** layoutOf describes the layout of a record and the library that wrote it. */
export function layoutOf(row) {
  return row.other ? `${state.hello.layout}, by its own library` : state.hello.layout;
}

/** moveBars updates the bar of each visible row. */
function moveBars() {
  const at = now();
  for (const element of shownRows.values()) {
    const { fillBar, words } = element.parts;
    drawBar(element.row, fillBar, words, at);
  }
}

/** notKnown returns text for a state that has been unknown since the given time. */
export const notKnown = (since) => `not known since ${time(since)}`;

/** drawBar shows the rest of a lease, as a bar and in words. */
export function drawBar(row, fillBar, words, at) {
  const b = beat(row);
  const s = standing(row);
  const lives = (s === "held" || s === "expiring") && b.until;
  const since = unknownSince();
  fillBar.parentElement.hidden = !lives || Boolean(since);
  if (s === "dead" && b.state === "released") return text(words, "its session has ended");
  if (s === "dead" && b.until) return text(words, `ended ${age(at - b.until)} ago`);
  if (!lives) return text(words, "");
  if (since) return text(words, notKnown(since));
  const remains = b.until - at;
  fillBar.style.transform = `scaleX(${Math.min(Math.max(remains / b.lease, 0), 1)})`;
  text(words, remains > 0 ? `${left(remains)} of ${left(b.lease).replace(".0s", "s")}` : "due: looking");
}

/** keys handles keys that move in the list or open a lock. */
function keys(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || by("list").hidden || by("dialog").open) return;
  const searching = e.target.closest("input[type=search]");
  if (e.target.closest("input, select, textarea") && !(searching && ["ArrowDown", "ArrowUp", "Enter"].includes(e.key))) return;
  if (dirty) choose(); // the search text may have just changed
  if (chosen.rows.length === 0) return;
  const at = chosen.rows.findIndex((r) => r.i === active);
  const page = Math.max(Math.floor(grid.clientHeight / rowHeight()) - 2, 1);
  const moves = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: chosen.rows.length - 1 };
  if (e.key === "Enter" && !e.target.closest("a, button, summary")) {
    e.preventDefault();
    const row = chosen.rows[Math.max(at, 0)];
    active = row.i;
    go({ lock: row.key, key2: row.sort ?? "", span: "", as: "" }, true);
    return;
  }
  if (!(e.key in moves)) return;
  e.preventDefault();
  grid.focus({ preventScroll: true });
  const to = Math.min(Math.max(moves[e.key], 0), chosen.rows.length - 1);
  active = chosen.rows[to].i;
  const height = rowHeight();
  const head = by("columns").offsetHeight;
  if (to * height < grid.scrollTop) grid.scrollTop = to * height;
  else if ((to + 1) * height + head > grid.scrollTop + grid.clientHeight) grid.scrollTop = (to + 1) * height + head - grid.clientHeight;
  paint();
}

/** focusList focuses the list and selects the lock that was shown last. */
export function focusList(which) {
  const row = which && [...state.rows.values()].find((r) => r.key === which.key && (r.sort ?? "") === which.sort);
  if (row) active = row.i;
  choose();
  grid.focus({ preventScroll: true });
}
