// What each architecture needs for each task, for an N, p and |Σ| that the reader chooses.

const NAMES = ["recurrent, any depth", "one layer", "two layers"];

function render(context) {
  const { model } = context;
  const { tasks, N, p, q, signs, values } = model.get("data");
  const largest = Math.max(...tasks.map((_, t) => Math.max(...values[t].flat(3).filter((x) => x))));

  const length = range("Length", 0, (i) => put(model, "n", i));
  const number = choice(model, "Bits of a number", "p", p.map((x) => [x, `p = ${x}`]));
  const symbols = choice(model, "Alphabet", "q", q.map((x) => [x, `|Σ| = ${x}`]));

  const bars = tasks.map(() => NAMES.map(() => ({ text: h("b"), bar: h("i") })));
  const rows = tasks.map((task, t) => {
    const cells = bars[t].map(({ text, bar }, a) =>
      h("div", { class: `ex-need ex-need-${a}` }, h("small", {}, NAMES[a]), text, h("i", {}, bar)));
    return h("section", { class: "ex-task" }, h("h4", {}, task), h("div", {}, ...cells));
  });

  function draw() {
    const n = model.get("n"), i = p.indexOf(model.get("p")), j = q.indexOf(model.get("q"));
    length.show(n, N.length - 1, `N = ${N[n].toLocaleString("en")}`);
    number.select.value = model.get("p");
    symbols.select.value = model.get("q");
    tasks.forEach((_, t) => NAMES.forEach((_, a) => {
      const bits = values[t][a][i][j][n];
      const { text, bar } = bars[t][a];
      text.textContent = bits === null ? "open" : `${signs[t][a]} ${plural(bits, "bit")}`;
      bar.style.width = bits === null ? "0" : `${(100 * Math.log2(1 + bits)) / Math.log2(1 + largest)}%`;
    }));
    const [state, width] = [0, 1].map((a) => plural(values[0][a][i][j][n], "bit"));
    return `Looking up one of ${N[n].toLocaleString("en")} symbols takes a recurrent model ${state} ` +
      `of state, and one layer of attention vectors of ${width}. Bars are logarithmic.`;
  }

  return frame(context, "Bits that each architecture needs for each task", [
    h("div", { class: "ex-controls" }, length.node, number.node, symbols.node),
    ...rows,
  ], draw);
}

export default { render };
