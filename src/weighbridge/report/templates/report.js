"use strict";
(function () {
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function config(width) {
    const ink = dark.matches ? "#e6e9ef" : "#1b1f27";
    const line = dark.matches ? "#343a45" : "#d9dde4";
    const font = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
    return {
      background: "transparent",
      font: font,
      view: { stroke: line },
      axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line,
        labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelOverlap: true },
      axisY: { labelLimit: width < 480 ? 150 : Math.max(240, width / 3.5) },
      axisX: { tickCount: Math.max(3, Math.min(8, Math.floor(width / 90))) },
    };
  }

  function text(held) {  // of a script element that holds data; what is large is stored compressed
    if (held.type !== "application/gzip") { return Promise.resolve(held.textContent); }
    const bytes = Uint8Array.from(atob(held.textContent), function (each) { return each.charCodeAt(0); });
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  function draw(place) {
    if (place.dataset.drawn) { return Promise.resolve(); }
    place.dataset.drawn = "1";
    const live = document.createElement("div");  // drawn aside: what is seen stays until the chart is ready
    live.style.cssText = "position: absolute; visibility: hidden; left: 0; top: 0; width: " + place.clientWidth + "px";
    place.append(live);
    return text(document.getElementById(place.dataset.spec)).then(function (definition) {
      const spec = JSON.parse(definition);
      (spec.vconcat || []).forEach(function (panel) { panel.width = Math.max(160, place.clientWidth - 70); });
      return window.vegaEmbed(live, spec, {
        renderer: "svg", config: config(place.clientWidth), tooltip: { theme: dark.matches ? "dark" : "light" },
        actions: { export: true, source: false, compiled: false, editor: false },
        downloadFileName: "weighbridge-" + place.dataset.spec,
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

  const places = Array.from(document.querySelectorAll(".chart"));
  const seen = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) { if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); } });
  }, { rootMargin: "800px" });
  places.forEach(function (place) { seen.observe(place); });
  document.querySelectorAll("details.more").forEach(function (fold) {
    fold.addEventListener("toggle", function () { if (fold.open) { fold.querySelectorAll(".chart").forEach(draw); } });
  });
  addEventListener("beforeprint", function () {
    places.filter(function (place) { return place.clientWidth > 0; }).forEach(draw);  // what is folded stays folded
  });
  dark.addEventListener("change", function () {
    places.forEach(function (place) { if (place.dataset.drawn) { delete place.dataset.drawn; draw(place); } });
  });

  const groups = Array.from(document.querySelectorAll("details.group"));

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

  function open() {
    const name = decodeURIComponent(location.hash.slice(1));
    const trial = /^t\d+$/.test(name) ? " " + name.slice(1) + " " : "none";
    const group = groups.find(function (each) { return (" " + (each.dataset.trials || "") + " ").includes(trial); });
    (group ? unpack(group) : Promise.resolve()).then(function () { reveal(document.getElementById(name)); });
  }

  function reveal(target) {
    const first = target;
    for (; target; target = target.parentElement) {
      if (target.tagName === "DETAILS") { target.open = true; }
    }
    if (first) { first.scrollIntoView(); }
  }
  addEventListener("hashchange", open);
  if (location.hash) { open(); }
})();
