// The moves of each group's state machine, which the page has brought along.

import { data } from "./data.js";

export const machines = data.then((all) => all.machines);
