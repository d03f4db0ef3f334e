// The line through the lanes of one group, at the moment that everything else shows. A click or a drag moves it.

import { put, svg } from "./elements.js";

export class Cursor {
  constructor(lanes, seek) {
    this.lanes = lanes;
    this.line = svg("path", { class: "cursor" });
    lanes.plot.append(this.line);
    lanes.plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      lanes.plot.setPointerCapture(event.pointerId);
      seek(this.msAt(event));
    });
    lanes.plot.addEventListener("pointermove", (event) => {
      if (lanes.plot.hasPointerCapture(event.pointerId)) seek(this.msAt(event));
    });
  }

  msAt(event) {
    const { left, width } = this.lanes.plot.getBoundingClientRect();
    return this.rightMs - (1 - (event.clientX - left) / width) * this.lanes.windowMs;
  }

  place(ms, rightMs) {
    const { width, windowMs, height } = this.lanes;
    this.rightMs = rightMs;
    if (!width) return;
    put(this.line, "d", `M${(width - ((rightMs - ms) * width) / windowMs).toFixed(1)} 0V${height}`);
  }
}
