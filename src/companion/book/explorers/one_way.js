// Alice reads symbol by symbol and sends her state once; Bob answers for any position from it.

const COLUMNS = 128; // numbers a line in the picture of a state

// The numbers of a state after t symbols, scaled to [-1, 1].
function state(data, run, t) {
  const start = run.starts[t];
  const end = t + 1 < run.starts.length ? run.starts[t + 1] : run.end;
  return Array.from(new Int8Array(data.buffer, data.byteOffset + start, end - start), (x) => x / 127);
}

function render(context) {
  const { model } = context;
  const runs = model.get("runs");
  const a = model.get("symbols");
  const N = a.length;
  const needed = model.get("needed");
  const data = bytes(model.get("picture"));
  const most = Math.max(needed, ...runs.map((run) => run.bits[N]));
  const lines = (run) => Math.max(1, Math.ceil((run.end - run.starts[N]) / COLUMNS));

  const name = choice(model, "Model", "model", runs.map((run) => [run.name, run.name]));
  const move = (by) => put(model, "step", Math.max(0, Math.min(N + 1, model.get("step") + by)));
  const back = button("← Back", () => move(-1));
  const on = button("Forward →", () => move(1));
  const step = range("Step", 0, (t) => put(model, "step", t));
  const asked = range("Asked for position", 0, (i) => put(model, "i", i));

  // At most 20 cells a line, on a phone half as many, and lines of equal length.
  const line = Math.ceil(N / Math.ceil(N / 20));
  const cells = `--cells: ${line}; --half: ${Math.ceil(line / 2)}`;
  const tape = h("ol", { class: "ex-tape", style: cells, "aria-label": "Alice's string" });
  const canvas = h("canvas", { role: "img" });
  const size = h("small");
  const wire = h("div", { class: "ex-bars" });
  const hex = h("p", { class: "ex-hex" });
  const answer = h("p", { class: "ex-answer", "aria-live": "polite" });
  const strip = h("ol", { class: "ex-tape ex-bob", style: cells, "aria-label": "Bob's answers" });

  function drawTape(read) {
    tape.replaceChildren(...a.map((symbol, i) => h("li", {
      class: i === read - 1 ? "ex-head" : i >= read ? "ex-unread" : "",
    }, h("small", {}, i), symbol)));
  }

  function drawState(run, read) {
    const numbers = state(data, run, read);
    canvas.width = COLUMNS * 6;
    canvas.height = lines(run) * 10;
    const pen = canvas.getContext("2d");
    numbers.forEach((x, n) => {
      pen.fillStyle = tint(x);
      pen.fillRect((n % COLUMNS) * 6, Math.floor(n / COLUMNS) * 10, 5, 9);
    });
    const cut = run.counts[read] > numbers.length ? `, the first ${numbers.length} drawn` : "";
    size.textContent = `${plural(run.counts[read], "number")}${cut}: ${plural(run.bits[read], "bit")}`;
    canvas.setAttribute("aria-label", `State after ${plural(read, "symbol")}, ${size.textContent}`);
  }

  function drawWire(run, sent) {
    const row = (label, bits) => {
      const width = `width: ${((100 * Math.log2(1 + bits)) / Math.log2(1 + most)).toFixed(1)}%`;
      return h("div", { class: "ex-bar" },
        h("span", {}, label), h("b", {}, plural(bits, "bit")), h("i", {}, h("i", { style: width })));
    };
    wire.replaceChildren(row("on the wire", sent ? run.bits[N] : 0), row("needed, N log₂|Σ|", needed));
    const more = run.bytes - run.hex.length / 2;
    const pairs = run.hex.replace(/../g, "$& ").trim();
    hex.textContent = !sent ? "Nothing is sent yet."
      : more > 0 ? `${pairs} … and ${plural(more, "more byte")}` : pairs;
  }

  function drawBob(run, sent, i) {
    const good = a.map((symbol, n) => symbol === run.answers[n]);
    strip.replaceChildren(...a.map((_, n) => {
      const mark = sent ? (good[n] ? " ex-right" : " ex-wrong") : " ex-unread";
      const text = sent ? (good[n] ? "✓" : "✗") : "?";
      const label = sent ? `position ${n}: ${good[n] ? "right" : "wrong"}` : `position ${n}`;
      return h("li", {
        class: (n === i ? "ex-asked" : "") + mark, "aria-label": label,
        onclick: () => put(model, "i", n),
      }, h("small", {}, n), text);
    }));
    const chance = run.probability[i].toFixed(2);
    answer.textContent = !sent ? "He waits for Alice's message."
      : `He says ${run.answers[i]} with probability ${chance}. The symbol is ${a[i]}: ` +
        `${good[i] ? "right ✓" : "wrong ✗"}`;
    return good.filter(Boolean).length;
  }

  function draw() {
    const run = runs.find((r) => r.name === model.get("model")) ?? runs[0];
    const now = Math.max(0, Math.min(N + 1, model.get("step")));
    const i = Math.max(0, Math.min(N - 1, model.get("i")));
    const [read, sent] = [Math.min(now, N), now > N];
    name.select.value = run.name;
    step.show(now, N + 1, sent ? "the state is sent" : `${read} of ${plural(N, "symbol")} read`);
    asked.show(i, N - 1, `i = ${i}`, !sent);
    allow(back, now > 0);
    allow(on, !sent);
    drawTape(read);
    drawState(run, read);
    drawWire(run, sent);
    const right = drawBob(run, sent, i);
    if (!sent) {
      return `${run.name}: Alice has read ${read} of ${plural(N, "symbol")}; ` +
        `her state has ${plural(run.bits[read], "bit")}.`;
    }
    return `${run.name}: ${plural(run.bits[N], "bit")} on the wire, ` +
      `${run.enough ? "enough" : "too few"} to tell all strings apart; ` +
      `Bob is right on ${right} of ${plural(N, "position")}, ` +
      `guessing would get ${(N / model.get("alphabet")).toFixed(1)} of them right.`;
  }

  return frame(context, "Alice and Bob, one way", [
    h("div", { class: "ex-steps" }, name.node, back, on, step.node),
    h("section", { class: "ex-party ex-state" }, h("h4", {}, "Alice reads"), tape,
      h("h4", {}, "Her state", size), canvas),
    h("section", { class: "ex-party" }, h("h4", {}, "The wire", h("small", {}, "lengths on a logarithmic scale")), wire, hex),
    h("section", { class: "ex-party" }, h("h4", {}, "Bob answers"), asked.node, answer, strip),
  ], draw);
}

export { state };
export default { render };
