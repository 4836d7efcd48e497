// What all explorers share: elements, a frame with a status line, controls tied to the model.

function h(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "rect"].includes(tag);
  const node = svg
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

// A Bytes trait arrives as a DataView.
function bytes(view) {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

// Three decimals, with a minus sign as wide as a digit.
function decimals(x) {
  return x.toFixed(3).replace("-", "−");
}

function plural(n, word) {
  return `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
}

// A vector's name: T with its index below.
function T(i) {
  return h("span", {}, "T", h("sub", {}, i));
}

// The same trait may be seen in two places, or set from Python: controls follow the model.
function put(model, trait, value) {
  model.set(trait, value);
  model.save_changes();
}

// Options are [value, text]; the trait gets the value as it was given, numbers as numbers.
function choice(model, label, trait, options) {
  const list = options.map(([value, text]) => h("option", { value }, text));
  const choose = () => put(model, trait, options[select.selectedIndex][0]);
  const select = h("select", { onchange: choose }, ...list);
  return { node: h("label", {}, h("span", {}, label), select), select };
}

function range(label, min, onchange) {
  const shown = h("span", { class: "ex-value" });
  const input = h("input", { type: "range", min, step: 1 });
  input.addEventListener("input", () => onchange(Number(input.value)));
  const show = (value, max, text, disabled = false) => {
    input.max = max;
    input.value = value;
    input.disabled = disabled;
    input.setAttribute("aria-valuetext", text);
    shown.textContent = text;
  };
  const node = h("label", { class: "ex-range" }, h("span", {}, label, " ", shown), input);
  return { node, input, show };
}

// Blue below zero, orange above; zero is the page itself, so both themes show the same.
function tint(x) {
  const alpha = Math.min(1, Math.abs(x)).toFixed(3);
  return x < 0 ? `rgba(58,127,213,${alpha})` : `rgba(201,106,18,${alpha})`;
}

// A button that is off keeps the focus: only its action is withheld.
function button(text, action, attributes = {}) {
  const press = () => node.getAttribute("aria-disabled") === "true" || action();
  const node = h("button", { type: "button", ...attributes, onclick: press }, text);
  return node;
}

function allow(node, on) {
  node.setAttribute("aria-disabled", String(!on));
}

// Builds the frame, calls `draw` now and at every change of the model, and cleans up.
function frame({ model, el }, label, parts, draw) {
  const status = h("p", { "data-explorer-status": true, "aria-live": "polite" });
  el.append(h("div", { class: "explorer", role: "group", "aria-label": label }, ...parts, status));
  const update = () => {
    const text = draw();
    if (status.textContent !== text) status.textContent = text;
  };
  model.on("change", update);
  update();
  return () => model.off("change", update);
}
