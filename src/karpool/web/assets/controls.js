/* Small parts that several views have. */

import { podLabels } from "./fleet.js";

const MORE = 200;
const LABELS_SHOWN = 20;

/* Buttons of which one is pressed; `press` shows another one as pressed, and chooses nothing. */
export function choice(label, options, value, chosen) {
  const buttons = options.map(([key, words]) =>
    element("button", { type: "button", value: key, "aria-pressed": String(key === value), onclick: () => (press(key), chosen(key)) }, words)
  );
  function press(key) {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === key));
  }
  return Object.assign(element("div.choice", { role: "group", "aria-label": label }, ...buttons), { press });
}

export function card(label, value, note, kind = "") {
  return element("div.card" + kind, null, element("p.label", null, label), element("p.big", null, ...[value].flat()), element("p.quiet", null, ...[note].flat()));
}

export function select(label, options, value, chosen) {
  const made = element(
    "select",
    { "aria-label": label, onchange: () => chosen(made.value) },
    ...options.map(([key, words]) => {
      const option = element("option", { value: key }, words);
      option.selected = key === value;
      return option;
    })
  );
  return made;
}

/* Of when an answer is; once the cluster has changed since, with a button to ask again. */
export class AsOf {
  constructor(live, again) {
    this.live = live;
    this.again = again;
    this.root = element("p.quiet.as-of", { role: "status" });
  }

  asked() {
    this.number = this.live.number;
    this.time = null;
    this.root.replaceChildren();
  }

  answered(time) {
    this.time = time;
    this.told = null;
    this.write();
  }

  write() {
    /* An answer may be one that was kept from before it was asked for; its time is in whole seconds. */
    const kept = Date.parse(this.live.changedAt) >= Date.parse(this.time) + 1000;
    const changed = this.live.number > this.number || kept;
    if (!this.time || this.told === changed) return;
    this.told = changed;
    const words = `As of ${clock(this.time)} UTC.`;
    if (!changed) this.root.replaceChildren(words);
    else this.root.replaceChildren(`${words} The cluster has changed since. `, element("button.more", { type: "button", onclick: this.again }, "Ask again"));
  }
}

/* Where a label is named, with a list of those that pods or their namespaces have. */
export function labelField(words, value, fleet, chosen) {
  const known = element("datalist", { id: "pod-labels" });
  const input = element("input.search.short", { "aria-label": words, value, list: "pod-labels", spellcheck: "false", autocomplete: "off" });
  input.addEventListener("focus", () => known.replaceChildren(...podLabels(fleet()).map((label) => element("option", { value: label }))));
  input.addEventListener("change", () => chosen(input.value.trim()));
  const field = element("span", null, input, known);
  return field;
}

/* Why nothing is told apart by a label that nobody has; `choose` takes one that there is. */
export function nobodyHas(label, fleet, choose) {
  const known = podLabels(fleet);
  const some = known.slice(0, LABELS_SHOWN).flatMap((name) => [element("button.link", { type: "button", onclick: () => choose(name) }, element("bdi", null, name)), " "]);
  return element("p.notice", { role: "status" }, "No pod has the label ", element("bdi", null, label || "?"), ", and no namespace of one. ", known.length ? "There are: " : "There are no labels at all.", ...some, known.length > LABELS_SHOWN ? `and ${number(known.length - LABELS_SHOWN)} more` : "");
}

/* A table: columns [{words, number, cell(row)}], rows; in a frame that scrolls sideways where it must. */
export function table(caption, columns, rows, rowOptions = () => ({})) {
  const head = element("tr", null, ...columns.map((column) => element("th" + (column.number ? ".number-cell" : ""), { scope: "col" }, column.words)));
  const body = rows.map((row) => {
    const { onclick, kind } = rowOptions(row);
    const cells = columns.map((column, index) => {
      const parts = [column.cell(row)].flat().filter((part) => part !== "" && part !== null);
      const kind = (column.number ? ".number-cell" : "") + (parts.length ? "" : ".blank");
      if (index === 0) return element("th" + kind, { scope: "row" }, ...parts);
      return element("td" + kind, { "data-label": column.words }, element("div", { "data-label": column.words }, ...parts));
    });
    return element("tr" + (kind ? "." + kind : ""), onclick ? { onclick } : null, ...cells);
  });
  const made = element("table.list", null, element("caption.unseen", null, caption), element("thead", null, head), element("tbody", null, ...body));
  return element("div.scroll", { tabindex: "0", role: "region", "aria-label": caption }, made);
}

/* A table that begins with its first rows; a button shows more of them. */
export function longTable(caption, columns, rows, shown) {
  const part = element("div.long-table");
  const draw = (count) => {
    const rest = rows.length - count;
    const more = element("button.more", { type: "button", onclick: () => draw(count + MORE) }, rest > MORE ? `Show ${number(MORE)} more of ${number(rest)}` : `Show ${number(rest)} more`);
    part.replaceChildren(table(caption, columns, rows.slice(0, count)), ...(rest > 0 ? [more] : []));
  };
  draw(shown);
  return part;
}

/* What is said while an answer is worked out. */
export function working(what) {
  const words = element("span", null, what);
  const bar = element("span.meter.wide", { "aria-hidden": "true" }, element("i"));
  const made = element("p.working", { role: "status" }, element("span.spin", { "aria-hidden": "true" }), words, bar);
  bar.hidden = true;
  made.progress = (said, done, most) => {
    words.textContent = said + (most ? ` (${number(done)} of ${number(most)})` : done ? ` (${number(done)})` : "");
    bar.hidden = !most;
    if (most) bar.firstChild.style.width = Math.min(100, (100 * done) / most) + "%";
  };
  return made;
}

/* Why this plan of today does not end where that of the Plan view does, if it does not; empty otherwise. */
export function afterFullPlan(planned, price) {
  const full = planned.answer && planned.answer.plan.after.pricePerHour;
  if (!full || price === null || Math.abs(full - price) < 5e-5) return "";
  return ` The plan of the Plan view is looked for longer, and ends at ${money(full)}.`;
}

/* A reason with its code; what it is about is not named twice: "PodDisruptionBudget: shop/cart allows no disruption now". */
export function saidOnce({ code, message }) {
  const rest = message.startsWith(code + " ") ? message.slice(code.length + 1) : message;
  return `${code}: ${rest}`;
}

/* A file that the page has made, for the downloads of the browser. */
export function download(name, text, type) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function say(words) {
  byId("said").textContent = words;
}

/* "2026-11-18 19:31:04 UTC" */
export function moment(text) {
  return text ? text.replace("T", " ").replace(/(\.\d+)?(Z|\+00:00)$/, " UTC") : "?";
}

export function clock(text) {
  return text ? text.slice(11, 19) : "?";
}

export function perMonth(price) {
  return price === null || price === undefined ? "? $ a month" : `${number(Math.round(price * 730))} $ a month`;
}
