// Theorem 4: what each player sends is a maximum or a sum over positions. Whole numbers throughout.

const PLAYERS = ["Alice", "Bob"];
const MEANING = {
  maxima: "largest own logit of each head",
  denominators: "sum of own exponentials, by head",
  sums: "own values, weighted and added, by head",
  answer: "the answer",
};

// Whole numbers in `bits` bits each, the first one lowest, as bytes in hexadecimal digits.
function pack(numbers, low, bits) {
  let packed = 0n;
  for (const n of [...numbers].reverse()) packed = (packed << BigInt(bits)) | BigInt(n - low);
  const length = Math.ceil((numbers.length * bits) / 8);
  return Array.from({ length }, (_, i) =>
    Number((packed >> BigInt(8 * i)) & 255n).toString(16).padStart(2, "0")).join("");
}

// All messages of one exchange, and the attended vector that it ends in. Bit i of `mask`: Alice's.
function exchange(protocol, input, variant, mask) {
  const N = input.symbols.length;
  const held = [1, 0].map((own) => [...Array(N).keys()].filter((i) => ((mask >> i) & 1) === own));
  const over = (side, rows, join, start) =>
    rows[0].map((_, c) => held[side].reduce((total, i) => join(total, rows[i][c]), start));
  const add = (x, y) => x + y;
  const owner = held[0].includes(N - 1) ? 0 : 1;
  const lean = variant === "lean";
  const parts = [owner, 1 - owner].map((side) => ({
    maxima: over(side, input.A, Math.max, protocol.lowest),
    denominators: over(side, input.e, add, 0),
    sums: over(side, input.U, add, 0),
  }));
  const messages = protocol.forms[variant].flatMap(([step, low, bits]) => {
    const said = step === "last position" ? [lean ? [input.last] : input.x]
      : step === "answer" ? [[input.answer]] : parts.map((part) => part[step]);
    const sides = step === "sums" && lean ? [1] : said.map((_, n) => n);
    return sides.map((n) => {
      const sender = PLAYERS[n ? 1 - owner : owner];
      const all = said[n].length * bits;
      return { sender, step, numbers: said[n], each: bits, bits: all, hex: pack(said[n], low, bits) };
    });
  });
  const whole = parts[0].sums.map((u, c) => Math.floor((u + parts[1].sums[c]) / protocol.S));
  return { messages, equal: whole.every((o, c) => o === input.attended[c]) };
}

