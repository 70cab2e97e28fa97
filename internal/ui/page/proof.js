// Who answers: the server of this page, the next one with its secret, or somebody else.
//
// doc.go of package ui says who proves what to whom.

let key = null; // of HMACs: it cannot be read

/** learn keeps the secret of the server that let us in. Without https that works on this machine's own names only. */
export async function learn(secret) {
  key ??= (await crypto.subtle?.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"])) ?? null;
}

const hex = (bytes) => [...new Uint8Array(bytes)].map((b) => b.toString(16).padStart(2, "0")).join("");

const sign = async (...words) => hex(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(words.join("\n"))));

/**
 * answering returns the name of the server that answers, once it has proved that it has the secret.
 * "": it has not. null: nothing can be proved, as no server has let us in yet or the browser has no means.
 */
export async function answering(signal) {
  if (!key) return null;
  const nonce = hex(crypto.getRandomValues(new Uint8Array(32)));
  const answer = await fetch(`/who?nonce=${nonce}`, { cache: "no-store", signal });
  const { host, proof } = await answer.json().catch(() => ({}));
  return typeof host === "string" && proof === (await sign("server", nonce, host)) ? host : "";
}

/**
 * urlAt returns the URL of this view at the next server with the secret; "": it is not to be followed.
 * The page must have been at its own server's name and port, and the next must have that port: through a
 * tunnel, another port of this machine is somebody else's.
 */
export async function urlAt(next, own) {
  const [to, from] = [next, own].map((host) => new URL(`http://${host}`));
  if (from.host !== location.host || to.port !== from.port) return "";
  return `${to.origin}${location.pathname}${location.search}#token=${await sign("page", next)}`;
}
