// Feed symbols to a model; see what each writes into the fast weights and what it makes them forget.

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const columns = (M) => M[0].map((_, j) => M.map((row) => row[j]));
const times = (x, M) => columns(M).map((column) => dot(x, column)); // x M
const outer = (k, v) => k.map((x) => v.map((y) => x * y));
const sigmoid = (x) => 1 / (1 + Math.exp(-x));
function softmax(x) {
  const powers = x.map((y) => Math.exp(y - Math.max(...x)));
  const all = powers.reduce((a, b) => a + b);
  return powers.map((y) => y / all);
}

// Zero fast weights, or those that a self-referential matrix starts from; and no last output.
function begin(m) {
  const S = m.start ?? m.rows.map(() => m.columns.map(() => 0));
  return { S, o: m.columns.map(() => 0) };
}

// Query, key, value and rate of a symbol, in a model whose fast weights do not make them.
function inputs(m, o, c) {
  const [R, C] = [m.rows.length, m.columns.length];
  if (m.kind === "sum") return [m.q[c], m.k[c], m.v[c], 1];
  if (m.kind === "delta") return [m.q[c], m.k[c], m.v[c], m.rate[c]];
  const back = times(o.map(Math.tanh), m.back);
  const z = m.x[c].map((x, i) => x + back[i]);
  return [softmax(z.slice(0, R)), softmax(z.slice(R, 2 * R)), z.slice(2 * R, 2 * R + C), sigmoid(z.at(-1))];
}

// One symbol: what is forgotten, what is written, the fast weights and the output after it.
function step(m, { S, o }, c) {
  let k, rate, old, fresh, output;
  if (m.kind === "self") {
    const [z, d] = [times(m.x[c], S), S.length];
    const q = softmax(z.slice(d, 2 * d));
    k = softmax(z.slice(2 * d, 3 * d));
    rate = z.map((_, j) => sigmoid(z[3 * d + Math.min(Math.floor(j / d), 3)]));
    [old, fresh, output] = [times(k, S), times(q, S), z.slice(0, d)];
  } else {
    const [q, key, v, r] = inputs(m, o, c);
    k = key;
    rate = v.map(() => r);
    old = m.kind === "sum" ? v.map(() => 0) : times(k, S);
    [fresh, output] = [v, (after) => times(q, after)];
  }
  const forgotten = outer(k, old.map((x, j) => rate[j] * x));
  const written = outer(k, fresh.map((x, j) => rate[j] * x));
  const after = S.map((row, i) => row.map((x, j) => x - forgotten[i][j] + written[i][j]));
  return { S: after, o: Array.isArray(output) ? output : output(after), forgotten, written, rate };
}

// All steps of a word, with the classes of the largest logit after each; a sum may have several.
function read(m, word) {
  let state = begin(m);
  return word.map((c) => {
    const before = state.S;
    state = step(m, state, c);
    const logits = m.weigh.map((row, n) => dot(row, state.o) + m.plain[c][n]);
    const close = Math.max(...logits) - 1e-9 * Math.max(...logits.map(Math.abs));
    const best = m.answers.filter((_, n) => logits[n] >= close);
    return { ...state, before, answer: best.join(" or ") };
  });
}

const number = (x) => (Number.isInteger(x) ? String(x) : x.toFixed(2)).replace("-", "−");

function render(context) {
  const { model } = context;
  const models = model.get("models");
  const longest = model.get("longest");
  const current = () => models.find((m) => m.name === model.get("model")) ?? models[0];
  const set = (word) => {
    model.set("word", word);
    put(model, "step", word.length);
  };
  const select = h("select", { onchange: () => {
    model.set("model", models[select.selectedIndex].name);
    set(models[select.selectedIndex].example);
  } }, ...models.map((m) => h("option", { value: m.name }, m.name)));
  const move = (by) => put(model, "step", model.get("step") + by);
  const back = button("← Back", () => move(-1));
  const on = button("Forward →", () => move(1));
  const clear = button("Clear", () => set([]));
  const keys = h("div", { class: "ex-symbols", role: "group", "aria-label": "Feed a symbol" });
  const tape = h("ol", { class: "ex-tape", "aria-label": "The word, and what is said after each symbol" });
  const names = { before: "Before", forgotten: "− forgotten", written: "+ written", S: "= after" };
  const grids = h("div", { class: "ex-grids" });
  let shown = null;

  function drawKeys(m, word) {
    if (shown !== m.name) {
      shown = m.name;
      keys.replaceChildren(...m.symbols.map((text, c) => button(
        text, () => set([...model.get("word"), c]), { "aria-label": `feed ${text}` })));
    }
    for (const key of keys.children) allow(key, word.length < longest);
  }

  function drawTape(m, word, steps, now) {
    const cells = Math.max(8, Math.min(longest / 2, word.length));
    tape.style.cssText = `--cells: ${cells}; --half: ${Math.ceil(cells / 2)}`;
    tape.replaceChildren(...word.map((c, i) => h("li", {
      class: i + 1 === now ? "ex-head" : i >= now ? "ex-unread" : "",
    }, m.symbols[c], h("small", {}, steps[i].answer))));
  }

  function grid(m, title, M) {
    const few = m.columns.length <= 4;
    const cell = (x, i, j) => h("td", {
      style: `background: ${tint(((few ? 0.5 : 1) * x) / (1 + Math.abs(x)))}`, title: `${m.rows[i]} ${m.columns[j]}: ${number(x)}`,
    }, few ? number(x) : "");
    const head = h("tr", {}, h("th", {}), ...m.columns.map((text) => h("th", { scope: "col" }, text)));
    const body = M.map((row, i) => h("tr", {}, h("th", { scope: "row" }, m.rows[i]),
      ...row.map((x, j) => cell(x, i, j))));
    return h("table", { class: few ? "" : "ex-wide" }, h("caption", {}, title), head, ...body);
  }

  function draw() {
    const m = current();
    const word = model.get("word").filter((c) => c < m.symbols.length);
    const steps = read(m, word);
    const now = Math.max(0, Math.min(word.length, model.get("step")));
    select.value = m.name;
    allow(back, now > 0);
    allow(on, now < word.length);
    allow(clear, word.length > 0);
    drawKeys(m, word);
    drawTape(m, word, steps, now);
    const { S } = begin(m);
    const blank = S.map((row) => row.map(() => 0));
    const last = now ? steps[now - 1] : { before: S, forgotten: blank, written: blank, S };
    grids.replaceChildren(...Object.entries(names).map(([part, title]) => grid(m, title, last[part])));
    grids.classList.toggle("ex-stacked", m.columns.length > 4);
    if (!now) return `${m.name}: nothing has been read yet.`;
    const changed = (M) => M.some((row) => row.some((x) => Math.abs(x) > 1e-9));
    const done = [changed(last.forgotten) && "forgets", changed(last.written) && "writes"].filter(Boolean);
    return `${m.name}: after ${plural(now, "symbol")}, ${m.symbols[word[now - 1]]} ` +
      `${done.join(" and ") || "changes nothing"}; it says “${last.answer}”.`;
  }

  return frame(context, "Fast weights", [
    h("div", { class: "ex-feed" }, h("label", {}, h("span", {}, "Model"), select), back, on, clear),
    keys, tape, grids,
    h("p", { class: "ex-note" }, "Orange is positive and blue negative; 1 has half the strength that a large number has. " +
      "Rows and columns that stay zero are left out."),
  ], draw);
}

export { begin, read, step };
export default { render };
