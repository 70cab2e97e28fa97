// The dialog that breaks a grant.

import { facts, who } from "./card.js";
import { by, h, text, visible } from "./dom.js";
import { post, state } from "./state.js";

const dialog = by("dialog");

/** now describes the holder in g, a record that the server has just read. */
const now = (g) => (g.released ? [h("p", {}, "Nobody holds it now.")] : [who(g), facts(g, state.lock?.row)]);

/** breakDialog shows the current holder. To break its grant, the user types the key. */
export async function breakDialog(which) {
  const body = h("div", {}, h("p", {}, "Reading the record…"));
  const result = h("p", { class: "result", role: "status" });
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const buttons = h("div", { class: "buttons" }, close);
  dialog.replaceChildren(h("h2", { id: "dialog-title" }, `Break ${which.key}?`), body, result, buttons);
  dialog.showModal();
  const { status, body: g } = await post("/look", { key: which.key, sort: which.sort }).catch((e) => ({ status: 0, body: { message: String(e) } }));
  if (status !== 200 || g.released) {
    body.replaceChildren(h("p", {}, status === 200 ? "Nobody holds it now: there is nothing to break." : g.message));
    return;
  }
  const typed = h("input", { id: "typed", autocomplete: "off", spellcheck: "false", oninput: () => check() });
  const reason = h("input", { id: "reason", maxlength: "1000", autocomplete: "off" });
  const submit = h("button", { type: "submit", form: "break", class: "danger", disabled: true }, "Break this grant");
  const key = () => (typed.value === visible(which.key) ? which.key : typed.value); // the key itself, or its escaped form
  const check = () => { submit.disabled = key() !== which.key; };
  const warning = g.dead
    ? "Its lease has run out: the holder is dead or stuck. If it renews before you are done, nothing is broken."
    : "The holder is alive, as far as is known. After a break it works on until its next renewal: only fenced writes are safe in that time.";
  const form = h("form", {
    id: "break",
    onsubmit: async (e) => {
      e.preventDefault();
      submit.disabled = true;
      text(result, "Breaking…");
      const unknown = state.connected && { outcome: "unknown", message: "It is not known whether the grant is broken: leasehold ui has not answered." };
      const sent = { key: g.key, sort: g.sort, grant: g.grant, version: g.version, dead: g.dead, typed: key(), reason: reason.value };
      const { body: out } = await post("/break", sent).catch((err) => ({ body: unknown || { outcome: "failed", message: String(err) } }));
      result.className = `result ${out.outcome}`;
      text(result, out.message);
      body.replaceChildren(...(out.now ? now(out.now) : []));
      submit.remove();
      close.focus();
    },
  },
    h("div", { class: "holder" }, now(g)), h("p", { class: "warning" }, warning),
    h("label", { for: "typed" }, "Type the key to break it ", typed),
    h("label", { for: "reason" }, "Reason, which the holder and the other pages are told ", reason));
  body.replaceChildren(form);
  buttons.prepend(submit);
  typed.focus();
}
