(function () {
  "use strict";
  const form = document.getElementById("find"), count = form.querySelector("output");
  const rows = Array.from(document.querySelectorAll("tr.cost"), function (row) {
    const run = row.parentElement, study = run.closest(".study"), machine = run.closest(".machine");
    const above = [run.rows[0], study.querySelector("h3"), study.querySelector("p"), machine.querySelector("h2")];
    return {
      row: row,
      text: above.concat(row).map(function (each) { return each.textContent; }).join(" ").toLowerCase(),
      machine: machine.dataset.machine, study: study.dataset.study,
      environment: row.dataset.environment, verdict: row.dataset.verdict,
    };
  });
  const groups = Array.from(document.querySelectorAll(".machine, .study, .study tbody")).reverse();
  const fields = Array.from(form.elements).filter(function (each) { return each.name; });

  function show() {
    const words = form.elements.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = fields.filter(function (each) { return each.name !== "search" && each.value; });
    let shown = 0;
    rows.forEach(function (each) {
      const fits = chosen.every(function (field) { return each[field.name] === field.value; })
        && words.every(function (word) { return each.text.includes(word); });
      each.row.classList.toggle("off", !fits);
      shown += fits ? 1 : 0;
    });
    groups.forEach(function (group) {  // the inner ones first
      group.classList.toggle("off", !group.querySelector("tr.cost:not(.off)"));
    });
    count.textContent = shown + " of " + rows.length + " costs";
  }

  function write() {  // the address has what is chosen, so that a link shows the same
    const chosen = fields.filter(function (each) { return each.value; });
    const address = new URLSearchParams(chosen.map(function (each) { return [each.name, each.value]; }));
    history.replaceState(null, "", "#" + address);
    show();
  }

  function read() {
    const address = new URLSearchParams(location.hash.slice(1));
    fields.forEach(function (each) { each.value = address.get(each.name) || ""; });
    show();
  }

  form.hidden = false;
  form.addEventListener("input", write);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("reset", function () { setTimeout(write); });
  addEventListener("hashchange", read);
  read();
})();
