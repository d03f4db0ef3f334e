// What of a layout is written where, as one zooms or as time passes: the same in the report and in the playground, and
// as `svg.py` does it for the still picture. Moments are milliseconds, `pixel` is how many of them a pixel has. LETTER
// and the other measures are put before this by the module `layout`.

// The first of some texts that fits into so many pixels.
export const fitting = (texts, room) => texts.find((text) => LETTER * text.length <= room);

// The part of a stretch that is in sight.
export const inSight = ({ from, until }, left, right) => ({ from: Math.max(from, left), until: Math.min(until, right) });

// Of texts in the order of their places those that are too close to the one before.
export function crowded(texts) {
  let free = -Infinity;
  return texts.map(({ x, text, room }) => {
    if (x < free) return true;
    free = x + LETTER * text.length + room;
    return false;
  });
}

// The names of those who deliver at once: in the red strip, or beside it where it is too short.
export function overlapText(texts, { from, until }, pixel) {
  const text = fitting(texts, (until - from) / pixel - 6);
  return { text: text ?? texts.at(-1), isInside: text !== undefined };
}

// Round moments from one to another: at most `most`, in steps of 1, 2 or 5; and the digits that their seconds need.
export function ticks(from, until, most) {
  let step = 1;
  for (let n = 0; (until - from) / step > most; n += 1) step *= n % 3 === 1 ? 2.5 : 2;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= until + 1e-6; at += step) found.push(at);
  return { found, digits: Math.max(0, 3 - Math.floor(Math.log10(step))) };
}
