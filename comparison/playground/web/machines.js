// The moves of each coordinated design's state machine, from the product's own tables; a replay brings them along.

export const machines = fetch("machines.json").then((answer) => answer.json());
