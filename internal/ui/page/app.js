// The parts of the page that every view has.

import { by, h, text } from "./dom.js";
import { fullTime, number, time, zone, zoneName } from "./format.js";
import { startList } from "./list.js";
import { startLock } from "./lock.js";
import { connect, now, on, post, staleSince, state, unknownSince } from "./state.js";
import { followed, go, href, onView, view } from "./view.js";

const rates = [0, 1, 5, 10, 25, 50, 100, 250, 500, 1000];

function header() {
  const { table, location: where, layout } = state.hello;
  text(by("table"), table);
  text(by("location"), where);
  text(by("layout"), layout);
}

function reading() {
  const s = state.status;
  if (!s) return;
  const choices = [...rates.filter((r) => r < s.most), s.most];
  const select = by("rate");
  if (select.options.length !== choices.length) {
    select.replaceChildren(...choices.map((r) => h("option", { value: r }, r === 0 ? "stopped" : `up to ${number(r)}/s`)));
  }
  if (document.activeElement !== select) select.value = String(s.rate);
  text(by("reading"), `${s.reading.toFixed(1)} read units/s`);
  by("reading").title = s.pass.at ? `The last pass over the table read ${number(s.pass.items)} items in ${(s.pass.tookMs / 1000).toFixed(1)} s and ended at ${fullTime(s.pass.at)}.` : "";
}

/** freshness shows whether the content is up to date. */
function freshness() {
  const since = unknownSince();
  const s = state.status;
  const silent = staleSince();
  let why = "";
  if (state.refused) why = state.refused.trim() + (since ? ` What is shown is stale since ${time(since)}.` : "");
  else if (silent > 1) why = `No word from leasehold ui: stale since ${time(since)}. Trying again.`;
  else if (silent) why = "";
  else if (s?.trouble) why = `The table cannot be read, stale since ${time(since)}: ${s.trouble}`;
  else if (s?.rate === 0) why = `Reading is stopped: what is shown is as of ${time(since)}.`;
  by("banner").hidden = !why;
  text(by("banner"), why);
  document.body.classList.toggle("stale", Boolean(why));
  const live = by("live");
  live.className = `live ${why ? "off" : silent ? "" : "on"}`;
  text(live, why ? "stale" : silent ? "connecting" : "live");
}

/** news tells screen readers how many holders have died. At a status, all rows have come. */
let dead = null;
function news() {
  if (!state.status?.whole) return;
  let n = 0;
  for (const r of state.rows.values()) if (r.state === "dead") n++;
  if (dead !== null && n > dead) text(by("news"), `${n - dead} more ${n - dead === 1 ? "holder is" : "holders are"} dead at ${time(now())}`);
  dead = n;
}

function zones() {
  zone(view().tz === "utc");
  const button = by("zone");
  text(button, `Times: ${zoneName()}`);
  button.setAttribute("aria-pressed", String(zone()));
}

function help() {
  const keys = [["/", "search"], ["↑ ↓ or j k", "move in the list"], ["Page Up, Page Down, Home, End", "move further"], ["Enter", "open the lock"], ["Esc", "back to all locks"], ["u", "times in UTC, or local"], ["?", "this help"]];
  const dialog = by("dialog");
  dialog.replaceChildren(h("h2", { id: "dialog-title" }, "Keys"),
    h("dl", { class: "shortcuts" }, keys.map(([k, what]) => h("div", {}, h("dt", {}, h("kbd", {}, k)), h("dd", {}, what)))),
    h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
  dialog.showModal();
}

function shortcuts(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || by("dialog").open) return;
  const typing = e.target.closest("input:not([type=checkbox]), select, textarea");
  if (e.key === "Escape" && view().lock) {
    go({ lock: "", key2: "", span: "", as: "" }, true);
  } else if (e.key === "Escape" && typing) {
    e.target.blur();
  } else if (typing) {
    return;
  } else if (e.key === "/" && !view().lock) {
    e.preventDefault();
    by("q").select();
    by("q").focus();
  } else if (e.key === "u") {
    go({ tz: zone() ? "" : "utc" });
  } else if (e.key === "?") {
    help();
  }
}

on("hello", header);
on("status", () => { reading(); freshness(); news(); });
onView(zones);
zones();
by("zone").addEventListener("click", () => go({ tz: zone() ? "" : "utc" }));
by("help").addEventListener("click", help);
by("rate").addEventListener("change", () => post("/rate", { rate: Number(by("rate").value) }));
by("home").addEventListener("click", (e) => { by("home").setAttribute("href", href({ lock: "", key2: "", span: "", as: "" })); followed(e); });
document.addEventListener("click", followed);
document.addEventListener("keydown", shortcuts);
setInterval(freshness, 250);
startList();
startLock();
connect();
