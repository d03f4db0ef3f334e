// What was packed into the page: the first state of all groups, and every step in the order of time.

async function unpacked(text) {
  const packed = new Blob([Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0))]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

export const data = unpacked(document.getElementById("data").textContent);
