// The view, as the address bar has it: a link opens it again.

const names = ["q", "prefix", "owner", "kind", "state", "sort", "lock", "key2", "span", "as", "tz"];
const changed = [];

/** view returns what the address says. */
export function view() {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries(names.map((n) => [n, query.get(n) ?? ""]));
}

/** href returns the address of the view with some of it changed. */
export function href(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const s = query.toString();
  return s ? `/?${s}` : "/";
}

/** go changes the view. A new place can be left by the browser's Back. */
export function go(changes, newPlace = false) {
  const to = href(changes);
  if (to === location.pathname + location.search) return;
  history[newPlace ? "pushState" : "replaceState"](null, "", to);
  for (const fn of changed) fn();
}

/** onView calls fn whenever the view has changed. */
export function onView(fn) {
  changed.push(fn);
  addEventListener("popstate", fn);
}

/** lockOf returns the key and sort key of the lock that is shown; null: none. */
export function lockOf(v) {
  return v.lock ? { key: v.lock, sort: v.key2 } : null;
}

/** toLock returns the address of one lock. */
export const toLock = (row) => href({ lock: row.key, key2: row.sort ?? "", span: "", as: "" });

/** followed makes a click on a link within the page change the view, not load it. */
export function followed(e) {
  if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  const link = e.target.closest?.("a[href^='/']");
  if (!link) return;
  e.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  for (const fn of changed) fn();
}
