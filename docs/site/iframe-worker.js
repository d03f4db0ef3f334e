// Search runs in a Worker, which browsers refuse to pages of file://. There, run its script in an iframe.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #waiting = [];
    #inner;

    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.#inner = frame.contentWindow;
      this.#inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.#inner.document.createElement("script");
      script.src = url;
      script.onload = () => {
        const waiting = this.#waiting;
        this.#waiting = null;
        for (const data of waiting) this.#deliver(data);
      };
      this.#inner.document.body.append(script);
    }

    postMessage(data) {
      if (this.#waiting) this.#waiting.push(data);
      else this.#deliver(data);
    }

    #deliver(data) {
      setTimeout(() => this.#inner.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
