// Breaking the grant that is shown, and no other.

import { by, h, text, visible } from "./dom.js";
import { post } from "./state.js";

const dialog = by("dialog");

/** breakDialog shows the record as it is now, and asks for the key to be typed. */
export async function breakDialog(which) {
  const body = h("div", {}, h("p", {}, "Reading the record…"));
  const result = h("p", { class: "result", role: "status" });
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const buttons = h("div", { class: "buttons" }, close);
  dialog.replaceChildren(h("h2", { id: "dialog-title" }, `Break ${which.key}?`), body, result, buttons);
  dialog.showModal();
  const { status, body: answer } = await post("/look", { key: which.key, sort: which.sort }).catch((e) => ({ status: 0, body: { message: String(e) } }));
  const grants = status === 200 ? answer.filter((g) => !g.released) : [];
  if (grants.length === 0) {
    body.replaceChildren(h("p", {}, status === 200 ? "Nobody holds it now: there is nothing to break." : answer.message));
    return;
  }
  const typed = h("input", { id: "typed", autocomplete: "off", spellcheck: "false", oninput: () => check() });
  const reason = h("input", { id: "reason", maxlength: "1000", autocomplete: "off" });
  const submit = h("button", { type: "submit", form: "break", class: "danger", disabled: true }, "Break this grant");
  const choice = h("select", { id: "which", onchange: () => shown() }, grants.map((g, i) => h("option", { value: i }, `${g.record.mode || "holder"}: ${g.record.owner}`)));
  const record = h("pre", { tabindex: "0", "aria-label": "The record as it is now" });
  const warning = h("p", { class: "warning" });
  const key = () => (typed.value === visible(which.key) ? which.key : typed.value); // as it is, or as it is shown
  const check = () => { submit.disabled = key() !== which.key; };
  const shown = () => {
    const g = grants[choice.value];
    text(record, JSON.stringify(g.record, null, 2));
    text(warning, g.dead
      ? "Its lease has run out: the holder is dead or stuck. If it renews before you are done, nothing is broken."
      : "The holder is alive, as far as is known. After a break it works on until its next renewal: only fenced writes are safe in that time.");
  };
  shown();
  const form = h("form", {
    id: "break",
    onsubmit: async (e) => {
      e.preventDefault();
      const g = grants[choice.value];
      submit.disabled = true;
      text(result, "Breaking…");
      const sent = { key: g.key, sort: g.sort, grant: g.grant, version: g.version, dead: g.dead, typed: key(), reason: reason.value };
      const { body: out } = await post("/break", sent).catch((err) => ({ body: { outcome: "failed", message: String(err) } }));
      result.className = `result ${out.outcome}`;
      text(result, out.message);
      if (out.record) body.replaceChildren(h("p", {}, "The record as it is now:"), h("pre", { tabindex: "0" }, JSON.stringify(out.record, null, 2)));
      else body.replaceChildren();
      submit.remove();
      close.focus();
    },
  },
    h("p", {}, "The record as it is now:"), record,
    grants.length > 1 ? h("label", { for: "which" }, "Whose grant ", choice) : null, warning,
    h("label", { for: "typed" }, "Type the key to break it ", typed),
    h("label", { for: "reason" }, "Reason, which the holder and the other pages are told ", reason));
  body.replaceChildren(form);
  buttons.prepend(submit);
  typed.focus();
}
