// Formats values for people.

let utc = new URLSearchParams(location.search).get("tz") === "utc";
const formats = new Map();

/** zone reports whether times are in UTC. If the argument to is given, it sets the zone first. */
export function zone(to) {
  if (to !== undefined) utc = to;
  return utc;
}

function format(options) {
  const key = JSON.stringify(options) + utc;
  if (!formats.has(key)) {
    formats.set(key, new Intl.DateTimeFormat("sv-SE", { ...options, timeZone: utc ? "UTC" : undefined }));
  }
  return formats.get(key);
}

const clockOf = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
const dayOf = { year: "numeric", month: "2-digit", day: "2-digit" };

/** time formats a time of day. It adds the date unless that is today. */
export function time(ms, now = Date.now()) {
  if (!ms) return "";
  const day = format(dayOf).format(ms);
  const clock = format(clockOf).format(ms);
  return day === format(dayOf).format(now) ? clock : `${day} ${clock}`;
}

/** fullTime formats a time with date, milliseconds and zone. */
export function fullTime(ms) {
  if (!ms) return "";
  const millis = String(ms % 1000).padStart(3, "0");
  const name = utc ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
  return `${format({ ...dayOf, ...clockOf }).format(ms)}.${millis} ${name}`;
}

/** period formats the start of a period in UTC, without the time at midnight. */
export function period(start) {
  const [day, clock] = start.split("T");
  return clock === "00:00:00.000Z" ? day : `${day} ${clock.slice(0, 8)} UTC`;
}

/** zoneName returns the name of the time zone. */
export function zoneName() {
  if (utc) return "UTC";
  const part = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts().find((p) => p.type === "timeZoneName");
  return part.value === "UTC" ? "local (UTC)" : part.value;
}

/** age formats a duration: 12s, 3m12s, 5h3m, 6d5h. */
export function age(ms) {
  const s = Math.max(Math.floor(ms / 1000), 0);
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${s % 60}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h${Math.floor(s / 60) % 60}m`;
  return `${Math.floor(s / 86400)}d${Math.floor(s / 3600) % 24}h`;
}

/** left formats a duration, below a minute with tenths: 4.2s. */
export function left(ms) {
  return ms < 60_000 ? `${(Math.max(ms, 0) / 1000).toFixed(1)}s` : age(ms);
}

/** number formats a count with separators. */
export const number = (n) => n.toLocaleString("en-GB");

const longest = 200;

/** middle omits the middle of a long text. */
function middle(s) {
  const all = [...s];
  return all.length <= longest ? s : `${all.slice(0, longest / 2).join("")}…${all.slice(1 - longest / 2).join("")}`;
}

/** shortOwner shortens the random id at the end of an owner to four characters. */
export function shortOwner(owner) {
  return middle(/\/[a-z2-7]{26}$/.test(owner) ? owner.slice(0, -22) : owner);
}

/** word quotes a name for a sentence unless it is a plain word, like Word of Go's internal/visible. */
export function word(name) {
  const short = middle(name);
  return short === name && /^[\p{L}\p{M}\p{N}_./@:#+=%~-]+$/u.test(name) ? name : JSON.stringify(short);
}

/** ownerWord formats an owner for a sentence. */
export const ownerWord = (owner) => (owner ? word(shortOwner(owner)) : "somebody");

/** shortToken returns the end of a token. Consecutive tokens differ only there. */
export function shortToken(token) {
  const s = String(token);
  return s.length > 7 ? `…${s.slice(-5)}` : s;
}

/** bytes decodes base64. */
export function bytes(base64) {
  return Uint8Array.from(atob(base64 ?? ""), (c) => c.charCodeAt(0));
}

/** asText decodes UTF-8. It returns null if data is not UTF-8. */
export function asText(data) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch {
    return null;
  }
}

/** asJSON indents JSON. It returns null if data is not JSON. */
export function asJSON(data) {
  const s = asText(data);
  try {
    return s === null ? null : JSON.stringify(JSON.parse(s), null, 2);
  } catch {
    return null;
  }
}

/** asHex formats 16 bytes a line, like hexdump -C. */
export function asHex(data) {
  const lines = [];
  for (let at = 0; at < data.length; at += 16) {
    const part = [...data.slice(at, at + 16)];
    const hex = part.map((b) => b.toString(16).padStart(2, "0")).join(" ");
    const plain = part.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${hex.padEnd(47)}  ${plain}`);
  }
  return lines.join("\n");
}
