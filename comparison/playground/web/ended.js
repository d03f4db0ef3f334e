// What the page says when the game is over or cannot be reached: why, where all of it is, and how to begin again.

import { html } from "./elements.js";

export const STATUS = {
  starting: "ZooKeeper, brokers and members are starting", running: "Running", analysing: "The game is over; it is being analysed",
  ended: "The game is over", failed: "The game is over; it was not analysed", lost: "The connection to the game is lost",
};
const OF_LOST = {
  trying: "Trying again. Nothing on this page can act meanwhile",
  gone: "Its terminal has ended, or does not answer: the game is over then. If it comes back, the page goes on by itself",
};

export class Ended {
  constructor(root) {
    this.root = root;
  }

  // `link` is how the connection is: open, trying, or gone.
  update(game, link) {
    const isOver = !["starting", "running"].includes(game.status);
    const key = [game.status, link, game.report, game.run_folder, game.reason, ...game.scenarios].join("|");
    this.root.hidden = !isOver;
    if (!isOver || this.key === key) return;
    this.key = key;
    this.root.className = "banner";
    this.root.replaceChildren(html("h2", {}, STATUS[game.status]), ...this.about(game, link));
  }

  about(game, link) {
    const folder = html("code", {}, game.run_folder), why = OF_LOST[game.status === "lost" ? link : ""] ?? game.reason;
    const found = why ? [html("p", {}, `${why[0].toUpperCase()}${why.slice(1)}.`)] : [];
    if (game.report && link !== "gone") {
      found.push(html("p", {}, html("a", { href: "report.html", target: "_blank", rel: "noopener" }, "Open its report"),
        ", which stays as ", html("code", {}, game.report)));
    } else if (game.report) found.push(html("p", {}, "Its report is ", html("code", {}, game.report), ". The game's terminal has ended."));
    else if (game.status === "analysing") found.push(html("p", {}, "What was played is in ", folder));
    else found.push(html("p", {}, "What was played is in ", folder, "; this makes its report: ", html("code", {}, `rebalance-lab analyze ${quoted(game.run_folder)}`)));
    const file = (path) => path.slice(path.lastIndexOf("/") + 1);
    const scenario = (path) => (link === "open" ? html("a", { href: file(path), download: file(path) }, file(path)) : html("code", {}, path));
    if (game.scenarios.length) found.push(html("p", {}, "As a scenario: ", ...game.scenarios.flatMap((path) => [scenario(path), " "])));
    if (game.begun.command && game.status !== "analysing") found.push(html("p", {}, "To begin another game: ", html("code", {}, game.begun.command)));
    return found;
  }
}

const quoted = (text) => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\"'\"'")}'`);
