/* Reads a cluster from the server and follows its changes; nothing is ever read twice unless the server says so. */

import { Fleet } from "./fleet.js";

const AGAIN_MS = 2000;

export class Live {
  /* `tell` gets a word and what it is about: "nodes", "ready", "changed", "status", "problem", "connected". */
  constructor(cluster, tell) {
    this.cluster = cluster;
    this.tell = tell;
    this.fleet = new Fleet();
    this.about = {};
    this.number = 0;
    this.time = "";
    this.changedAt = "";
    this.complete = false;
    this.stream = null;
    this.waiting = [];
    this.starts = 0;
    document.addEventListener("visibilitychange", () => this.follow());
    window.addEventListener("pageshow", () => this.follow());
    window.addEventListener("pagehide", () => this.unfollow());
  }

  url(path, query = {}) {
    const found = new URL("data/" + path, document.baseURI);
    for (const [key, value] of Object.entries({ cluster: this.cluster, ...query })) found.searchParams.set(key, value);
    return found;
  }

  async start() {
    /* A start that another one overtakes stops: rows of two readings must not mix. */
    const mine = ++this.starts;
    const overtaken = () => mine !== this.starts;
    this.unfollow();
    this.complete = false;
    this.waiting = [];
    try {
      const document = await this.fetched("fleet");
      if (overtaken()) return;
      const fleet = new Fleet();
      fleet.read(document);
      Object.assign(this, { fleet, about: document.about, epoch: document.epoch, number: document.number, time: document.time });
      this.podCount = document.podCount;
      this.tell("nodes");
      this.follow();
      await this.readPods(fleet, overtaken);
      if (overtaken()) return;
      this.complete = true;
      for (const change of this.waiting.splice(0)) this.apply(change);
      this.tell("ready");
    } catch (problem) {
      if (overtaken()) return;
      this.tell("problem", problem.message);
      setTimeout(() => overtaken() || this.start(), AGAIN_MS);
    }
  }

  /* Nothing is read or followed any more. */
  close() {
    this.starts += 1;
    this.epoch = "";
    this.unfollow();
  }

  async readPods(fleet, overtaken) {
    let after = 0;
    while (after !== null) {
      const sizes = { labels: fleet.labels.length, workloads: fleet.workloads.length };
      const part = await this.fetched("pods", { after, ...sizes });
      if (overtaken()) return;
      fleet.apply(part);
      after = part.next;
      this.tell("pods", fleet.pods.size);
    }
  }

  async fetched(path, query) {
    let response;
    try {
      response = await fetch(this.url(path, query), { headers: { Accept: "application/json" } });
    } catch {
      throw new Error("the console does not answer; is karpool still running?");
    }
    const answer = await response.json().catch(() => ({ problem: `the console answered with status ${response.status}` }));
    if (!response.ok) throw new Error(answer.problem || `the console answered with status ${response.status}`);
    return answer;
  }

  /* A page that nobody sees needs no changes, and a browser keeps few connections open. */
  follow() {
    if (document.visibilityState === "hidden") {
      this.unfollow();
      return;
    }
    if (this.stream || !this.epoch) return;
    const stream = new EventSource(this.url("events", { epoch: this.epoch, after: this.number }));
    this.stream = stream;
    stream.onopen = () => this.tell("connected", true);
    stream.onmessage = (event) => this.heard(JSON.parse(event.data));
    stream.addEventListener("status", (event) => {
      Object.assign(this.about, JSON.parse(event.data));
      this.tell("status");
    });
    stream.addEventListener("reset", () => this.start());
    stream.onerror = () => {
      this.tell("connected", false);
      if (stream.readyState !== EventSource.CLOSED || this.stream !== stream) return;
      this.stream = null;
      setTimeout(() => this.follow(), AGAIN_MS);
    };
  }

  unfollow() {
    if (this.stream) this.stream.close();
    this.stream = null;
  }

  heard(change) {
    if (this.complete) this.apply(change);
    else this.waiting.push(change);
  }

  apply(change) {
    if (change.number > this.number) this.changedAt = change.time;
    this.number = Math.max(this.number, change.number);
    this.time = change.time;
    this.tell("changed", this.fleet.apply(change));
  }
}

/* Asks for an answer that takes a while: `progress` gets what is being done, `foreseen` what is known early; `signal` gives it up. */
export async function ask(live, what, query = {}, { progress = () => {}, foreseen = () => {}, signal } = {}) {
  const response = await fetch(live.url("ask/" + what, query), { signal });
  if (!response.ok || !response.body) {
    const said = await response.json().catch(() => ({}));
    throw new Error(said.problem || `the console answered with status ${response.status}`);
  }
  for await (const line of lines(response.body)) {
    const said = JSON.parse(line);
    if (said.progress) progress(...said.progress);
    else if (said.foreseen) foreseen(said.foreseen);
    else if (said.problem) throw new Error(said.problem);
    else return said.answer;
  }
  throw new Error("the console ended before it had an answer");
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let parts = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const pieces = value.split("\n");
    parts.push(pieces[0]);
    for (const piece of pieces.slice(1)) {
      yield parts.join("");
      parts = [piece];
    }
  }
  const rest = parts.join("");
  if (rest) yield rest;
}
