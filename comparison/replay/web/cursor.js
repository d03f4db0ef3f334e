// The line through the lanes of one group, at the moment that everything else shows; what comes later is pale. A click or
// a drag moves it.

import { put, svg } from "./elements.js";

export class Cursor {
  constructor(lanes, seek) {
    this.lanes = lanes;
    this.line = svg("path", { class: "cursor" });
    this.ahead = svg("rect", { class: "ahead", y: 0 });
    lanes.plot.append(this.ahead, this.line);
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
    const x = Math.max(0, width - ((rightMs - ms) * width) / windowMs);
    put(this.line, "d", `M${x.toFixed(1)} 0V${height}`);
    put(this.ahead, "x", x.toFixed(1));
    put(this.ahead, "width", Math.max(0, width - x).toFixed(1));
    put(this.ahead, "height", height);
  }
}
