"use strict";
(function () {
  const all = function (selector, within) { return Array.from((within || document).querySelectorAll(selector)); };

  // -- charts: drawn in the page's own colours, so that they follow a dark page and paper ----------

  function config(width, ink, line) {
    return {
      background: "transparent",
      font: "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
      view: { stroke: line },
      axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line,
        labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelOverlap: true },
      axisY: { labelLimit: width < 480 ? 150 : Math.max(240, width / 3.5) },
      axisX: { tickCount: Math.max(3, Math.min(8, Math.floor(width / 90))) },
      legend: { labelColor: ink, titleColor: ink, labelFontSize: 12, labelLimit: 0 },
      title: { color: ink, anchor: "start", fontSize: 14 },
    };
  }

  function text(held) {  // of a script element that holds data; what is large is stored compressed
    if (held.type !== "application/gzip") { return Promise.resolve(held.textContent); }
    const bytes = Uint8Array.from(atob(held.textContent), function (each) { return each.charCodeAt(0); });
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  let hidden = new Set();  // names of environments that are filtered out

  function encodings(spec, act) {
    if (spec.encoding) { act(spec.encoding); }
    (spec.layer || spec.vconcat || []).forEach(function (part) { encodings(part, act); });
  }

  function filter(spec) {  // out of a chart, too; a waterfall stays whole, as each of its steps begins where another ends
    const tables = spec.datasets || {};
    const steps = Object.values(tables).some(function (rows) { return rows.some(function (row) { return row.against; }); });
    if (!hidden.size || steps) { return spec; }
    const stays = function (name) { return !hidden.has(name); };
    Object.keys(tables).forEach(function (name) {
      tables[name] = tables[name].filter(function (row) { return stays(row.environment); });
    });
    let share = 1;
    encodings(spec, function (encoding) {
      const y = encoding.y, offset = encoding.yOffset;
      if (offset && offset.field === "environment" && offset.sort) { offset.sort = offset.sort.filter(stays); }
      if (!y || y.field !== "environment" || !y.scale || !y.scale.domain) { return; }
      const names = y.scale.domain.filter(stays);
      share = names.length / y.scale.domain.length;
      y.scale.domain = names;
      if (Array.isArray(y.sort)) { y.sort = y.sort.filter(stays); }
    });
    if (share > 0 && typeof spec.height === "number") { spec.height *= share; }
    return spec;
  }

  function definition(place) {
    return text(document.getElementById(place.dataset.spec)).then(function (json) { return filter(JSON.parse(json)); });
  }

  function draw(place) {
    if (place.dataset.drawn) { return Promise.resolve(); }
    place.dataset.drawn = "1";
    const live = document.createElement("div");  // drawn aside: what is seen stays until the chart is ready
    const width = place.clientWidth;
    live.style.cssText = "position: absolute; visibility: hidden; left: 0; top: 0; width: " + width + "px";
    live.setAttribute("aria-hidden", "true");  // its place has a name, and its figures are in a table
    place.append(live);
    return definition(place).then(function (spec) {
      (spec.vconcat || []).forEach(function (panel) { panel.width = Math.max(160, width - 70); });
      return window.vegaEmbed(live, spec, {
        renderer: "svg", actions: false, config: config(width, "currentColor", "#88888859"), tooltip: { theme: "page" },
      });
    }).then(function () {
      place.replaceChildren(live);
      live.style.cssText = "";
      place.style.minHeight = "";
    }).catch(function (error) {
      live.remove();
      if (!place.children.length) { place.textContent = "This chart could not be drawn: " + error.message; }
    });
  }

  const places = all(".chart");
  const seen = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) { if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); } });
  }, { rootMargin: "800px" });
  places.forEach(function (place) { seen.observe(place); });
  all("details.more").forEach(function (fold) {
    fold.addEventListener("toggle", function () { if (fold.open) { all(".chart", fold).forEach(draw); } });
  });
  const unfolded = function (place) { return place.clientWidth > 0 && !place.dataset.drawn; };
  addEventListener("beforeprint", function () { places.filter(unfolded).forEach(draw); });  // what is folded stays folded
  const idle = window.requestIdleCallback || function (act) { setTimeout(act, 200); };
  (function rest() {  // the others too, one by one, so that all are there when the page is printed
    const next = places.find(unfolded);
    if (next) { idle(function () { draw(next).then(rest); }); }
  })();

  // -- each chart and each table as a file ---------------------------------------------------------

  function save(words, ending, blob) {
    const name = (document.title.replace(/ - Weighbridge$/, "") + " " + words).toLowerCase().replace(/[^\p{L}\p{N}.]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 120);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = (name || "weighbridge") + "." + ending;
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 60000);
  }

  function buttons(after, about, acts) {
    const row = document.createElement("p");
    row.className = "save";
    row.append("save as ");
    Object.keys(acts).forEach(function (kind) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.setAttribute("aria-label", "save as " + kind + ": " + about);
      button.addEventListener("click", function () { acts[kind](); });
      row.append(button);
    });
    after.after(row);
  }

  function picture(place, act) {  // for paper: on white, with a title and a legend, whatever the page looks like
    const about = place.getAttribute("aria-label"), aside = document.createElement("div");
    aside.style.cssText = "position: absolute; visibility: hidden; left: 0; top: 0; width: 800px; max-width: 100%";
    return definition(place).then(function (spec) {
      let named = false;
      encodings(spec, function (each) { named = named || Boolean(each.y && each.y.field === "environment"); });
      encodings(spec, function (each) {
        delete each.href;
        [each.color, each.shape].forEach(function (channel) {
          if (channel && channel.legend === null && !named) { channel.legend = { title: null, orient: "bottom", columns: 4 }; }
        });
      });
      (spec.vconcat || []).forEach(function (panel) { panel.width = 700; });
      if (spec.width === "container") { spec.width = 700; }
      Object.assign(spec, { title: about, padding: 12, background: "#ffffff" });
      document.body.append(aside);
      return window.vegaEmbed(aside, spec, { renderer: "svg", actions: false, config: config(800, "#1b1f27", "#d9dde4") });
    }).then(function (result) {
      return act(result.view).then(function () { result.finalize(); });
    }).finally(function () { aside.remove(); });
  }

  places.forEach(function (place) {
    const about = place.getAttribute("aria-label");
    buttons(place, about, {
      SVG: function () {
        return picture(place, function (view) {
          return view.toSVG().then(function (svg) { save(about, "svg", new Blob([svg], { type: "image/svg+xml" })); });
        });
      },
      PNG: function () {
        return picture(place, function (view) {
          return view.toCanvas(2).then(function (canvas) {
            return new Promise(function (done) {
              canvas.toBlob(function (blob) { save(about, "png", blob); done(); }, "image/png");
            });
          });
        });
      },
    });
  });

  function words(cell) {
    const copy = cell.cloneNode(true);
    all(".permalink", copy).forEach(function (link) { link.remove(); });
    all("br, li", copy).forEach(function (each) { each.before(" "); });
    return copy.textContent.replace(/\s+/g, " ").trim();
  }

  function grid(table) {  // what is seen of a table: its head as one row (of none an empty one), then its rows
    const wide = Math.max.apply(null, Array.from(table.rows, function (row) {
      return Array.from(row.cells).reduce(function (sum, cell) { return sum + cell.colSpan; }, 0);
    }));
    const head = [], body = [], over = [];
    let group = null;
    Array.from(table.rows).filter(function (row) { return !row.closest(".off"); }).forEach(function (row) {
      if (row.cells.length === 1 && row.cells[0].colSpan === wide && wide > 1) {
        if (row.cells[0].tagName === "TH") { group = words(row.cells[0]); }
        return;  // of a row that is about all columns: the heading of those below; remarks are left out
      }
      const cells = Array.from(row.cells).filter(function (cell) { return !cell.classList.contains("off"); });
      const texts = [];
      const next = function () {
        while (over[texts.length] && over[texts.length].rows > 0) {
          over[texts.length].rows -= 1;
          texts.push(over[texts.length].text);
        }
      };
      cells.forEach(function (cell) {
        next();
        const shown = cell.classList.contains("blank") ? "" : words(cell);
        for (let column = 0; column < cell.colSpan; column += 1) {
          over[texts.length] = { rows: cell.rowSpan - 1, text: shown };
          texts.push(shown);
        }
      });
      next();
      if (row.parentElement.tagName === "THEAD") {
        texts.forEach(function (each, column) { head[column] = ((head[column] || "") + " " + each).trim(); });
      } else {
        body.push(group === null ? texts : [group].concat(texts));
      }
    });
    return { head: group === null || !head.length ? head : [""].concat(head), body: body };
  }

  const FORMULA = /^\s*[=+@-]/, FIGURE = /^-[\d\s.,%[\]±∞µ\p{L}\/-]*$/u;

  function csv(table) {
    const shown = grid(table);
    return (shown.head.length ? [shown.head] : []).concat(shown.body).map(function (row) {
      return row.map(function (cell) {  // no spreadsheet is to take a text for a formula
        const safe = FORMULA.test(cell) && !FIGURE.test(cell) ? "'" + cell : cell;
        return /[",]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
      }).join(",");
    }).join("\n") + "\n";
  }

  function markdown(table) {
    const shown = grid(table);
    const escaped = function (cell) {  // shown as it is, and followed nowhere: as weighbridge.report.markdown does
      return cell.replace(/[\\`*_{}[\]()<>#+!|~$@&]/g, "\\$&").replace(/([#!@$&~^])(?=\S)/g, "$1<!-- -->")
        .replace(/:(?=[\w+-]+:|\/\/)/g, ":<!-- -->").replace(/\bwww(?=\.)|\bGH(?=-\d)/gi, "$&<!-- -->");
    };
    const line = function (row) { return "| " + row.map(escaped).join(" | ") + " |"; };
    const head = shown.head.length ? shown.head : (shown.body[0] || []).map(function () { return ""; });
    return [line(head), "|" + " --- |".repeat(head.length)].concat(shown.body.map(line)).join("\n") + "\n";
  }

  all("table").forEach(function (table) {
    let about = table.getAttribute("aria-label") || "";
    for (let at = table; at && !about; at = at.parentElement) {
      const heading = at !== table && all("h1, h2, h3, h4, summary", at).filter(function (each) {
        return each.compareDocumentPosition(table) & Node.DOCUMENT_POSITION_FOLLOWING;
      }).pop();
      about = heading ? words(heading) : "";
    }
    buttons(table.closest(".scroll") || table, "table of " + about, {
      CSV: function () { save(about, "csv", new Blob([csv(table)], { type: "text/csv" })); },
      Markdown: function () { save(about, "md", new Blob([markdown(table)], { type: "text/markdown" })); },
    });
  });

  // -- what is wider or higher than its place can be moved by the keyboard, too --------------------

  function reach() {
    all(".scroll, pre").forEach(function (each) {
      const moves = each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1;
      if (moves && each.clientWidth) { each.tabIndex = 0; } else { each.removeAttribute("tabindex"); }
    });
  }
  addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);
  reach();

  // -- find: what is shown is in the address, behind the place: #w0m0?verdict=different ------------

  const form = document.getElementById("find");
  const address = function () { return location.hash.slice(1).split("?"); };
  const FACETS = ["environment", "workload", "verdict"], PROVEN = ["different", "equivalent", "broke"];
  const OPEN_MATCHES = 40;  // a filter that leaves at most this many comparisons opens their folds
  const comparisons = all("[data-verdict]"), keys = new Map(), order = new Map();
  let opened = [];  // folds that a filter opened; they close again with it
  const chosen = function (facet) {
    return all('input[name="' + facet + '"]', form).filter(function (each) { return each.checked; });
  };
  const values = function (inputs) { return inputs.map(function (each) { return each.value; }); };

  function key(item) {  // what a search looks at: a comparison with the headings above it
    if (!keys.has(item)) {
      const above = [item];
      const row = item.tagName === "TD" && item.parentElement.querySelector("th");
      const metric = item.closest("article, tbody[id]"), section = item.closest("section");
      const parts = [row, metric && metric.querySelector("h3, th"), metric && metric.querySelector(".remarks"),
        section && section.querySelector("h2")];
      keys.set(item, above.concat(parts.filter(Boolean)).map(function (each) { return each.textContent; })
        .concat(item.dataset.name || "", item.dataset.verdict).join(" ").toLowerCase());
    }
    return keys.get(item);
  }

  function show() {
    const picked = {};
    FACETS.forEach(function (facet) {
      const inputs = chosen(facet), count = all('input[name="' + facet + '"]', form).length;
      picked[facet] = values(inputs);
      all('[data-chosen="' + facet + '"]', form).forEach(function (each) {
        each.textContent = !inputs.length ? "all" : inputs.length > 1 ? inputs.length + " of " + count
          : inputs[0].nextElementSibling.textContent;
      });
    });
    const search = form.elements.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const proven = form.elements.proven.checked;
    const misses = function (facet, value) { return picked[facet].length > 0 && !picked[facet].includes(value); };
    const lacks = function (content) { return !search.every(function (word) { return content.includes(word); }); };

    all(".off, .blank").forEach(function (each) { each.classList.remove("off", "blank"); });
    all("[data-environment], [data-workload]").forEach(function (each) {
      const own = each.dataset;
      if ((own.environment && misses("environment", own.environment)) || (own.workload && misses("workload", own.workload))) {
        each.classList.add("off");
      }
    });
    comparisons.forEach(function (item) {
      const verdict = item.dataset.verdict;
      if (misses("verdict", verdict) || (proven && !PROVEN.includes(verdict)) || lacks(key(item))) {
        item.classList.add(item.tagName === "TD" ? "blank" : "off");
      }
    });
    const shows = function (item) { return !item.classList.contains("blank") && !item.closest(".off") && item.dataset.verdict; };
    const others = proven || FACETS.some(function (facet) { return picked[facet].length; });
    const filters = search.length || others;
    if (filters) {
      all("#matrix, #matrix tbody tr, article, .resources tbody, details.more, main section").reverse().forEach(function (each) {
        const own = all("[data-verdict]", each);
        if (own.length ? !own.some(shows) : search.length && each.matches("section:not(#trials, #machine)")
          && lacks(each.textContent.toLowerCase())) { each.classList.add("off"); }
      });
    }
    if (search.length) {
      const parts = "details.group, #failed li, #broke li, #machine tr, #machine li";
      all(parts).forEach(function (each) {
        if (lacks((each.querySelector("summary") || each).textContent.toLowerCase())) { each.classList.add("off"); }
      });
      all("#trials, #trials > .more, #failed, #broke, #machine, #machine div, #machine details").forEach(function (each) {
        if (all(parts, each).every(function (part) { return part.closest(".off"); })) { each.classList.add("off"); }
      });
    }
    const rows = comparisons.filter(function (item) { return item.tagName === "TR" && item.dataset.verdict !== "aa"; });
    const left = rows.filter(shows);
    opened.forEach(function (fold) { fold.open = false; });
    opened = filters && left.length <= OPEN_MATCHES ? left.flatMap(unfold) : [];
    if (search.length) {
      all("#trials > .more:not(.off, [open])").forEach(function (fold) { fold.open = true; opened.push(fold); });
    }
    const nothing = search.length && !others && !all("main section:not(.off)").length;
    form.querySelector("output").textContent = nothing ? "Nothing matches '" + form.elements.search.value.trim() + "'."
      : left.length + " of " + rows.length + " comparisons";

    const before = Array.from(hidden).join();
    hidden = new Set(all('input[name="environment"]', form).filter(function (each) {
      return misses("environment", each.value);
    }).map(function (each) { return each.nextElementSibling.textContent; }));
    all(".legend > span").forEach(function (each) { each.classList.toggle("off", hidden.has(each.textContent)); });
    if (before !== Array.from(hidden).join()) {
      places.forEach(function (place) { if (place.dataset.drawn) { delete place.dataset.drawn; draw(place); } });
    }
    sort(form.elements.order.value === "cost");
  }

  function sort(by) {
    const linked = new Map(all("#matrix tbody tr").map(function (row) {
      const place = document.getElementById(row.querySelector("a").getAttribute("href").slice(1));
      return [place && place.closest("section"), cost(row)];
    }));
    function cost(each) {
      if (each.tagName === "SECTION") { return linked.has(each) ? linked.get(each) : -Infinity; }
      return each.dataset.verdict === "aa" || !each.dataset.cost ? -Infinity : Number(each.dataset.cost);
    }
    const groups = new Map();
    order.forEach(function (at, each) {
      groups.set(each.parentElement, (groups.get(each.parentElement) || []).concat([each]));
    });
    groups.forEach(function (each, parent) {
      const last = each.reduce(function (one, other) {
        return one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING ? other : one;
      }).nextSibling;
      each.sort(function (one, other) {
        const apart = by ? cost(other) - cost(one) : 0;
        return apart || order.get(one) - order.get(other);  // none of both has a cost: NaN, and so in the study's order
      }).forEach(function (one) { parent.insertBefore(one, last); });
    });
  }

  function state() {
    const given = new URLSearchParams();
    FACETS.forEach(function (facet) { values(chosen(facet)).forEach(function (each) { given.append(facet, each); }); });
    if (form.elements.search.value.trim()) { given.set("search", form.elements.search.value.trim()); }
    if (form.elements.proven.checked) { given.set("proven", "only"); }
    if (form.elements.order.value) { given.set("order", form.elements.order.value); }
    return given.toString();
  }

  function write() {
    const given = state();
    history.replaceState(history.state, "", "#" + address()[0] + (given ? "?" + given : ""));
  }

  function refresh() {
    show();
    write();
  }

  function read() {
    const given = new URLSearchParams(address().slice(1).join("?"));
    all('input[type="checkbox"]', form).forEach(function (each) { each.checked = given.getAll(each.name).includes(each.value); });
    form.elements.search.value = given.get("search") || "";
    form.elements.order.value = given.get("order") === "cost" ? "cost" : "";
    show();
  }

  if (form) {
    all("tr[data-cost], #workloads > section").forEach(function (each, at) { order.set(each, at); });
    form.hidden = false;
    form.addEventListener("input", refresh);
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.addEventListener("reset", function () { setTimeout(refresh); });
    const picks = all("details", form);
    document.addEventListener("click", function (event) {
      picks.forEach(function (each) { if (!each.contains(event.target)) { each.open = false; } });
    });
    form.addEventListener("keydown", function (event) {
      const open = event.key === "Escape" && picks.find(function (each) { return each.open; });
      if (open) { open.open = false; open.querySelector("summary").focus(); }
    });
  }

  // -- links: what they lead to is unpacked, unfolded and shown ------------------------------------

  const groups = all("details.group");

  function unpack(group) {  // the trials of a large page are stored compressed until they are looked at
    const packed = group.querySelector("script.packed");
    if (packed) {
      packed.remove();
      group.unpacked = text(packed).then(function (html) {
        group.insertAdjacentHTML("beforeend", html);
      });
    }
    return group.unpacked || Promise.resolve();
  }

  groups.forEach(function (group) {
    group.addEventListener("toggle", function () { if (group.open) { unpack(group); } });
  });

  function unfold(target) {  // returns the folds that it opened
    const folds = [];
    for (let at = target; at; at = at.parentElement) {
      if (at.tagName === "DETAILS" && !at.open) {
        at.open = true;
        folds.push(at);
      }
    }
    return folds;
  }

  function open() {
    const name = decodeURIComponent(address()[0]);
    const trial = /^t\d+$/.test(name) ? " " + name.slice(1) + " " : "none";
    const group = groups.find(function (each) { return (" " + (each.dataset.trials || "") + " ").includes(trial); });
    (group ? unpack(group) : Promise.resolve()).then(function () {
      const target = name && document.getElementById(name);
      if (!target) { return; }
      if (form && target.closest(".off")) {
        form.reset();
        refresh();  // now: the reset's own handler would move the target after the page has scrolled to it
      }
      all(".target").forEach(function (each) { each.classList.remove("target"); });
      target.classList.add("target");
      unfold(target);
      target.scrollIntoView();
    });
  }

  addEventListener("hashchange", function () {
    if (form && address().length > 1) { read(); } else if (form) { write(); }
    open();
  });
  if (form && address().length > 1) { read(); } else if (form) { show(); }
  if (location.hash) { open(); }
})();
