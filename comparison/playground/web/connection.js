// The page's two ways to the server: events in, commands out. Both stay below the page's own address. While no events
// come, the game's status is `lost`: it may be over, and nothing can act.

import { apply } from "./model.js";

const COMES_BACK_MS = 2000, LOOKS_MS = 10_000;

export class Connection {
  // `shown` gets the game after each event, and whether all of it is new; `report` gets what to say about the connection.
  constructor(shown, report) {
    this.shown = shown;
    this.report = report;
    this.game = null;
    this.isOver = false;
    this.link = "open";  // or: trying, gone
    this.open();
  }

  open() {
    this.source = new EventSource(this.game ? `events?after=${this.game.seq}` : "events");
    this.source.addEventListener("open", () => this.found());
    this.source.addEventListener("snapshot", (event) => {
      this.found();
      this.game = JSON.parse(event.data);
      this.shown(this.game, true);
    });
    this.source.addEventListener("increment", (event) => {
      if (this.game && apply(this.game, JSON.parse(event.data))) this.shown(this.game, false);
      else this.again();
    });
    this.source.addEventListener("over", () => {
      this.isOver = true;
      this.source.close();
      this.found();
      this.look();
    });
    this.source.addEventListener("error", () => this.lost());
  }

  // Increments are missing: begin with a snapshot.
  again() {
    this.source.close();
    this.game = null;
    this.open();
  }

  // The browser comes back by itself, unless the server refused; then it is asked why.
  async lost() {
    if (this.isOver) return;
    if (this.link === "open") this.set("trying");
    const { source } = this, refusal = await this.refusal();
    if (this.link === "open" || source !== this.source) return;
    if (!this.game) this.report(refusal ?? "The game does not answer: its terminal has ended.");
    else this.report(refusal ?? "");
    this.set(refusal === null ? "gone" : "trying");
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => this.open(), COMES_BACK_MS);
  }

  // Why the server gives this page no events; '' if it would, null if it does not answer.
  async refusal() {
    try {
      const answer = await fetch("ready");
      return answer.ok ? "" : await answer.text();
    } catch {
      return null;
    }
  }

  found() {
    this.report("");
    this.set("open");
  }

  set(link) {
    if (link === this.link) return;
    if (this.game && this.link === "open" && !this.isOver) {
      this.status = this.game.status;
      this.game.status = "lost";
    } else if (this.game?.status === "lost" && link === "open") this.game.status = this.status;
    this.link = link;
    if (this.game) this.shown(this.game, false);
  }

  // The game is over, but its report is served for a while.
  async look() {
    if ((await this.refusal()) === null) this.set("gone");
    else setTimeout(() => this.look(), LOOKS_MS);
  }

  // Returns the game's answer: {accepted, reason}.
  async send(command) {
    try {
      const answer = await fetch("command", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(command),
      });
      const text = await answer.text();
      return answer.headers.get("Content-Type")?.startsWith("application/json")
        ? JSON.parse(text) : { accepted: false, reason: text };
    } catch {
      return { accepted: false, reason: "the game does not answer: look at its terminal" };
    }
  }
}