function render(context) {
  const { model } = context;
  const protocol = model.get("protocol");
  const inputs = model.get("inputs");
  const N = inputs[0].symbols.length;
  const everything = 2 ** N - 1;
  const counts = Object.keys(protocol.forms).map((variant) =>
    exchange(protocol, inputs[0], variant, 0).messages.reduce((sum, m) => sum + m.bits, 0));
  const most = Math.max(protocol.claim, ...counts);

  const input = choice(model, "Input", "input", inputs.map((x, n) => [n, x.name]));
  const variant = choice(model, "Protocol", "variant", [
    ["lean", "lean"], ["literal", "literal, as in the proof"],
  ]);
  const deal = (mask) => put(model, "alice", mask & everything);
  const seats = Array.from({ length: N }, (_, i) => h("button", {
    type: "button", class: "ex-seat", onclick: () => deal(model.get("alice") ^ (1 << i)),
  }));
  const evens = [...Array(N).keys()].reduce((mask, i) => (i % 2 ? mask : mask | (1 << i)), 0);
  const ways = [
    ["halves", () => 2 ** Math.ceil(N / 2) - 1], ["in turn", () => evens],
    ["swap", () => ~model.get("alice")],
  ].map(([text, mask]) => h("button", { type: "button", onclick: () => deal(mask()) }, text));
  const move = (by) => put(model, "step", Math.max(0, model.get("step") + by));
  const back = button("← Back", () => move(-1));
  const on = button("Forward →", () => move(1));
  const step = range("Sent", 0, (t) => put(model, "step", t));
  const talk = h("ol", { class: "ex-talk", "aria-label": "Transcript" });
  const hex = h("p", { class: "ex-hex" });
  const bars = h("div", { class: "ex-bars" });

  function drawSeats(shown, mask) {
    seats.forEach((seat, i) => {
      const mine = (mask >> i) & 1;
      seat.setAttribute("aria-pressed", String(Boolean(mine)));
      const label = `position ${i}, symbol ${shown.symbols[i]}: ${PLAYERS[1 - mine]}'s`;
      seat.setAttribute("aria-label", label);
      seat.replaceChildren(h("small", {}, i), shown.symbols[i], h("b", {}, PLAYERS[1 - mine]));
    });
  }

  function reading(shown, { step: what, numbers }) {
    if (what === "answer") return String(numbers[0]);
    if (what === "last position" && numbers.length === 1) return shown.symbols[N - 1];
    const unit = what === "sums" ? protocol.S ** 2 : protocol.S;
    return numbers.map((n) => decimals(n / unit)).join("  ");
  }

  function drawTalk(shown, messages, sent) {
    talk.replaceChildren(...messages.map((m, n) => {
      const [from, to] = m.sender === "Alice" ? PLAYERS : [...PLAYERS].reverse();
      const what = MEANING[m.step] ?? (m.numbers.length > 1 ? "the vector at the last position" : "the last symbol");
      return h("li", {
        class: `ex-from-${from.toLowerCase()}${n >= sent ? " ex-unread" : n === sent - 1 ? " ex-now" : ""}`,
      }, h("span", {}, h("b", {}, `${from} → ${to}`), `: ${what}`),
      h("small", {}, `${m.numbers.length} × ${plural(m.each, "bit")} = ${m.bits}`),
      n < sent ? h("code", {}, reading(shown, m)) : "");
    }));
    const last = messages[sent - 1];
    hex.textContent = last ? last.hex.replace(/../g, "$& ").trim() : "Nothing is sent yet.";
  }

  function drawBars(total) {
    const row = (label, bits) => h("div", { class: "ex-bar" },
      h("span", {}, label), h("b", {}, plural(Math.round(bits), "bit")),
      h("i", {}, h("i", { style: `width: ${((100 * bits) / most).toFixed(1)}%` })));
    bars.replaceChildren(row("sent so far", total), row("allowed, 3m(p + log N)H", protocol.claim));
  }

  function draw() {
    const shown = inputs[Math.min(inputs.length - 1, model.get("input"))];
    const mask = model.get("alice") & everything;
    const name = model.get("variant");
    const { messages, equal } = exchange(protocol, shown, name, mask);
    const sent = Math.min(messages.length, model.get("step"));
    const total = messages.slice(0, sent).reduce((sum, m) => sum + m.bits, 0);
    input.select.selectedIndex = inputs.indexOf(shown);
    variant.select.value = name;
    allow(back, sent > 0);
    allow(on, sent < messages.length);
    step.show(sent, messages.length, `${sent} of ${plural(messages.length, "message")}`);
    drawSeats(shown, mask);
    drawTalk(shown, messages, sent);
    drawBars(total);
    const state = `${name}: ${sent} of ${plural(messages.length, "message")}, ${plural(total, "bit")}`;
    if (sent < messages.length) return `${state} so far.`;
    const side = total > protocol.claim ? "above" : "below";
    return `${state}, ${side} the ${Math.round(protocol.claim)} allowed. Answer ${shown.answer}; the ` +
      `attended vector ${equal ? "equals" : "differs from"} the undivided model's, bit for bit.`;
  }

  return frame(context, "Alice and Bob, both ways", [
    h("div", { class: "ex-controls" }, input.node, variant.node),
    h("h4", {}, "Who holds what", h("small", {}, "press a position to give it to the other")),
    h("div", { class: "ex-seats", role: "group", "aria-label": "Positions" }, ...seats),
    h("div", { class: "ex-ways" }, ...ways),
    h("div", { class: "ex-steps" }, back, on, step.node),
    talk, h("h4", {}, "The last message, in bytes"), hex, bars,
  ], draw);
}

export { exchange };
export default { render };
