// Nearly orthogonal sign vectors. Everything here is integer arithmetic on bits made in Python.

// Row i of a block: k signs. A set bit, lowest first, is -1.
function signs(data, block, i, k) {
  const start = block.offset + (i * block.width) / 8;
  return Int8Array.from({ length: k }, (_, x) => ((data[start + (x >> 3)] >> (x & 7)) & 1 ? -1 : 1));
}

// T_i . T_j for all i, j < N, and the extremes over i < j with a pair of the largest magnitude.
function gram(data, block, N, k) {
  const rows = Array.from({ length: N }, (_, i) => signs(data, block, i, k));
  const G = rows.map(() => new Int16Array(N).fill(k)); // the diagonal is k
  let [highest, lowest, pair] = [-Infinity, Infinity, [0, 1]];
  for (let j = 1; j < N; j++) {
    for (let i = 0; i < j; i++) {
      let sum = 0;
      for (let x = 0; x < k; x++) sum += rows[i][x] * rows[j][x];
      G[i][j] = G[j][i] = sum;
      highest = Math.max(highest, sum);
      lowest = Math.min(lowest, sum);
      if (Math.abs(sum) > Math.abs(G[pair[0]][pair[1]])) pair = [i, j];
    }
  }
  return { rows, G, highest, lowest, pair, magnitude: Math.max(highest, -lowest) };
}

function bitLength(n) {
  return 32 - Math.clz32(n);
}

// The block that holds a choice, and the k nearest to the one wanted that it allows.
function settle(blocks, family, N, k, seed) {
  const mine = blocks.filter((b) => b.family === family && (b.seed === null || b.seed === seed));
  if (family === "binary") return { block: mine[0], k: bitLength(N - 1), ks: [bitLength(N - 1)] };
  const ks = mine.flatMap((b) => b.ks);
  const near = ks.reduce((best, x) => (Math.abs(x - k) < Math.abs(best - k) ? x : best));
  return { block: mine.find((b) => b.ks.includes(near)), k: near, ks };
}

const CELL = 10;
const WRAP = 32; // coordinates a line

// Two vectors, one above the other, line by line; a dot below each coordinate where they agree.
function pairPicture(u, v) {
  const marks = { plus: "", minus: "", agree: "" };
  const square = (x, y) => `M${x + 1} ${y + 1}h8v8h-8z`;
  for (let x = 0; x < u.length; x++) {
    const left = (x % WRAP) * CELL;
    const top = Math.floor(x / WRAP) * 3.4 * CELL;
    marks[u[x] > 0 ? "plus" : "minus"] += square(left, top);
    marks[v[x] > 0 ? "plus" : "minus"] += square(left, top + CELL);
    if (u[x] === v[x]) marks.agree += `M${left + 3} ${top + 2.3 * CELL}h4v4h-4z`;
  }
  const height = Math.ceil(u.length / WRAP) * 3.4 * CELL;
  const box = `0 0 ${Math.min(u.length, WRAP) * CELL} ${height}`;
  const paths = Object.entries(marks).map(([name, d]) => h("path", { class: `ex-${name}`, d }));
  const width = Math.min(u.length, WRAP) / WRAP * 100;
  return h("svg", { viewBox: box, style: `width: ${width}%`, "aria-hidden": "true" }, ...paths);
}

function bars(rows) {
  return rows.map(([name, value, text]) => {
    const width = `width: ${(100 * Math.min(1, value)).toFixed(1)}%`;
    return h("div", { class: "ex-bar" },
      h("span", {}, name), h("b", {}, text), h("i", {}, h("i", { style: width })));
  });
}

