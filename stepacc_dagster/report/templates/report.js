"use strict";
(() => {
  const views = [...document.querySelectorAll("[data-view]")];
  const chosen = document.getElementById("chosen-view");
  const sought = document.getElementById("sought-text");
  const said = document.getElementById("found");

  function show() {
    const words = sought.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const view of views) {
      view.hidden = chosen.value !== "" && view.id !== chosen.value;
      for (const row of view.querySelectorAll("[data-text]")) {
        const text = row.dataset.text.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        if (!view.hidden && !row.hidden) found += 1;
      }
    }
    said.textContent = words.length ? `${found} tasks and worst scores match.` : "";
  }

  for (const control of [chosen, sought]) control.addEventListener("input", show);
  document.getElementById("filters").hidden = false;
  show();
})();
