// The page's two ways to the server: events in, commands out. Both stay below the page's own address.

import { apply } from "./model.js";

const COMES_BACK_MS = 2000;

export class Connection {
  // `shown` gets the game after each event, and whether all of it is new; `report` gets what to say about the connection.
  constructor(shown, report) {
    this.shown = shown;
    this.report = report;
    this.game = null;
    this.isOver = false;
    this.open();
  }

  open() {
    this.source = new EventSource(this.game ? `events?after=${this.game.seq}` : "events");
    this.source.addEventListener("open", () => this.report(""));
    this.source.addEventListener("snapshot", (event) => {
      this.game = JSON.parse(event.data);
      this.report("");
      this.shown(this.game, true);
    });
    this.source.addEventListener("increment", (event) => {
      if (this.game && apply(this.game, JSON.parse(event.data))) this.shown(this.game, false);
      else this.again();
    });
    this.source.addEventListener("over", () => {
      this.isOver = true;
      this.source.close();
      this.report("");
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
    this.report("The connection to the game is lost. Trying again; if its terminal has ended, the game is over.");
    if (this.source.readyState !== EventSource.CLOSED) return;
    try {
      const answer = await fetch("ready");
      if (!answer.ok) this.report(await answer.text());
    } catch {
      // It stays lost; the text above says so.
    }
    setTimeout(() => this.open(), COMES_BACK_MS);
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
