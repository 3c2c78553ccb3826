"use strict";
/* The nodes as bars. Only the rows in sight exist as elements, so five thousand nodes scroll as a dozen do. */

const SPARE_ROWS = 6; /* kept ready above and below the window */
const ROWS_UNFRAMED = 30; /* up to here the list simply stands on the page */

function makeBars(model, state, tooltip, open) {
  const scroller = byId("scroller");
  const rows = byId("rows");
  const live = new Map();
  const names = shortNames(model.nodes.map((node) => node.name));
  const cost = alike(model.nodes.map((node) => node.price));
  let shown = [];
  let height = 56;
  let cursor = null;

  /* Everything anew, after a change of filter, colour, measure or selection. */
  function draw(nodes) {
    const focused = rows.contains(document.activeElement) ? document.activeElement.closest(".row").node : null;
    shown = nodes;
    byId("cluster").dataset.view = state.view;
    scroller.classList.toggle("framed", shown.length > ROWS_UNFRAMED);
    for (const row of live.values()) row.remove();
    live.clear();
    drop();
    resize();
    if (focused && shown.includes(focused)) focus(shown.indexOf(focused));
  }

  function resize() {
    height = parseFloat(getComputedStyle(rows).getPropertyValue("--row")) || 56;
    rows.style.height = shown.length * height + "px";
    for (const [index, row] of live) row.style.top = index * height + "px";
    fill();
  }

  function fill() {
    const first = Math.max(0, Math.floor(scroller.scrollTop / height) - SPARE_ROWS);
    const last = Math.min(shown.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / height) + SPARE_ROWS);
    for (const [index, row] of live) {
      if ((index < first || index >= last) && !row.contains(document.activeElement)) {
        row.remove();
        live.delete(index);
      }
    }
    for (let index = first; index < last; index++) if (!live.has(index)) insert(index);
  }

  /* In order of the list, because that is the order in which Tab walks. */
  function insert(index) {
    const row = makeRow(shown[index], index);
    const later = [...live.keys()].filter((other) => other > index);
    rows.insertBefore(row, later.length ? live.get(Math.min(...later)) : null);
    live.set(index, row);
  }

  function makeRow(node, index) {
    const { kind, text } = status(node);
    const role = state.touched ? state.touched.roles.get(node.index) : null;
    const row = element(
      "div.row." + kind,
      { role: "listitem", "aria-setsize": shown.length, "aria-posinset": index + 1 },
      element(
        "div.who",
        null,
        element("button.name", { type: "button", title: node.name, "aria-haspopup": "dialog" }, element("bdi", null, names.get(node.name))),
        element("span.badge." + kind, null, role || text),
        element("span.facts-line", null, facts(node))
      ),
      element("div.lanes", null, lane(node, "before"), lane(node, "after"))
    );
    row.node = node;
    row.style.top = index * height + "px";
    row.classList.toggle("dim", Boolean(state.touched) && !role);
    row.classList.toggle("lit", Boolean(role));
    return row;
  }

  function facts(node) {
    const parts = [cost(node.price), node.type || "?", node.capacity, node.pool || "no pool"];
    return parts.filter(Boolean).join(" · ");
  }

  function lane(node, when) {
    const pods = node[when];
    const made = element("div.lane." + when);
    const track = element("div.track");
    if (pods === null) {
      track.classList.add("ghost");
      track.append(when === "before" ? "not yet" : "gone");
      made.append(track);
      return made;
    }
    const used = pods.reduce((sum, pod) => sum + pod[state.measure], 0);
    const size = node[state.measure];
    for (const pod of pods) track.append(slice(pod, size || used));
    const words = `${plural(pods.length, "pod")}, ${percent(used / size)} of ${state.measure === "cpu" ? "CPU" : "memory"} requested`;
    track.setAttribute("role", "img");
    track.setAttribute("aria-label", `${when}: ${words}`);
    made.append(track, element("span.ratio", null, percent(used / size)));
    return made;
  }

  function slice(pod, whole) {
    const group = pod[state.colour];
    const made = element("i.slice.c" + (model.colours[state.colour].get(group) ?? COLOURS));
    made.style.width = (100 * pod[state.measure]) / (whole || 1) + "%";
    made.pod = pod;
    if (pod.daemon) made.classList.add("daemon");
    const moving = state.touched && state.touched.pods.has(pod.name);
    if (moving) made.classList.add("moving");
    if ((state.group !== null && state.group !== group) || (state.touched && !moving)) made.classList.add("off");
    return made;
  }

  /* All of them: before the page is printed. */
  function fillAll() {
    for (const row of live.values()) row.remove();
    live.clear();
    shown.forEach((node, index) => live.set(index, rows.appendChild(makeRow(node, index))));
  }

  function focus(index) {
    if (index < 0 || index >= shown.length) return;
    const top = index * height;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + height > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + height - scroller.clientHeight;
    fill();
    if (!live.has(index)) insert(index);
    live.get(index).querySelector(".name").focus();
  }

  /* The slice that Left and Right have reached. */
  function point(row, way) {
    const slices = [...row.querySelectorAll(".slice")].filter((made) => made.offsetWidth > 0);
    if (!slices.length) return;
    const from = slices.indexOf(cursor);
    const to = from < 0 ? (way > 0 ? 0 : slices.length - 1) : (from + way + slices.length) % slices.length;
    drop();
    cursor = slices[to];
    cursor.classList.add("cursor");
    tooltip.show(row.node, cursor.pod, cursor);
  }

  function drop() {
    if (cursor) cursor.classList.remove("cursor");
    cursor = null;
    tooltip.hide();
  }

  rows.addEventListener("keydown", (event) => {
    const row = event.target.closest(".row");
    const index = shown.indexOf(row.node);
    const act = {
      ArrowDown: () => focus(index + 1),
      ArrowUp: () => focus(index - 1),
      Home: () => focus(0),
      End: () => focus(shown.length - 1),
      ArrowRight: () => point(row, 1),
      ArrowLeft: () => point(row, -1),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  rows.addEventListener("focusout", drop);
  rows.addEventListener("pointerover", (event) => {
    const made = event.target.closest(".slice");
    if (made) tooltip.show(made.closest(".row").node, made.pod, made);
    else tooltip.hide();
  });
  rows.addEventListener("pointerleave", tooltip.hide);
  rows.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row) open(row.node);
  });
  scroller.addEventListener("scroll", fill, { passive: true });
  window.addEventListener("resize", resize);
  window.addEventListener("beforeprint", fillAll);
  return { draw, top: () => (scroller.scrollTop = 0) };
}
