/* The plan: asked for once and shared by all views, asked for again when the cluster has changed. */

import { ask } from "./live.js";

const AGAIN_MS = 15000;

export class Planned {
  constructor(live, tell) {
    this.live = live;
    this.tell = tell;
    this.answer = null;
    this.number = -1;
    this.said = null;
    this.problem = "";
    this.asking = null;
    this.verdicts = new Map();
  }

  /* The plan of now; asks for it if there is none, or if the cluster has changed since. */
  want() {
    if (this.asking || (this.answer && (this.number === this.live.number || Date.now() - this.at < AGAIN_MS))) return;
    this.begin();
  }

  async begin() {
    this.asking = new AbortController();
    this.problem = "";
    const number = this.live.number;
    try {
      const answer = await ask(this.live, "plan", {}, { progress: (...said) => this.progress(said), signal: this.asking.signal });
      this.answer = answer;
      this.number = number;
      this.at = Date.now();
      this.verdicts = new Map(answer.plan.nodes.map((verdict) => [verdict.name, verdict]));
    } catch (problem) {
      this.problem = problem.message;
      this.at = Date.now();
    }
    this.asking = null;
    this.said = null;
    this.tell("plan");
  }

  progress(said) {
    this.said = said;
    this.tell("planning");
  }

  get changedSince() {
    return this.answer !== null && this.live.number > this.number;
  }

  outcome(node) {
    const verdict = this.verdicts.get(node.name);
    return verdict ? verdict.verdict : null;
  }

  reasons(node) {
    const verdict = this.verdicts.get(node.name);
    return verdict ? verdict.reasons.map((reason) => reason.code) : [];
  }
}
