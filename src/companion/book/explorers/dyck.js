// A bracket machine to type at, and two members of the fooling set whose even halves change places.

const DEAD = "dead";

// The state before the first bracket of a word and after each.
function read(moves, word) {
  const trail = [""];
  for (const c of word) trail.push(moves[trail.at(-1)][c]);
  return trail;
}

// The first position, counted from 1, at which a word is lost; after its end if brackets stay open.
function breaks(moves, word) {
  const trail = read(moves, word);
  const lost = trail.indexOf(DEAD);
  if (lost >= 0) return lost;
  return trail.at(-1) === "" ? null : word.length + 1;
}

// Odd positions of a, even positions of b; positions count from 1.
function cross(a, b) {
  return Array.from(a, (c, i) => (i % 2 ? b[i] : c)).join("");
}

// Why a word is lost there.
function reason(moves, symbols, word) {
  const at = breaks(moves, word);
  if (at === null) return "";
  const stack = read(moves, word)[at - 1];
  const partner = (c) => symbols[symbols.indexOf(c) ^ 1];
  if (at > word.length) return `at its end ${stack} is still open`;
  const c = word[at - 1];
  if (symbols.indexOf(c) % 2 === 0) return `${c} would be the third one open`;
  if (stack === "") return `${c} closes, but nothing is open`;
  return `${c} closes, but ${partner(stack.at(-1))} is due`;
}

