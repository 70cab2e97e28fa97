// The view, which the page's URL stores. A link opens it again.

const names = ["q", "prefix", "owner", "kind", "state", "sort", "lock", "key2", "span", "as", "tz"];
const changed = [];

/** view returns the values in the URL's query. */
export function view() {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries(names.map((n) => [n, query.get(n) ?? ""]));
}

/** href returns the URL of the view after the changes. */
export function href(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const s = query.toString();
  return s ? `/?${s}` : "/";
}

/** go changes the view. If newPlace is true, the browser's Back undoes it. */
export function go(changes, newPlace = false) {
  const to = href(changes);
  if (to === location.pathname + location.search) return;
  history[newPlace ? "pushState" : "replaceState"](null, "", to);
  for (const fn of changed) fn();
}

/** onView registers fn, which is called after each change of the view. */
export function onView(fn) {
  changed.push(fn);
  addEventListener("popstate", fn);
}

/** lockOf returns the key and sort key of the shown lock, or null. */
export function lockOf(v) {
  return v.lock ? { key: v.lock, sort: v.key2 } : null;
}

/** toLock returns the URL of one lock. */
export const toLock = (row) => href({ lock: row.key, key2: row.sort ?? "", span: "", as: "" });

/** followed handles a click on a link to this page without loading it again. */
export function followed(e) {
  if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  const link = e.target.closest?.("a[href^='/']");
  if (!link) return;
  e.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  for (const fn of changed) fn();
}
