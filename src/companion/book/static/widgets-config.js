// Runs between require.js and the widget manager: everything they ask for is in this site.
(function () {
  const script = document.currentScript;
  const base = script.src.replace(/[^/]*$/, "");
  requirejs.config({
    paths: {
      anywidget: base + "anywidget/index",
      "@jupyter-widgets/html-manager": base + "html-manager",
    },
  });
  // A widget module that is not here must be a local 404, never a request to another host.
  script.setAttribute("data-jupyter-widgets-cdn", base + "absent/");

  // ipywidgets typesets through the queue of MathJax 2; the book has MathJax 3.
  window.addEventListener("load", function () {
    const mathjax = window.MathJax;
    if (!mathjax || mathjax.Hub || !mathjax.startup) return;
    mathjax.Hub = {
      Queue(...calls) {
        for (const [action, , element] of calls) {
          if (action !== "Typeset") continue;
          mathjax.startup.promise = mathjax.startup.promise.then(() =>
            mathjax.typesetPromise([element])
          );
        }
      },
    };
  });
})();
