// The words beside a replay: each is shown from its moment until the next one's, with what it points at. What it expects
// to be seen is listed from the start, and ticked when it comes.

import { coded, html, say } from "./elements.js";

const part = (name) => document.getElementById(name);

export class Captions {
  constructor({ captions, change_ms }) {
    const on = (each) => ({ ...each, ms: Math.max(0, each.at * 1000 + change_ms) });
    this.all = captions.map((each) => ({ ...on(each), seen: (each.seen ?? []).map(on) }));
    part("caption").hidden = part("step").hidden = part("stops").hidden = part("more").hidden = !this.all.length;
    const hasParts = this.all.some((each) => each.part);
    part("everything").hidden = !hasParts;
    part("groups").classList.toggle("focused", hasParts);
    part("all-parts").addEventListener("change", () => part("groups").classList.toggle("focused", !part("all-parts").checked));
    part("more").addEventListener("click", () => part("more").setAttribute("aria-expanded", part("controls").classList.toggle("open")));
  }

  // How many have begun at a moment.
  begun(ms) {
    return this.all.filter((each) => each.ms <= ms).length;
  }

  // When playing stops between two moments, to let the reader read: at the first caption of them; null if none begins.
  stop(fromMs, toMs) {
    return part("stopping").checked ? this.all.find((each) => each.ms > fromMs && each.ms <= toMs)?.ms ?? null : null;
  }

  show(ms) {
    if (!this.all.length) return;
    const number = this.begun(ms) - 1, now = this.all[number];
    if (number !== this.number) {
      this.number = number;
      this.fill(now);
      for (const each of document.querySelectorAll("[data-part]")) each.classList.toggle("looked-at", each.dataset.part === now?.part);
      part("groups").classList.toggle("points", Boolean(now?.part));
    }
    now?.seen.forEach((each, place) => say(this.seen.children[place], `${each.ms <= ms ? "✓" : "…"} ${each.text}`));
  }

  fill(now) {
    this.seen = html("ul", { class: "seen" }, ...(now?.seen ?? []).map(() => html("li")));
    part("caption").replaceChildren(...(now ? [
      ...(now.title ? [html("h2", {}, now.title)] : []),
      html("p", {}, ...coded(now.text)),
      ...(now.look ? [html("p", { class: "look" }, html("strong", {}, "Look: "), ...coded(now.look))] : []),
      this.seen,
    ] : []));
  }
}
