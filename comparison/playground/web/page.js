// The playground's page: it follows the game, shows each design in a column, and sends commands.

import { Connection } from "./connection.js";
import { clock, html, put, say } from "./elements.js";
import { Ended, STATUS } from "./ended.js";
import { GroupColumn } from "./group.js";
import { isOpen, takesCommands } from "./model.js";
import { showSaving } from "./saving.js";
import { Stage } from "./stage.js";
import { VirtualTime } from "./time.js";
import { Tours } from "./tours.js";

const BEHIND_MS = 250;    // the picture is a little late, so that bars end where they end, not before
const AHEAD_MS = 1500;    // how far it goes on without news
const TICK_MS = 250;
const SAID_MS = 12_000;
const part = (name) => document.getElementById(name);
const stands = window.matchMedia("(prefers-reduced-motion: reduce)");
let game = null, take = 0, receivedAt = 0, isHeld = false, tickedAt = 0, isDrawn = true, forgetting, toured = null;

// -- commands -----------------------------------------------------------------------------------------------------------

const isEverywhere = () => document.querySelector("[name=where]:checked").value === "every";
const toWhom = (design) => (!isEverywhere() ? design
  : game.groups.length > 2 ? `all ${game.groups.length} designs` : game.groups.map((each) => each.design).join(" and "));

async function give(command, label = "") {
  const answer = await connection.send(command);
  const what = label || command.type;
  saySoon(answer.accepted ? `Sent: ${what}${answer.reason ? `. ${answer.reason}` : ""}` : `Refused: ${what}. ${answer.reason}`, !answer.accepted);
  return answer;
}

// For a moment.
function saySoon(text, isBad = false) {
  say(part("said"), text);
  part("said").classList.toggle("bad", isBad);
  clearTimeout(forgetting);
  forgetting = setTimeout(() => say(part("said"), ""), SAID_MS);
}

const giveFrom = (design) => (command, label, isHereOnly = false) =>
  give({ ...command, designs: isEverywhere() && !isHereOnly ? [] : [design] }, label);

// -- what is shown ------------------------------------------------------------------------------------------------------

const windowMs = () => Number(part("window").value);

function columnOf(group) {
  const column = new GroupColumn(group, giveFrom(group.design), toWhom, game.simulation ? give : null);
  column.lanes.windowMs = windowMs();
  return column;
}

// The game has begun again from the seed: nothing of what was shown may stay.
function clear() {
  take = game.simulation.take;
  const focused = document.activeElement?.closest(".group")?.dataset.design;
  stage.clear();
  if (focused) part("groups").focus();
}

function draw() {
  isDrawn = true;
  if (game.simulation && game.simulation.take !== take) clear();
  time.update(game);
  stage.update(game, windowMs());
  const text = STATUS[game.status] + (game.reason ? `: ${game.reason}` : "");
  say(part("status"), text);
  document.body.dataset.status = game.status;
  for (const each of document.querySelectorAll("#stop, #tours-button, #hold, [name=where]")) each.disabled = !isOpen(game);
  part("saving-button").disabled = game.status === "failed" || connection.link !== "open";
  tours.update(game);
  // A tour's designs are shown in full once it begins.
  if (tours.tour && tours.tour !== toured) stage.show(tours.tour.designs);
  toured = tours.tour;
  ended.update(game, connection.link);
}

// The time that the right edge of the lanes shows.
function shownMs(at) {
  if (!["starting", "running"].includes(game.status) || stands.matches) return game.at_ms;
  const since = Math.min(at - receivedAt, AHEAD_MS);
  return game.simulation ? time.shownMs(since, BEHIND_MS) : Math.max(0, game.at_ms + since - BEHIND_MS);
}

function frame(at) {
  if (game) {
    if (!isDrawn) draw();
    const now = shownMs(performance.now());
    const isTick = at - tickedAt >= TICK_MS;
    if (isTick) tickedAt = at;
    if (!isHeld) {
      for (const column of stage.visible) {
        if (isTick) column.lanes.tick(now);
        column.lanes.move(now);
      }
    }
    if (isTick) document.title = `${clock(now)} Playground of rebalance-lab${game.simulation ? " (simulated)" : ""}`;
  }
  requestAnimationFrame(frame);
}

function hold() {
  isHeld = !isHeld;
  put(part("hold"), "aria-pressed", String(isHeld));
}

// -- beginning ----------------------------------------------------------------------------------------------------------

const ended = new Ended(part("ended"));
const stage = new Stage(part("groups"), part("strips"), part("jump"), columnOf, saySoon);
stage.narrow.addEventListener("change", () => { isDrawn = false; });
const time = new VirtualTime((command, label) => give(command, label));
const tours = new Tours(part("tour"), (command, label) => give(command, label), (designs) => time.anew(designs));
const connection = new Connection((now) => {
  game = now;
  receivedAt = performance.now();
  isDrawn = false;
}, (text) => {
  say(part("connection"), text);
  part("connection").classList.toggle("banner", Boolean(text));
});
requestAnimationFrame(frame);

part("hold").addEventListener("click", hold);
part("tours-button").addEventListener("click", () => tours.toggle());
part("saving-button").addEventListener("click", showSaving);
part("keys-button").addEventListener("click", () => part("keys").showModal());
part("stop").addEventListener("click", () => part("stopping").showModal());
part("stopping").addEventListener("close", () => {
  if (part("stopping").returnValue === "stop") give({ type: "stop" }, "stop");
  part("stopping").returnValue = "";
});
part("window").addEventListener("change", () => {
  for (const { lanes } of stage.all.values()) {
    lanes.windowMs = windowMs();
    lanes.resized();
  }
  isDrawn = false;
});
for (const each of document.querySelectorAll("[name=where]")) each.addEventListener("change", () => { isDrawn = false; });

// The member that has waited longest, in whatever design.
function letLongestGo() {
  const waiting = game.groups.flatMap(({ design, waiting: all }) => all.map(({ member, since_ms }) => ({ design, member, since_ms })));
  const [first] = waiting.sort((one, other) => one.since_ms - other.since_ms);
  if (first && takesCommands(game)) giveFrom(first.design)({ type: "let-go", member: first.member }, `let ${first.member} go`, true);
}

function turn() {
  document.querySelector("[name=where]:not(:checked)").click();
}

const KEYS = {
  n: letLongestGo, b: turn, h: hold, t: () => tours.toggle(),
  "?": () => part("keys").showModal(),
};
const KEYS_OF_TIME = {
  p: () => time.pause(), e: () => time.nextEvent(), ",": () => time.change(-1), ".": () => time.change(1),
  z: () => time.back(game.at_ms - 1000),
};
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("select, textarea, input:not([type=radio], [type=checkbox])");
  if (event.ctrlKey || event.altKey || event.metaKey || isTyping || document.querySelector("dialog[open]")) return;
  const keys = game?.simulation ? { ...KEYS, ...KEYS_OF_TIME } : KEYS;
  if (!part("keys-on").checked || !Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
});
