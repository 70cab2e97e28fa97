// What the server has told of the table, and for how long that is fresh.

const silence = 3500; // ms without a message until what is shown is stale
const hiddenFor = 60_000; // ms that a hidden page keeps its stream: a browser has few

export const state = {
  hello: null,
  status: null,
  rows: new Map(), // by id
  sessions: new Map(), // rows by session id
  semaphores: new Map(), // rows by key
  taken: new Map(), // permits of each semaphore that are held
  under: new Map(), // locks held under each session
  lock: null, // the one that is shown
  heard: 0, // performance.now() of the last message
  offset: 0, // the server's clock less performance.now()
  refused: "", // why the server does not let us in
  connected: false,
};

const listeners = { list: [], lock: [], status: [], hello: [] };
let stream = null;
let retry = 0;
let hideTimer = 0;
let shown = null; // {key, sort} of the lock to show

/** on calls fn after messages of that kind. */
export function on(kind, fn) {
  listeners[kind].push(fn);
}

function tell(kind) {
  for (const fn of listeners[kind]) fn();
}

/** now is the server's clock, which runs on while it is silent. */
export const now = () => performance.now() + state.offset;

/** staleSince returns since when nothing was heard, by the server's clock; 0: it is fresh. */
export function staleSince() {
  if (state.connected && performance.now() - state.heard < silence) return 0;
  return state.heard ? state.heard + state.offset : 1;
}

/** connect opens the stream, and opens it again whenever it ends. */
export function connect() {
  clearTimeout(hideTimer);
  stream?.close();
  stream = new EventSource("/events");
  stream.addEventListener("hello", (e) => {
    retry = 0;
    state.connected = true;
    state.refused = "";
    state.hello = JSON.parse(e.data);
    state.rows.clear();
    state.sessions.clear();
    state.semaphores.clear();
    heard();
    tell("hello");
    if (shown) show(shown);
  });
  stream.addEventListener("list", (e) => {
    heard();
    merge(JSON.parse(e.data));
    tell("list");
  });
  stream.addEventListener("lock", (e) => {
    heard();
    const lock = JSON.parse(e.data);
    if (!shown || lock.key !== shown.key || (lock.sort ?? "") !== shown.sort) return;
    state.lock = lock;
    tell("lock");
  });
  stream.addEventListener("status", (e) => {
    state.status = JSON.parse(e.data);
    state.offset = state.status.now - performance.now();
    heard();
    tell("status");
  });
  stream.addEventListener("error", () => {
    state.connected = false;
    stream.close();
    tell("status");
    retry = Math.min(retry + 1, 5);
    setTimeout(again, retry * 500);
  });
}

/** again asks whether the server lets us in before it opens the stream. */
async function again() {
  if (document.hidden && stream === null) return;
  try {
    const answer = await fetch("/icon.svg", { cache: "no-store" });
    state.refused = answer.ok ? "" : await answer.text();
    if (answer.ok) return connect();
  } catch {
    // It does not answer.
  }
  tell("status");
  retry = Math.min(retry + 1, 5);
  setTimeout(again, retry * 500);
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(hideTimer);
  if (document.hidden) {
    hideTimer = setTimeout(() => {
      stream?.close();
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
    if (row.kind === "semaphore") state.semaphores.set(row.key, row);
  }
  for (const [i, since, until, warn, lease, n] of list.beats ?? []) {
    const row = state.rows.get(i);
    if (row) Object.assign(row, { since, until, warn, lease, n });
  }
  for (const i of list.gone ?? []) {
    const row = state.rows.get(i);
    state.rows.delete(i);
    if (row?.kind === "session") state.sessions.delete(row.session);
    if (row?.kind === "semaphore") state.semaphores.delete(row.key);
  }
}

/** post sends JSON, and returns the answer's status and content. */
export async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const is = answer.headers.get("Content-Type") ?? "";
  return { status: answer.status, body: is.startsWith("application/json") ? await answer.json() : { message: await answer.text() } };
}

/** show asks for a lock and its history; null: for none. */
export function show(which) {
  shown = which;
  if (!which) state.lock = null;
  if (state.hello) post("/show", { page: state.hello.page, key: which?.key ?? "", sort: which?.sort ?? "" }).catch(() => {});
}

/** beat is what the bar of a row shows: of a lock under a session, the session's. */
export function beat(row) {
  if (row.kind === "lock" && row.session && !row.until) return state.sessions.get(row.session) ?? row;
  return row;
}

/** standing is a row's state at a time: between two looks only the clock moves. */
export function standing(row, at) {
  if (row.kind === "semaphore") return ""; // its permits have one each
  if (row.state !== "held" && row.state !== "expiring") return row.state;
  const b = beat(row);
  if (b !== row && (b.state === "dead" || b.state === "released")) return "dead";
  return b.warn && at >= b.warn ? "expiring" : "held";
}

/** isPermit reports whether a row is a permit of a semaphore. */
export const isPermit = (row) => Boolean(row.semaphore) && state.semaphores.has(row.semaphore);

/** permitsOf returns the permits of a semaphore that have a record, by number. */
export function permitsOf(key) {
  return [...state.rows.values()].filter((r) => r.semaphore === key).sort((a, b) => (a.permit ?? 0) - (b.permit ?? 0));
}

/** tally counts what belongs together. */
export function tally() {
  state.taken.clear();
  state.under.clear();
  for (const r of state.rows.values()) {
    if (r.kind !== "lock" || r.state === "released") continue;
    if (r.semaphore) state.taken.set(r.semaphore, (state.taken.get(r.semaphore) ?? 0) + 1);
    if (r.session) state.under.set(r.session, (state.under.get(r.session) ?? 0) + 1);
  }
}
