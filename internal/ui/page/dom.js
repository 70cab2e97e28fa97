// Creates elements without parsing HTML, so text in a record cannot become markup.

/** h creates an element: h("a", {href: "/"}, "text", child). */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** svg creates an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : name === "title" ? visible(value) : value);
  }
  element.append(...children.flat().filter((c) => c !== undefined && c !== null && c !== false).map((c) => (c instanceof Node ? c : shownIn(element, c))));
  return element;
}

/** text sets an element's text, unless the element already has this text. */
export function text(element, value) {
  const shown = shownIn(element, value);
  if (element.textContent !== shown) element.textContent = shown;
}

const shownIn = (element, value) => visible(value, element.localName === "pre" ? "\n\t" : "");

// Characters that are invisible or change the direction of text, as in Go's internal/visible.
const unseen = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}]|(?! )\p{Zs}/gu;
const short = { "\n": "\\n", "\t": "\\t" };

/** visible escapes the invisible characters in a text, except those in the string but. */
export function visible(value, but = "") {
  const escape = (c) => short[c] ?? [...Array(c.length).keys()].map((i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, "0")}`).join("");
  return String(value).replace(unseen, (c) => (but.includes(c) ? c : escape(c)));
}

/** by returns the element with the given id. */
export const by = (id) => document.getElementById(id);