function render(context) {
  const { model } = context;
  const data = bytes(model.get("signs"));
  const blocks = model.get("blocks");
  const names = new Map(blocks.map((b) => [b.family, b.label]));
  let selected = null; // a pair the reader points at; otherwise the worst pair is shown
  let shown = null;

  const family = choice(model, "Family", "family", [...names]);
  const size = range("Vectors", 4, (N) => put(model, "N", N));
  const dimension = range("Dimension", 0, (index) => put(model, "k", shown.ks[index]));
  const draws = [...new Set(blocks.map((b) => b.seed).filter((s) => s !== null))];
  const seed = choice(model, "Draw", "seed", draws.map((s) => [s, `seed ${s}`]));
  size.input.max = 64;

  const canvas = h("canvas", { tabindex: 0, role: "application", "aria-roledescription": "matrix" });
  const ring = h("span", { class: "ex-ring", "aria-hidden": "true" });
  const reading = h("p", { class: "ex-reading", "aria-live": "polite" });
  const worst = button("Show the worst pair", () => point(null));
  const numbers = h("div", { class: "ex-bars" });
  const rows = h("div", { class: "ex-rows" });
  const legend = h("p", { class: "ex-legend" },
    h("i", { class: "ex-key-plus" }), "+1", h("i", { class: "ex-key-minus" }), "−1",
    h("i", { class: "ex-key-agree" }), "they agree");

  const point = (pair) => {
    selected = pair;
    drawPair();
  };
  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    const at = (a, start, length) =>
      Math.max(0, Math.min(shown.N - 1, Math.floor(((a - start) / length) * shown.N)));
    point([at(event.clientY, box.top, box.height), at(event.clientX, box.left, box.width)]);
  };
  canvas.addEventListener("pointermove", under);
  canvas.addEventListener("pointerdown", under);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === "Escape") point(null);
    if (!(event.key in step)) return;
    event.preventDefault();
    const from = selected ?? shown.pair;
    point(from.map((x, axis) => Math.max(0, Math.min(shown.N - 1, x + step[event.key][axis]))));
  });

  function drawPair() {
    const { rows: vectors, G, N, k } = shown;
    const [i, j] = selected ?? shown.pair;
    const product = G[i][j];
    const agree = (k + product) / 2;
    reading.replaceChildren(T(i), " · ", T(j), ` = ${agree} − ${k - agree} = ${String(product).replace("-", "−")}, ` +
      `and ${decimals(product / k)} when divided by k`);
    ring.style.cssText =
      `left: ${(100 * j) / N}%; top: ${(100 * i) / N}%; width: ${100 / N}%; height: ${100 / N}%`;
    rows.replaceChildren(
      h("p", {}, selected ? "The pair " : "The worst pair: ", T(i), " above, ", T(j), " below"),
      pairPicture(vectors[i], vectors[j]));
    allow(worst, selected !== null);
  }

  function drawGram() {
    const { G, N, k } = shown;
    const scale = Math.max(1, Math.ceil(384 / N));
    canvas.width = canvas.height = N * scale;
    const pen = canvas.getContext("2d");
    for (let i = 0; i < N; i++) {
      for (let j = 0; j < N; j++) {
        pen.fillStyle = tint(G[i][j] / k);
        pen.fillRect(j * scale, i * scale, scale, scale);
      }
    }
  }

  function draw() {
    const N = model.get("N");
    const chosen = settle(blocks, model.get("family"), N, model.get("k"), model.get("seed"));
    const { block, k, ks } = chosen;
    const before = shown;
    shown = { N, k, ks, ...gram(data, block, N, k) };
    if (before === null || before.N !== N) selected = null;
    family.select.value = block.family;
    seed.select.value = model.get("seed");
    seed.select.disabled = block.seed === null;
    size.show(N, 64, `N = ${N}`);
    dimension.show(ks.indexOf(k), ks.length - 1, `k = ${k}`, ks.length === 1);
    const coherence = shown.magnitude / k;
    const typical = (factor) => Math.sqrt((factor * Math.log(N)) / k);
    numbers.replaceChildren(...bars([
      ["coherence γ, measured", coherence, decimals(coherence)],
      ["√(2 ln N / k)", typical(2), decimals(typical(2))],
      ["√(4 ln N / k)", typical(4), decimals(typical(4))],
    ]), h("p", { class: "ex-note" },
      `Inner products lie between ${decimals(shown.lowest / k)} and ` +
      `${decimals(shown.highest / k)}. For γ = 1/4 the paper takes k = ${model.get("paper_k")[N]}.`));
    canvas.setAttribute("aria-label",
      `Inner products of ${N} vectors. Arrow keys move from pair to pair, Escape returns to the worst.`);
    drawGram();
    drawPair();
    return (
      `${block.label}: ${N} vectors in ${k} dimensions, coherence ${decimals(coherence)}, ` +
      `reached by vectors ${shown.pair[0]} and ${shown.pair[1]}.`
    );
  }

  return frame(context, "Nearly orthogonal vectors", [
    h("div", { class: "ex-controls" }, family.node, size.node, dimension.node, seed.node),
    h("div", { class: "ex-columns" },
      h("div", {}, h("div", { class: "ex-matrix" }, canvas, ring), reading),
      h("div", {}, numbers, rows, legend, worst)),
  ], draw);
}

export { gram, settle };
export default { render };
