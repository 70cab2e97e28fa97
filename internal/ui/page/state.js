// The state of the table as the server has sent it, and how old it is.

import { answering, learn, urlAt } from "./proof.js";

const silence = 3000; // ms without a message after which the content is stale
const hiddenFor = 60_000; // ms until a hidden page closes its stream: browsers limit streams

export const state = {
  hello: null,
  status: null,
  rows: new Map(), // by id
  sessions: new Map(), // rows by session id
  under: new Map(), // locks held under each session
  mixed: false, // true if another library has granted a lock
  lock: null, // the shown lock; null until the server has sent it
  heard: 0, // performance.now() of the last message
  offset: 0, // the server's clock minus performance.now()
  refused: "", // why the server refuses access
  connected: false,
};

const listeners = { list: [], lock: [], status: [], hello: [] };
let stream = null;
let retry = 0;
let hideTimer = 0;
let shown = null; // {key, sort} of the lock to show

/** on registers fn, which is called after each message of the kind. */
export function on(kind, fn) {
  listeners[kind].push(fn);
}

function tell(kind) {
  for (const fn of listeners[kind]) fn();
}

/** now returns the time by the server's clock, even while the server is silent. */
export const now = () => performance.now() + state.offset;

/** staleSince returns the time of the last message by the server's clock, or 0 if the content is fresh. */
export function staleSince() {
  if (state.connected && performance.now() - state.heard < silence) return 0;
  return state.heard ? state.heard + state.offset : 1;
}

/** unknownSince returns since when the table's state is unknown, or 0 if it is known. */
export function unknownSince() {
  const s = state.status;
  if (!s || (staleSince() === 0 && !state.refused && !s.trouble && s.rate !== 0)) return 0;
  return s.answered;
}

/** asOf returns the time of the content: now, while the table answers. */
export const asOf = () => unknownSince() || now();

const kept = "leasehold-token";

/** token is the access token, from the fragment of the URL or the storage of this origin. */
const token = (() => {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) history.replaceState(null, "", location.pathname + location.search);
  try {
    if (given) localStorage.setItem(kept, given);
    return given ?? localStorage.getItem(kept) ?? "";
  } catch {
    return given ?? ""; // the browser has no storage
  }
})();
addEventListener("hashchange", () => location.hash.startsWith("#token=") && location.reload()); // another URL in the same tab
const authorization = { Authorization: `Bearer ${token}` };

const handlers = {
  async hello({ secret, ...data }) {
    await learn(secret);
    retry = 0;
    state.connected = true;
    state.refused = "";
    state.hello = data;
    state.rows.clear();
    state.sessions.clear();
    heard();
    tell("hello");
    if (shown) show(shown);
  },
  list(data) {
    heard();
    merge(data);
    tell("list");
  },
  lock(data) {
    heard();
    if (!shown || data.key !== shown.key || (data.sort ?? "") !== shown.sort) return;
    state.lock = data;
    tell("lock");
  },
  status(data) {
    state.status = data;
    state.offset = data.now - performance.now();
    heard();
    tell("status");
  },
};

/**
 * isOurs reports whether our server replies, or no proof is possible. If a later server replies,
 * isOurs opens that server's URL.
 */
async function isOurs(signal) {
  const host = await answering(signal);
  if (host === null || host === state.hello.host) return true;
  const next = host && (await urlAt(host, state.hello.host));
  if (next) location.replace(next);
  else state.refused = "Not the leasehold ui of this page answers here. Open the URL that leasehold ui printed last.";
  return false;
}

/** connect opens the stream, and reopens it when it ends. An EventSource could not send the token. */
export async function connect() {
  clearTimeout(hideTimer);
  stream?.abort();
  const mine = (stream = new AbortController());
  try {
    if (await isOurs(mine.signal)) {
      const answer = await fetch("/events", { headers: authorization, cache: "no-store", signal: mine.signal });
      state.refused = answer.ok ? "" : await answer.text();
      if (answer.ok) await read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
    }
  } catch {
    // The server has not replied, or has stopped replying.
  }
  if (stream !== mine) return;
  state.connected = false;
  tell("status");
  retry = Math.min(retry + 1, 5);
  setTimeout(() => { if (stream === mine) connect(); }, retry * 500);
}

/** read passes each message to its handler until the stream ends. */
async function read(reader) {
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const messages = (rest + value).split("\n\n");
    rest = messages.pop();
    for (const m of messages) {
      const [event, data] = m.split("\ndata: ");
      await handlers[event.slice("event: ".length)](JSON.parse(data));
    }
  }
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(hideTimer);
  if (document.hidden) {
    hideTimer = setTimeout(() => {
      stream?.abort();
      stream = null;
      state.connected = false;
    }, hiddenFor);
  } else if (stream === null) {
    connect();
  }
});

function heard() {
  state.heard = performance.now();
}

function merge(list) {
  for (const row of list.rows ?? []) {
    state.rows.set(row.i, row);
    if (row.kind === "session") state.sessions.set(row.session, row);
  }
  for (const [i, since, until, lease, n] of list.beats ?? []) {
    const row = state.rows.get(i);
    if (row) Object.assign(row, { since, until, lease, n });
  }
  for (const i of list.gone ?? []) {
    const row = state.rows.get(i);
    state.rows.delete(i);
    if (row?.kind === "session") state.sessions.delete(row.session);
  }
}

/** post sends JSON to the connected server, and returns the status and content of the reply. */
export async function post(path, body) {
  if (!state.connected) throw new Error("leasehold ui does not answer: nothing was sent");
  const answer = await fetch(path, {
    method: "POST",
    headers: { ...authorization, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const is = answer.headers.get("Content-Type") ?? "";
  return { status: answer.status, body: is.startsWith("application/json") ? await answer.json() : { message: await answer.text() } };
}

/** show requests a lock and its history; null requests none. */
export function show(which) {
  if (which?.key !== shown?.key || which?.sort !== shown?.sort) state.lock = null;
  shown = which;
  if (state.hello) post("/show", { page: state.hello.page, key: which?.key ?? "", sort: which?.sort ?? "" }).catch(() => {});
}

/** beat returns the row whose lease the bar shows: for a lock under a session, the session's row. */
export function beat(row) {
  if (row.kind === "lock" && row.session && !row.until) return state.sessions.get(row.session) ?? row;
  return row;
}

/** standing returns the last known state of a row. */
export function standing(row) {
  if (row.state !== "held" && row.state !== "expiring") return row.state;
  const b = beat(row);
  if (b !== row && (b.state === "dead" || b.state === "released")) return "dead";
  return b.state === "expiring" ? "expiring" : "held";
}

/** heldFor returns how long a row's lock has been held, or null if the lock is free. A dead holder's time stops when its lease expires. */
export function heldFor(row) {
  const from = row.granted || row.seen;
  if (row.state === "released" || !from) return null;
  return row.state === "dead" ? (row.held ?? 0) : asOf() - from;
}

/** said returns the state to show. A held lock is "unknown" while unknownSince is not 0. */
export function said(row) {
  const s = standing(row);
  return unknownSince() && (s === "held" || s === "expiring") ? "unknown" : s;
}

/** tally counts the locks under each session, and sets state.mixed. */
export function tally() {
  state.under.clear();
  state.mixed = false;
  for (const r of state.rows.values()) {
    if (r.other) state.mixed = true;
    if (r.kind !== "lock" || r.state === "released") continue;
    if (r.session) state.under.set(r.session, (state.under.get(r.session) ?? 0) + 1);
  }
}
