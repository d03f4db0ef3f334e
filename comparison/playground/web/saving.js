// What was played as scenarios to be kept: which files there are, what they hold, and how to run them.

import { html, several } from "./elements.js";

const part = (name) => document.getElementById(name);

const described = ({ name, designs, steps, left_out, command }) => html("li", {},
  html("a", { href: name, download: name }, name), ` (${designs.join(", ")}): ${several(steps, "command")}`
    + (left_out ? `; ${left_out} more ${left_out === 1 ? "is" : "are"} left out, which a comment in the file explains` : ""),
  html("br"), "Run it: ", html("code", {}, command));

export async function showSaving() {
  const list = part("saved");
  list.replaceChildren(html("li", {}, "Asking the game …"));
  part("saving").showModal();
  try {
    const answer = await fetch("scenarios");
    if (!answer.ok) throw new Error(await answer.text());
    const found = await answer.json();
    list.replaceChildren(...(found.length ? found.map(described) : [html("li", {}, "Nothing was done yet: there is nothing to save.")]));
  } catch {
    list.replaceChildren(html("li", {}, "The game does not answer: look at its terminal, and into its folder."));
  }
}