function render(context) {
  const { model } = context;
  const moves = model.get("moves");
  const places = model.get("places");
  const members = model.get("members");
  const symbols = model.get("symbols");
  const longest = model.get("longest");
  const set = (text) => {
    const word = Array.from(text).filter((c) => symbols.includes(c)).slice(0, longest).join("");
    put(model, "word", word);
    input.value = word;
  };

  const input = h("input", {
    type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    oninput: () => set(input.value),
  });
  const names = ["open round", "close round", "open square", "close square"];
  const keys = Array.from(symbols, (c, i) => button(
    c, () => set(model.get("word") + c), { "aria-label": names[i] }));
  const back = button("⌫", () => set(model.get("word").slice(0, -1)),
    { "aria-label": "delete the last bracket" });
  const clear = button("Clear", () => set(""));
  const tape = h("ol", { class: "ex-tape", "aria-label": "The word" });
  const stack = h("ol", { class: "ex-stack" });
  const verdict = h("p", { class: "ex-answer" });

  // The diagram: lines between stacks that differ by one bracket, and a name on each state.
  const at = (state) => [100 * places[state][0], 8 + 84 * (1 - places[state][1])];
  const line = (from, to) => `M${at(from).join(" ")}L${at(to).join(" ")}`;
  const nested = Object.keys(places).filter((s) => s !== "" && s !== DEAD);
  const svg = h("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" });
  const taken = h("path", { class: "ex-taken" });
  svg.append(...nested.map((s) => h("path", { d: line(s.slice(0, -1), s) })), taken);
  const spot = (x, y, name, text) =>
    h("span", { class: name, style: `left: ${x}%; top: ${y}%` }, text);
  const edges = nested.map((s) => {
    const [[x, y], [u, v]] = [at(s.slice(0, -1)), at(s)];
    const c = s.at(-1);
    return spot((x + u) / 2, (y + v) / 2, "ex-move", `${c} ${symbols[symbols.indexOf(c) ^ 1]}`);
  });
  const nodes = new Map(Object.keys(places).map((s) => [s, spot(...at(s), "ex-node", s || "ε")]));
  const diagram = h("div", { class: "ex-automaton", role: "img" }, svg, ...edges, ...nodes.values());

  const first = range("First member", 0, (n) => put(model, "first", n));
  const second = range("Second member", 0, (n) => put(model, "second", n));
  const crossed = h("div", { class: "ex-crossed" });
  const outcome = h("p", { class: "ex-answer", "aria-live": "polite" });

  function drawWord(word, trail, lost) {
    const cells = Math.max(8, Math.min(longest / 2, word.length));
    tape.style.cssText = `--cells: ${cells}; --half: ${Math.ceil(cells / 2)}`;
    tape.replaceChildren(...Array.from(word, (c, i) => h("li", {
      class: lost !== null && i >= lost ? "ex-unread" : i + 1 === lost ? "ex-wrong ex-break" : "",
    }, h("small", {}, i + 1), c)));
    const now = trail.at(-1);
    const open = now === DEAD ? [] : Array.from(now);
    stack.replaceChildren(...open.map((c) => h("li", {}, c)));
    const text = now === DEAD ? "none, the word is lost" : open.join(" ") || "empty";
    stack.setAttribute("aria-label", `Stack, lowest first: ${text}`);
    for (const [state, node] of nodes) {
      const kind = (state === "" ? " ex-final" : "") + (state === now ? " ex-lit" : "");
      node.setAttribute("class", `ex-node${kind}`);
    }
    taken.setAttribute("d", word && trail.at(-2) !== now ? line(trail.at(-2), now) : "");
    diagram.setAttribute("aria-label", `Automaton with eight states, now in ${now || "ε"}`);
  }

  function row(label, word, from) {
    const lost = breaks(moves, word);
    const list = h("ol", {
      class: "ex-tape", style: `--cells: ${word.length}; --half: ${word.length}`, "aria-label": label,
    }, ...Array.from(word, (c, i) => h("li", {
      class: `ex-from-${from[i % 2]}${i + 1 === lost ? " ex-break" : ""}`,
    }, h("small", {}, from[i % 2] === "a" ? "1st" : "2nd"), c)));
    const why = lost === null ? "a member ✓"
      : `${lost > word.length ? "lost" : `breaks at position ${lost}`}: ${reason(moves, symbols, word)} ✗`;
    return h("div", {}, h("h5", {}, label), list, h("p", {}, why));
  }

  function drawPair(i, j) {
    const [a, b] = [members[i], members[j]];
    crossed.replaceChildren(
      row("First member", a, "aa"), row("Second member", b, "bb"),
      row("Odd half of the first, even half of the second", cross(a, b), "ab"),
      row("Odd half of the second, even half of the first", cross(b, a), "ba"));
    const left = [cross(a, b), cross(b, a)].filter((word) => breaks(moves, word) !== null).length;
    outcome.textContent = i === j ? "The same member twice: nothing changes."
      : `${["None", "One", "Both"][left]} of the crossed words ` +
        `${left === 2 ? "leave" : "leaves"} the language.`;
  }

  function draw() {
    const word = model.get("word");
    const trail = read(moves, word);
    const lost = breaks(moves, word);
    if (input.value !== word) input.value = word;
    const [i, j] = [model.get("first"), model.get("second")];
    first.show(i, members.length - 1, members[i]);
    second.show(j, members.length - 1, members[j]);
    [back, clear].forEach((key) => allow(key, word !== ""));
    keys.forEach((key) => allow(key, word.length < longest));
    drawWord(word, trail, lost !== null && lost <= word.length ? lost : null);
    drawPair(i, j);
    verdict.textContent = lost === null ? "accepted ✓" : "not accepted ✗";
    const where = trail.at(-1) === DEAD ? `lost at position ${lost}` : `in state ${trail.at(-1) || "ε"}`;
    return `${plural(word.length, "bracket")}, ${where}: ` +
      (lost === null ? "accepted." : `not accepted, ${reason(moves, symbols, word)}.`);
  }

  return frame(context, "Bounded brackets and their fooling set", [
    h("div", { class: "ex-keys" }, h("label", {}, h("span", {}, "Type or click brackets"), input),
      ...keys, back, clear),
    tape,
    h("div", { class: "ex-columns" }, h("div", {}, diagram),
      h("div", {}, h("h4", {}, "Stack"), stack, verdict,
        h("p", { class: "ex-note" }, "Each line is two moves: the first bracket leads down, the " +
          "second back up. Every other bracket leads to the dead state."))),
    h("section", { class: "ex-swap" }, h("h4", {}, "The fooling set", h("small", {}, "even halves change places")),
      h("div", { class: "ex-controls" }, first.node, second.node), crossed, outcome),
  ], draw);
}

export { breaks, cross, read, reason };
export default { render };
