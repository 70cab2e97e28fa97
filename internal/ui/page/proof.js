// Checks which program replies: this page's server, a later server with the same secret, or
// another program.
//
// doc.go of package ui explains the proofs.

let key = null; // HMAC key; scripts cannot read it

/** learn stores the secret of the server. Without https, browsers allow this only at names of this machine. */
export async function learn(secret) {
  key ??= (await crypto.subtle?.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"])) ?? null;
}

const hex = (bytes) => [...new Uint8Array(bytes)].map((b) => b.toString(16).padStart(2, "0")).join("");

const sign = async (...words) => hex(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(words.join("\n"))));

/**
 * answering returns the name of the server that replies, if it proves that it has the secret; otherwise "".
 * It returns null if no check is possible: the page or the browser has no HMAC key.
 */
export async function answering(signal) {
  if (!key) return null;
  const nonce = hex(crypto.getRandomValues(new Uint8Array(32)));
  const answer = await fetch(`/who?nonce=${nonce}`, { cache: "no-store", signal });
  const { host, proof } = await answer.json().catch(() => ({}));
  return typeof host === "string" && proof === (await sign("server", nonce, host)) ? host : "";
}

/**
 * urlAt returns the URL of this view at the later server next, which has the secret; "" if the page must not go there.
 * The page must be at its own server's name and port, and next must have the same port. Through a
 * tunnel, another port may belong to another user.
 */
export async function urlAt(next, own) {
  const [to, from] = [next, own].map((host) => new URL(`http://${host}`));
  if (from.host !== location.host || to.port !== from.port) return "";
  return `${to.origin}${location.pathname}${location.search}#token=${await sign("page", next)}`;
}
