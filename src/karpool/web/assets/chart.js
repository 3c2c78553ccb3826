/* Lines over numbers or time, drawn as SVG; a table beside them, or the label, says the same to those who do not see. */

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 62;
const RIGHT = 14;
const TOP = 12;
const BOTTOM = 30;

export function svg(kind, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, kind);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/* The least and the largest of any number of values. */
function ends(values) {
  return values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
}

/* Round numbers between two ends, so that every label is short. */
export function ticks(low, high, most = 5) {
  const span = high - low || 1;
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => span / size <= most) || 10 * power;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++) found.push(at * step || 0);
  return found;
}

/* A price on an axis: as many decimals on every tick as the step between them needs. */
export function axisMoney(value, values) {
  const step = values.length > 1 ? Math.abs(values[1] - values[0]) : 1;
  const digits = step >= 1 ? 0 : step >= 0.1 ? 1 : step >= 0.01 ? 2 : 4;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/* `lines`: [{points: [[x, y]], kind, step}]; `marks`: [{x, kind}]; `level`: {y, label} is drawn across. Amounts begin at 0. */
export function chart({ label, width = window.innerWidth < 640 ? 360 : 640, height = 220, lines, level, x, y, marks = [] }) {
  const all = lines.flatMap((line) => line.points);
  const ys = all.map((point) => point[1]).concat(level ? [level.y] : []);
  const xs = all.map((point) => point[0]);
  const [x0, x1] = x.ends || ends(xs);
  const low = 0;
  const top = 1.06 * (Math.max(0, ends(ys)[1]) || 1);
  const atX = (value) => LEFT + ((width - LEFT - RIGHT) * (value - x0)) / (x1 - x0 || 1);
  const atY = (value) => height - BOTTOM - ((height - TOP - BOTTOM) * (value - low)) / (top - low || 1);
  const made = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const levels = ticks(low, top, 4);
  for (const value of levels) {
    made.append(
      svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: atY(value), y2: atY(value) }),
      text(LEFT - 8, atY(value) + 4, y(value, levels), "end")
    );
  }
  const labels = x.ticks || ticks(x0, x1, 6);
  for (const value of labels) {
    const place = atX(value);
    const anchor = place > width - RIGHT - 28 ? "end" : place < LEFT + 12 ? "start" : "middle";
    made.append(text(place, height - BOTTOM + 16, x.words(value), anchor));
  }
  if (level) {
    made.append(svg("line", { class: "least", x1: LEFT, x2: width - RIGHT, y1: atY(level.y), y2: atY(level.y) }));
    made.append(text(LEFT + 6, atY(level.y) - 5, level.label, "start"));
  }
  for (const line of lines) made.append(svg("path", { class: line.kind || "falls", d: path(line, atX, atY) }));
  for (const mark of marks) made.append(svg("circle", { class: mark.kind || "dot", cx: atX(mark.x), cy: atY(mark.y), r: mark.r || 3 }));
  const cursor = svg("line", { class: "cursor-line", x1: 0, x2: 0, y1: TOP, y2: height - BOTTOM, visibility: "hidden" });
  const dot = svg("circle", { class: "cursor-dot", r: 5, visibility: "hidden" });
  made.append(cursor, dot);
  made.pointAt = (px, py) => {
    for (const part of [cursor, dot]) part.setAttribute("visibility", "visible");
    cursor.setAttribute("x1", atX(px));
    cursor.setAttribute("x2", atX(px));
    dot.setAttribute("cx", atX(px));
    dot.setAttribute("cy", atY(py));
  };
  made.slider = (range) => {
    /* The middle of a thumb goes from half a thumb after the start of its track to half a thumb before its end. */
    const frame = element("div.slider", null, range);
    frame.style.paddingLeft = `calc(${(100 * LEFT) / width}% - var(--thumb) / 2)`;
    frame.style.paddingRight = `calc(${(100 * RIGHT) / width}% - var(--thumb) / 2)`;
    return frame;
  };
  made.valueAt = (event) => {
    const box = made.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    return x0 + ((at - LEFT) / (width - LEFT - RIGHT)) * (x1 - x0);
  };
  return made;
}

function path(line, atX, atY) {
  let drawn = "";
  line.points.forEach(([px, py], index) => {
    if (!index) drawn += `M${atX(px).toFixed(1)} ${atY(py).toFixed(1)}`;
    else drawn += (line.step ? `H${atX(px).toFixed(1)}V` : `L${atX(px).toFixed(1)} `) + atY(py).toFixed(1);
  });
  return drawn;
}

function text(px, py, words, anchor) {
  const made = svg("text", { class: "tick", x: px, y: py, "text-anchor": anchor });
  made.textContent = words;
  return made;
}

/* A small line without axes. */
export function spark(values, label) {
  const width = 120;
  const height = 28;
  const [low, high] = ends(values);
  const made = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const at = (value, index) => [(width * index) / Math.max(1, values.length - 1), height - 3 - ((height - 6) * (value - low)) / (high - low || 1)];
  const points = values.map(at);
  made.append(svg("path", { class: "falls", d: points.map(([px, py], index) => (index ? "L" : "M") + px.toFixed(1) + " " + py.toFixed(1)).join("") }));
  return made;
}
